package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"braid/internal/cpus"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// The units that Options.Units can name.
const (
	UnitSched = "sched"
	UnitIO    = "io"
	UnitWait  = "wait"
)

const (
	defaultRingBytes = 8 << 20
	maxRingBytes     = 1 << 30
)

// Options say what to load. The zero value loads every unit with an 8 MiB ring.
type Options struct {
	// Units are the names of the units, UnitSched, UnitIO and UnitWait; nil means all.
	Units []string
	// RingBytes is the size of the ring buffer, rounded up to a power of two and a page; 0 means 8 MiB. A context
	// switch takes 64 bytes, a wake-up too. On Linux 5.10 it is locked memory.
	RingBytes int
	// BTFPath names a file with the running kernel's types (raw BTF or an ELF file with .BTF), for kernels without
	// /sys/kernel/btf/vmlinux. With it, programs attach to raw tracepoints, which costs the traced program some more.
	BTFPath string
	// CPUs are the machine's processors, for which ones are stronger than which; nil reads them now, and which are
	// online all along.
	CPUs []cpus.CPU
	// Watch, if not nil, announces processes and lets those that are added have limits and histograms. Waits and
	// switches come with UnitSched, the rest with UnitIO; Units without either only announce.
	Watch *WatchOptions
}

// Recorder is the loaded and attached kernel side. Its methods may be called from any goroutine; Read, Stop and Close
// may run at the same time. Close must be called in the end.
type Recorder struct {
	missing []string
	targets *targetTable
	watch   *watchTable // nil without Options.Watch
	// transport is nil until everything is loaded.
	transport transport
	// ringBytes is the size of the ring, or of all CPUs' buffers without it.
	ringBytes int
	can       capabilities
	online    onlineCheck
	maps      map[string]*ebpf.Map // shared by all units
	misses    []missCounter

	mu     sync.Mutex // guards the following
	hooks  []hook     // attached, in the order of attaching; nil after Stop
	own    []closer   // maps and programs, to be closed in this order
	closed bool
	probes map[*Probe]struct{} // those that are open
	// probeMisses is of those that were closed.
	probeMisses uint64
}

type closer interface{ Close() error }

// hook is one attached program.
type hook struct {
	name string
	link closer
}

// Load loads the units and attaches them; from then on processes given to AddTarget and AddPending are recorded. Hooks
// that the kernel does not have are listed by Missing. Errors match ErrPermission, ErrNoBTF, ErrKernelTooOld or
// ErrPidNamespace where one of these is the cause, and name the next step.
func Load(opts Options) (*Recorder, error) {
	units, err := chooseUnits(opts.Units, opts.Watch)
	if err != nil {
		return nil, err
	}
	if err := opts.Watch.check(); err != nil {
		return nil, err
	}
	ringBytes, err := ringSize(opts.RingBytes)
	if err != nil {
		return nil, err
	}
	taken, err := without()
	if err != nil {
		return nil, err
	}
	// First: before Linux 5.11, even trying takes locked memory. What it fails for may be something else, such as a filter
	// of system calls, which then shows in what follows.
	unlocked := rlimit.RemoveMemlock()
	if err := checkSystem(); err != nil {
		if unlocked != nil && errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w; or locked memory is short, whose limit could not be raised (braid doctor: memlock)", err)
		}
		return nil, err
	}
	if err := unlocked; err != nil {
		return nil, fmt.Errorf("raise the limit on locked memory (give CAP_SYS_RESOURCE, or ulimit -l unlimited; braid doctor: memlock): %w", err)
	}
	types, err := loadTypes(opts.BTFPath, taken)
	if err != nil {
		return nil, err
	}
	can, err := findCapabilities(taken)
	if err != nil {
		return nil, explain(err)
	}

	r := &Recorder{maps: map[string]*ebpf.Map{}, probes: map[*Probe]struct{}{}, ringBytes: ringBytes, can: can}
	l := loader{r: r, types: types, watch: opts.Watch, cpus: opts.CPUs}
	if err := l.load(units); err != nil {
		return nil, errors.Join(explain(err), r.Close())
	}
	if r.targets, err = newTargetTable(r.maps["targets"], r.maps["processes"]); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.openTransport(opts.Watch != nil); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if opts.Watch != nil {
		if r.watch, err = newWatchTable(r.maps); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if err := r.SetMatch(opts.Watch.Match); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if err := l.attach(); err != nil {
		return nil, errors.Join(explain(err), r.Close())
	}
	if r.maps["idleness"] != nil {
		visitCPUs()
		if opts.CPUs == nil {
			r.online.usable = r.maps["usable"]
		}
	}
	return r, nil
}

