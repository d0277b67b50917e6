package sample

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// Each CPU's buffer holds what a thread that runs all the time makes in a quarter of a second, for when braid does not get a
// CPU itself. Without privileges the kernel gives perf_event_mlock_kb, 516 KiB, of which a page is its own.
const (
	minRing   = 512 << 10
	maxRing   = 16 << 20
	minPeriod = 4 * time.Millisecond
	maxPeriod = 50 * time.Millisecond
)

// Sampler samples processes. Launch, Attach, Notes and Stop may be called from any goroutine while Run runs in one of its
// own; Names, Lost and Count only after Run has returned. Close must be called in the end.
type Sampler struct {
	o    Options
	kind *kind

	mu     sync.Mutex
	rings  map[int]*ring  // by CPU
	events []int          // file descriptors
	began  map[int]uint64 // of each process that was attached to: when, CLOCK_BOOTTIME ns
	notes  []string
	stop   chan struct{}
	once   sync.Once

	spaces  *spaces
	walk    walker
	carried [][]byte // records that may have earlier ones in other rings, by their ring
	skew    uint64   // CLOCK_BOOTTIME - CLOCK_MONOTONIC, ns, for monotonic events
	kernel  map[uint64]struct{}
	lost    map[string]uint64
	count   atomic.Uint64
	ends    [16]uint64
}

// New prepares sampling and finds out what this machine and user can. Nothing is sampled yet. Errors match ErrPermission
// where that is the cause, and name the next step.
func New(o Options) (*Sampler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	k, err := choose(o)
	if err != nil {
		return nil, err
	}
	s := &Sampler{o: o, kind: k, notes: k.notes, rings: map[int]*ring{}, began: map[int]uint64{}, stop: make(chan struct{}), spaces: newSpaces(),
		kernel: map[uint64]struct{}{}, lost: map[string]uint64{}}
	s.walk.init(s)
	return s, nil
}

// Event says what makes samples, and Kernel whether they have kernel frames.
func (s *Sampler) Event() tracefile.SampleEvent { return s.kind.event }
func (s *Sampler) Kernel() bool                 { return s.kind.kernel }

// Notes are sentences for the user on what is missing.
func (s *Sampler) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notes...)
}

// Launch samples a process from the moment on that it executes a program, with all that it forks.
func (s *Sampler) Launch(pid int) error { return s.open(pid, unix.PerfBitEnableOnExec) }

// Attach samples a process that runs, with all its threads and all that it forks from now on. Children that it has
// already need an Attach of their own; one that it forked since then has inherited it, so that nothing is done.
func (s *Sampler) Attach(pid int) error {
	if s.inherits(pid) {
		return nil
	}
	if err := s.open(pid, 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fd := range s.events {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("sampling: start: %w", err)
		}
	}
	return nil
}

// open opens the events of all of a process's threads. What they create from then on inherits them; a thread that one
// without events creates meanwhile is missed.
func (s *Sampler) open(pid int, bits uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(procPath(uint32(pid), "task"))
	if err != nil {
		return fmt.Errorf("sampling: threads of process %d: %w", pid, err)
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := s.openThread(tid, bits); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func (s *Sampler) openThread(tid int, bits uint64) error {
	attr := s.kind.attr
	attr.Bits |= bits
	for cpu := range possibleCPUs() {
		a := attr
		fd, err := unix.PerfEventOpen(&a, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // the CPU is offline
		}
		if errors.Is(err, unix.EMFILE) {
			return fmt.Errorf("sampling: too many open files: each thread takes one for each CPU: raise ulimit -n: %w", err)
		}
		if err != nil {
			return fmt.Errorf("sampling: thread %d on CPU %d: %w", tid, cpu, err)
		}
		s.events = append(s.events, fd)
		if r := s.rings[cpu]; r != nil {
			if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd); err != nil {
				return fmt.Errorf("sampling: share the buffer of CPU %d: %w", cpu, err)
			}
			continue
		}
		r, err := newRing(fd, cpu, s.ringBytes())
		if err != nil {
			return fmt.Errorf("sampling: %w", err)
		}
		s.rings[cpu] = r
	}
	return nil
}

// possibleCPUs is the number of CPUs that this system may have.
func possibleCPUs() int {
	b, err := os.ReadFile("/sys/devices/system/cpu/possible")
	var first, last int
	if err == nil {
		if n, _ := fmt.Sscanf(string(b), "%d-%d", &first, &last); n == 2 && last < 1<<16 {
			return last + 1
		}
	}
	return max(1, unixOnline())
}

// recordBytes is about what a sample takes.
func (s *Sampler) recordBytes() int {
	n := 1024
	if s.kind.copied {
		n += s.o.StackBytes
	}
	return n
}

// ringBytes is the size of a CPU's buffer.
func (s *Sampler) ringBytes() int {
	size := minRing
	for size < maxRing && size < s.recordBytes()*s.o.Hz/4 {
		size *= 2
	}
	return size
}

// period is how often the rings are read: before they are half full.
func (s *Sampler) period() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.ringBytes()
	for _, r := range s.rings {
		size = min(size, len(r.data))
	}
	fill := time.Second * time.Duration(size/2) / time.Duration(s.recordBytes()*s.o.Hz)
	return max(minPeriod, min(maxPeriod, fill))
}

