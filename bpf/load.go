package bpf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"braid/internal/cpus"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// loader builds a Recorder: first all maps and programs, then, when reading is prepared, the hooks.
type loader struct {
	r        *Recorder
	types    kernelTypes
	watch    *WatchOptions
	cpus     []cpus.CPU // Options.CPUs
	binder   bool       // unit wait is loaded, and there is binder
	cache    *btf.Cache
	programs []program
}

// program is loaded and not yet attached.
type program struct {
	unit  unit
	hook  string // the tracepoint, or majorFaultHook
	name  string // the C function
	prog  *ebpf.Program
	vital bool
}

// majorFaultHook is what the hook that is a perf event is called.
const majorFaultHook = "major-faults"

func (l *loader) load(units []unit) error {
	l.cache = btf.NewCache()
	l.binder = slices.ContainsFunc(units, func(u unit) bool { return u.name == UnitWait }) && hasBinder(l.types)
	for _, u := range units {
		if err := l.loadUnit(u); err != nil {
			return fmt.Errorf("load unit %s of the kernel side: %w", u.name, err)
		}
	}
	return nil
}

// loadUnit loads the unit's maps, then each program by itself, so that one that this kernel refuses does not take the
// others along.
func (l *loader) loadUnit(u unit) error {
	open := u.loadBTF
	if l.types.external || !l.r.can.tpBTF {
		open = u.loadRaw
	}
	spec, err := open()
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	if err := l.configure(u, spec); err != nil {
		return err
	}

	mapSpec := spec.Copy()
	mapSpec.Programs = nil
	coll, err := ebpf.NewCollectionWithOptions(mapSpec, l.options(l.sharedMaps(spec)))
	if err != nil {
		return fmt.Errorf("create maps: %w", err)
	}
	unitMaps := coll.Maps
	coll.Maps = nil
	for _, name := range slices.Sorted(maps.Keys(unitMaps)) {
		m := unitMaps[name]
		l.r.own = append(l.r.own, m)
		if _, shared := l.r.maps[name]; !shared && !strings.HasPrefix(name, ".") {
			l.r.maps[name] = m
		}
	}

	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		hook := hookOf(spec.Programs[name])
		vital := slices.Contains(u.vital, hook)
		if classic(hook) && !l.binder {
			continue // nothing is missing where there is no binder
		}
		if err := l.checkHook(hook); err != nil {
			if vital {
				return fmt.Errorf("hook %s: %w", hook, err)
			}
			l.miss(u, hook, err)
			continue
		}
		p, err := l.loadProgram(spec, name, unitMaps)
		if err != nil && (vital || errors.Is(err, os.ErrPermission)) {
			return fmt.Errorf("load program for %s: %w", hook, err)
		}
		if err != nil {
			l.miss(u, hook, err)
			continue
		}
		l.r.own = append(l.r.own, p)
		l.programs = append(l.programs, program{unit: u, hook: hook, name: name, prog: p, vital: vital})
	}
	return nil
}

// checkHook returns nil if there is something to attach to.
func (l *loader) checkHook(hook string) error {
	switch {
	case hook == majorFaultHook:
		return nil
	case classic(hook):
		return checkRecord(hook)
	case !l.types.hasHook(hook):
		return errNoTracepoint
	}
	return nil
}

var errNoTracepoint = errors.New("this kernel has no such tracepoint")

func (l *loader) miss(u unit, hook string, err error) {
	l.r.missing = append(l.r.missing, fmt.Sprintf("%s/%s: %v", u.name, hook, err))
}

// configure sets sizes and variables for this kernel.
func (l *loader) configure(u unit, spec *ebpf.CollectionSpec) error {
	if err := l.r.fit(spec); err != nil {
		return err
	}
	pages, err := targetPages()
	if err != nil {
		return err
	}
	spec.Maps["targets"].MaxEntries = pages
	if err := spec.Variables["wake_bytes"].Set(uint64(wakeBytes(l.r.ringBytes))); err != nil {
		return fmt.Errorf("set wake_bytes: %w", err)
	}
	if err := l.configureServers(spec, pages); err != nil {
		return err
	}
	if v := spec.Variables["adopt"]; v != nil {
		if err := v.Set(l.watch.adopts()); err != nil {
			return fmt.Errorf("set adopt: %w", err)
		}
	}
	for name, n := range l.watch.sizes() {
		if m := spec.Maps[name]; m != nil {
			m.MaxEntries = n
		}
	}
	if u.configure == nil {
		return nil
	}
	if err := u.configure(spec, l.types); err != nil || spec.Maps["idleness"] == nil {
		return err
	}
	return configureIdle(spec, l.cpus)
}

// sharedMaps returns the maps of earlier units that this one has too.
func (l *loader) sharedMaps(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	for name := range spec.Maps {
		if m, ok := l.r.maps[name]; ok {
			shared[name] = m
		}
	}
	return shared
}

func (l *loader) options(replace map[string]*ebpf.Map) ebpf.CollectionOptions {
	opts := ebpf.CollectionOptions{MapReplacements: replace, Cache: l.cache}
	if l.types.external {
		opts.Programs.KernelTypes = l.types.spec
	}
	return opts
}

func (l *loader) loadProgram(spec *ebpf.CollectionSpec, name string, unitMaps map[string]*ebpf.Map) (*ebpf.Program, error) {
	one := spec.Copy()
	for other := range one.Programs {
		if other != name {
			delete(one.Programs, other)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(one, l.options(unitMaps))
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return coll.DetachProgram(name), nil
}

func hookOf(p *ebpf.ProgramSpec) string {
	if p.Type == ebpf.PerfEvent {
		return majorFaultHook
	}
	_, hook, _ := strings.Cut(p.SectionName, "/")
	return hook
}

// attach attaches every program, those that say which processes are traced first.
func (l *loader) attach() error {
	for _, p := range l.programs {
		link, err := attachProgram(p)
		// Perf events may be refused apart from everything else.
		if err != nil && (p.vital || errors.Is(err, os.ErrPermission) && p.hook != majorFaultHook) {
			return fmt.Errorf("attach to %s: %w", p.hook, err)
		}
		if err != nil {
			l.miss(p.unit, p.hook, err)
			continue
		}
		l.r.hooks = append(l.r.hooks, hook{name: p.hook, link: link})
		l.r.misses = append(l.r.misses, missCounter{
			name: "kernel_missed_" + p.unit.name + "_" + strings.TrimPrefix(p.name, "on_"), prog: p.prog,
		})
	}
	return nil
}

func attachProgram(p program) (closer, error) {
	switch p.prog.Type() {
	case ebpf.Tracing:
		return link.AttachTracing(link.TracingOptions{Program: p.prog})
	case ebpf.RawTracepoint:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: p.hook, Program: p.prog})
	case ebpf.TracePoint:
		group, name, _ := strings.Cut(p.hook, "/")
		return link.Tracepoint(group, name, p.prog, nil)
	case ebpf.PerfEvent:
		return attachMajorFaults(p.prog)
	}
	return nil, fmt.Errorf("no way to attach a program of type %s", p.prog.Type())
}

// targetPages returns how many pages of the target table cover every process id that this system gives.
func targetPages() (uint32, error) {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 0, fmt.Errorf("read the largest process id: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil || n == 0 || n > 1<<22 { // PID_MAX_LIMIT, include/linux/threads.h
		return 0, fmt.Errorf("read the largest process id: /proc/sys/kernel/pid_max says %q", text)
	}
	return uint32((n + pageIDs - 1) / pageIDs), nil
}
