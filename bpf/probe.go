package bpf

import (
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// ErrNoProbe says that a method cannot be probed: this kernel has no uprobes, or the method's code does not tell where
// the method ends. What follows it says which.
var ErrNoProbe = errors.New("no probe can be put at the method")

// Method is the code of one method in a file.
type Method struct {
	// Path names the very file that the process has mapped; in a container, or if it may have been replaced, that is
	// /proc/PID/exe, /proc/PID/root/PATH or an entry of /proc/PID/map_files.
	Path string
	// Address is the method's symbol's value: its address as the file has it, not where it is loaded.
	Address uint64
	// Size is the method's length in bytes. 0, or less than what the file's own symbols say, means theirs.
	Size uint64
}

// Probe is a pair of breakpoints in a process: at a method's beginning, and where it ends. Close removes it.
type Probe struct {
	r     *Recorder
	hooks []hook // in the order of attaching
	own   []closer
	progs []*ebpf.Program
}

// WatchMethod makes the kernel time each call of a method in one process, by all its threads. A call that took longer
// than the limit becomes a KindFired event of LimitMethod with the cookie, at its end, and ends the reader's wait at
// once. There is no cooldown. Nothing is told of any other call, nor of other processes, also those that it forks.
//
//   - The process is stopped at each call, at its beginning and its end: some microseconds. Other methods cost nothing.
//   - Calls that are open when the probe comes are not told; nor are those that an exception or longjmp ends, and those
//     that never end.
//   - Of recursive calls, the outermost 16 of a thread are timed. Deeper ones, and calls of threads beyond 1024 that are
//     within the method at the same time, are counted as kernel_map_full_methods.
//   - Stacks are told apart by nothing: calls that are open while the thread goes to another stack (coroutines,
//     sigaltstack) and there calls the method may go untold.
//   - A method whose first instruction is the head of a loop is timed from the last time round.
//   - The probe is blind once the process's main thread has ended before the others.
//
// It needs Options.Watch, and works from Linux 5.10 on. Path is read once. The probe lives until it is closed, or the
// Recorder stops, whatever becomes of the process. Fails with ErrNoProbe, ErrNoProcess, ErrNoWatch, os.ErrClosed after
// Stop, or with what the kernel says.
func (r *Recorder) WatchMethod(pid int, m Method, limit time.Duration, cookie uint32) (*Probe, error) {
	fail := func(err error) (*Probe, error) {
		return nil, fmt.Errorf("watch the method at %#x of %s in process %d: %w", m.Address, m.Path, pid, explain(err))
	}
	if r.watch == nil {
		return fail(ErrNoWatch)
	}
	if limit < 0 {
		return fail(fmt.Errorf("the limit is %v", limit))
	}
	if err := checkProcess(pid); err != nil {
		return fail(err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	places, err := findPlaces(m, machine)
	if err != nil {
		return fail(err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.transport.isStopped() {
		return fail(os.ErrClosed)
	}
	p := &Probe{r: r}
	programs, err := p.load(pid, limit, cookie)
	if err == nil {
		err = p.attach(pid, m.Path, places, programs)
	}
	if err != nil {
		return fail(errors.Join(err, p.close()))
	}
	r.probes[p] = struct{}{}
	return p, nil
}

// load makes the probe's own copy of the programs. r.mu is held, as by the rest.
func (p *Probe) load(pid int, limit time.Duration, cookie uint32) (map[string]*ebpf.Program, error) {
	spec, err := loadProbe()
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	for name, value := range map[string]any{"limit_ns": uint64(limit), "process": uint32(pid), "cookie": cookie} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	if err := p.r.fit(spec); err != nil {
		return nil, err
	}
	shared := map[string]*ebpf.Map{}
	for name, m := range spec.Maps {
		if own, ok := p.r.maps[name]; ok {
			shared[name] = own
			m.MaxEntries = own.MaxEntries()
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, fmt.Errorf("load the programs: %w", err)
	}
	programs := coll.Programs
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		p.own = append(p.own, programs[name])
		p.progs = append(p.progs, programs[name])
	}
	for _, m := range coll.Maps {
		p.own = append(p.own, m)
	}
	return programs, nil
}

// attach begins with the ends, so that no call begins whose end is not seen.
func (p *Probe) attach(pid int, path string, places methodPlaces, programs map[string]*ebpf.Program) error {
	gone, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_exit", Program: programs["on_thread_end"]})
	if err != nil {
		return fmt.Errorf("attach to the end of threads: %w", err)
	}
	p.hooks = append(p.hooks, hook{"sched_process_exit", gone})
	exe, err := link.OpenExecutable(path)
	if err != nil {
		return err
	}
	for _, offset := range append(slices.Clone(places.ends), places.entry) {
		prog := programs["on_leave"]
		if offset == places.entry {
			prog = programs["on_enter"]
		}
		l, err := exe.Uprobe("", prog, &link.UprobeOptions{Address: offset, PID: pid})
		if errors.Is(err, link.ErrNotSupported) || errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: this kernel has no uprobes (CONFIG_UPROBE_EVENTS), or not at this instruction (braid doctor: uprobes): %w", ErrNoProbe, err)
		}
		if err != nil {
			return fmt.Errorf("put a breakpoint at offset %#x: %w", offset, err)
		}
		p.hooks = append(p.hooks, hook{fmt.Sprintf("offset %#x", offset), l})
	}
	return nil
}

// Close takes the breakpoints out of the process. Events that are in the ring already are still read. Closing twice, or
// after the Recorder, does nothing. The kernel waits for a while at each breakpoint, seconds in all on a busy machine, and
// WatchMethod, Lost, Stop and Close of the Recorder wait with it.
func (p *Probe) Close() error {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	delete(p.r.probes, p)
	return p.close()
}

func (p *Probe) close() error {
	err := p.detach()
	misses, missErr := p.missed()
	p.r.probeMisses += misses
	errs := []error{err, missErr}
	for _, c := range p.own {
		errs = append(errs, c.Close())
	}
	p.own, p.progs = nil, nil
	return errors.Join(errs...)
}

// detach removes the hooks, that at the beginning first.
func (p *Probe) detach() error {
	var errs []error
	for _, h := range slices.Backward(p.hooks) {
		if err := h.link.Close(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s: %w", h.name, err))
		}
	}
	p.hooks = nil
	return errors.Join(errs...)
}

// missed returns how many runs of the programs the kernel has left out.
func (p *Probe) missed() (n uint64, err error) {
	for _, prog := range p.progs {
		stats, statsErr := prog.Stats()
		if statsErr != nil {
			return n, fmt.Errorf("read a probe's misses: %w", statsErr)
		}
		n += stats.RecursionMisses
	}
	return n, nil
}

// missedProbes is missed of all probes that there are and were.
func (r *Recorder) missedProbes() (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.probeMisses
	for p := range r.probes {
		n, err := p.missed()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