func chooseUnits(names []string, watch *WatchOptions) ([]unit, error) {
	units := []unit{processUnit}
	switch {
	case watch.adopts():
		units = []unit{watchUnit, processUnit}
	case watch != nil:
		units = append(units, watchUnit)
	}
	if names == nil {
		names = []string{UnitSched, UnitIO, UnitWait}
	}
	for _, name := range names {
		i := slices.IndexFunc(optionalUnits, func(u unit) bool { return u.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown unit %q of the kernel side: there are %s, %s and %s", name, UnitSched, UnitIO, UnitWait)
		}
		if !slices.ContainsFunc(units, func(u unit) bool { return u.name == name }) {
			u := optionalUnits[i]
			if watch.measures() && u.watchBTF != nil {
				u.loadBTF, u.loadRaw = u.watchBTF, u.watchRaw
			}
			units = append(units, u)
		}
	}
	return units, nil
}

func ringSize(n int) (int, error) {
	if n == 0 {
		n = defaultRingBytes
	}
	if n < 0 || n > maxRingBytes {
		return 0, fmt.Errorf("ring buffer of %d bytes: choose at most %d", n, maxRingBytes)
	}
	size := os.Getpagesize()
	for size < n {
		size *= 2
	}
	return size, nil
}

// wakeBytes is how full the ring is when the kernel wakes the reader.
func wakeBytes(ringBytes int) int { return ringBytes / 2 }

// openTransport begins to read. urgent: single events may wake the reader.
func (r *Recorder) openTransport(urgent bool) error {
	events := r.maps["events"]
	if !r.can.ring {
		t, err := newPerfRing(events, r.ringBytes, urgent)
		if err != nil {
			return err
		}
		r.transport = t
		return nil
	}
	t, err := newRing(events, wakeBytes(r.ringBytes), urgent)
	if err != nil {
		return err
	}
	r.transport = t
	return nil
}

// fit makes an object use the transport that this kernel has.
func (r *Recorder) fit(spec *ebpf.CollectionSpec) error {
	if err := spec.Variables["perf_array"].Set(!r.can.ring); err != nil {
		return fmt.Errorf("set perf_array: %w", err)
	}
	events := spec.Maps["events"]
	events.MaxEntries = uint32(r.ringBytes)
	if r.can.ring {
		return nil
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	events.Type, events.MaxEntries = ebpf.PerfEventArray, uint32(cpus)
	events.KeySize, events.ValueSize = 4, 4
	return nil
}

// Fallbacks says in sentences what this kernel lacks, and what is done in its place.
func (r *Recorder) Fallbacks() (notes []string) {
	if !r.can.ring {
		notes = append(notes, "this kernel has no BPF ring buffer (Linux 5.8): events come through perf buffers, which cost "+
			"the traced program more")
	}
	if !r.can.tpBTF {
		notes = append(notes, "this kernel cannot attach programs by its own types: they are on raw tracepoints, which cost "+
			"the traced program some more")
	}
	return notes
}

// Missing lists the hooks that this kernel does not offer, each as "unit/hook: reason".
func (r *Recorder) Missing() []string { return slices.Clone(r.missing) }

// Stop detaches all programs. What they recorded until then can still be read: Read returns io.EOF after it. Stopping
// twice does nothing.
func (r *Recorder) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopLocked()
}

func (r *Recorder) stopLocked() error {
	var errs []error
	for _, h := range slices.Backward(r.hooks) {
		if err := h.link.Close(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s: %w", h.name, err))
		}
	}
	r.hooks = nil
	for p := range r.probes {
		errs = append(errs, p.detach())
	}
	if r.transport != nil {
		r.transport.stop()
	}
	return errors.Join(errs...)
}

// Close detaches all programs and frees everything; events that were not read are gone. Closing twice does nothing.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	errs := []error{r.stopLocked()}
	if r.transport != nil {
		errs = append(errs, r.transport.close())
	}
	if r.targets != nil {
		r.targets.close()
	}
	if r.watch != nil {
		r.watch.close()
	}
	for p := range r.probes {
		errs = append(errs, p.close())
	}
	clear(r.probes)
	for _, c := range r.own {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

var _ closer = link.Link(nil)