// Run hands samples to write until Stop is called and all has been read, or write fails. The samples belong to Run and
// are only valid during the call.
func (s *Sampler) Run(write func(*tracefile.Samples) error) error {
	if err := s.updateSkew(); err != nil {
		return err
	}
	for {
		last := false
		select {
		case <-s.stop:
			last = true
		case <-time.After(s.period()):
		}
		if err := s.drain(last, write); err != nil {
			return err
		}
		if last {
			s.countLost()
			return nil
		}
	}
}

// countLost asks the kernel how many samples were lost in all, of which the rings need not have told yet.
func (s *Sampler) countLost() {
	if s.kind.attr.Read_format != formatLost {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost uint64
	for _, fd := range s.events {
		var b [16]byte // value, lost
		if n, err := unix.Read(fd, b[:]); err == nil && n == len(b) {
			lost += le.Uint64(b[8:])
		}
	}
	if lost > s.lost["samples_lost"] {
		s.lost["samples_lost"] = lost
	}
}

// Stop ends sampling. Run returns soon afterwards.
func (s *Sampler) Stop() {
	s.once.Do(func() {
		s.mu.Lock()
		for _, fd := range s.events {
			unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0)
		}
		s.mu.Unlock()
		close(s.stop)
	})
}

// Close frees everything. Run must have returned, or never been called.
func (s *Sampler) Close() error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.rings {
		errs = append(errs, r.close())
	}
	for _, fd := range s.events {
		errs = append(errs, unix.Close(fd))
	}
	s.rings, s.events = nil, nil
	s.spaces.close()
	return errors.Join(errs...)
}

// Lost is what is missing, by names such as samples_lost.
func (s *Sampler) Lost() map[string]uint64 { return s.lost }

// Count returns how many samples were taken.
func (s *Sampler) Count() uint64 { return s.count.Load() }

// Incomplete returns how many samples have a user stack that is known not to reach its outermost frame.
func (s *Sampler) Incomplete() (n uint64) {
	for end, count := range s.ends {
		switch tracefile.StackEnd(end) {
		case tracefile.EndNone, tracefile.EndComplete, tracefile.EndChain:
		default:
			n += count
		}
	}
	return n
}

// updateSkew relates the events' clock to CLOCK_BOOTTIME. They differ by the time that the machine was suspended, so that
// samples taken within milliseconds of a suspension may be off by its length.
func (s *Sampler) updateSkew() error {
	if !s.kind.monotonic {
		return nil
	}
	var before, boot, after unix.Timespec
	for _, c := range []struct {
		id int32
		to *unix.Timespec
	}{{unix.CLOCK_MONOTONIC, &before}, {unix.CLOCK_BOOTTIME, &boot}, {unix.CLOCK_MONOTONIC, &after}} {
		if err := unix.ClockGettime(c.id, c.to); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
	}
	skew := uint64(boot.Nano() - (before.Nano()+after.Nano())/2)
	if diff := int64(skew - s.skew); diff > 100_000 || diff < -100_000 { // less is only the reading itself
		s.skew = skew
	}
	return nil
}
