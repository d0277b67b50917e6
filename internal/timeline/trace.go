package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"braid/internal/tracefile"
)

// Trace is a trace file put on the timeline: everything but the rings is loaded, those are decoded thread by thread
// when asked for.
type Trace struct {
	File      *tracefile.Reader
	Meta      *tracefile.Meta
	Processes *tracefile.Processes
	Modules   []tracefile.Module
	// Clock is nil if the file has no usable samples. Then the rings can not be placed, and Threads have no segments.
	Clock   *Clock
	Counter tracefile.Counter
	Kernel  *Kernel
	// Threads are those that have records, in order of process and thread number.
	Threads []*Thread
	// Lost counts what is missing, by name: what the recorder counted, and what was found since.
	Lost map[string]uint64
	// Hooks are the kernel hooks that were missing when it was recorded.
	Hooks []string
	// Problems are what does not stop the reading: damage to the file is in File.Problems instead.
	Problems []error

	spaces map[spaceKey]*Space
	buf    []byte
}

// Thread is a thread with records, of one program: a thread whose process executed another one is one Thread for each,
// in order of time.
type Thread struct {
	Pid, Tid uint32
	Name     string
	Space    *Space
	// Begin and End bound its records, CLOCK_BOOTTIME ns.
	Begin, End int64

	rings []ringRef
}

type ringRef struct {
	section    *tracefile.Section
	continues  bool
	begin, end uint64 // counter
}

// Load puts a file on the timeline. It reads all kernel events once. It fails only if nothing at all can be shown;
// other problems are listed in the Trace.
func Load(r *tracefile.Reader) (*Trace, error) {
	t := &Trace{File: r, spaces: make(map[spaceKey]*Space)}
	steps := []func() error{
		t.loadMeta,
		func() (err error) { t.Processes, err = r.Processes(); return },
		func() (err error) { t.Modules, err = r.Modules(); return },
		t.loadClock, t.loadLost, t.loadSpaces,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("load trace: %w", err)
		}
	}
	t.loadThreads()
	if err := t.loadKernel(); err != nil {
		return nil, fmt.Errorf("load trace: %w", err)
	}
	return t, nil
}

func (t *Trace) loadMeta() (err error) {
	if t.Meta, err = t.File.Meta(); errors.Is(err, tracefile.ErrNoSection) {
		t.Meta, err = &tracefile.Meta{}, nil // cut off, or damaged: File.Problems says so
	}
	return err
}

func (t *Trace) loadClock() error {
	c, err := t.File.Clock()
	if errors.Is(err, tracefile.ErrNoSection) {
		c, err = &tracefile.Clock{}, nil
	}
	if err != nil {
		return err
	}
	t.Counter = c.Counter
	samples := make([]ClockSample, 0, len(c.Samples))
	for _, s := range c.Samples {
		samples = append(samples, ClockSample{Before: s.Before, After: s.After, Ns: int64(min(s.BootNs, 1<<62))})
	}
	if t.Clock, err = NewClock(samples, c.Frequency); err != nil {
		t.Problems = append(t.Problems, fmt.Errorf("method records can not be placed in time: %w", err))
	}
	return nil
}

func (t *Trace) loadLost() error {
	l, err := t.File.Lost()
	if err != nil {
		return err
	}
	t.Lost, t.Hooks = l.Counts, l.Hooks
	return nil
}

// lose adds to a lost count.
func (t *Trace) lose(name string, n uint64) {
	if n > 0 {
		t.Lost[name] += n
	}
}

func (t *Trace) loadThreads() {
	if t.Clock == nil {
		return
	}
	type key struct {
		pid, tid uint32
		space    *Space
	}
	byKey := make(map[key]*Thread)
	last := make(map[key]uint32)
	clock := t.Clock.Cursor()
	for section, h := range t.File.RingHeaders() {
		k := key{h.Pid, h.Tid, t.space(int(h.Pid), h.Begin)}
		th := byKey[k]
		if th == nil {
			th = &Thread{Pid: h.Pid, Tid: h.Tid, Space: k.space, Begin: clock.Ns(h.Begin)}
			byKey[k] = th
			t.Threads = append(t.Threads, th)
		}
		th.Name = h.Comm()
		th.Begin, th.End = min(th.Begin, clock.Ns(h.Begin)), max(th.End, clock.Ns(h.End))
		th.rings = append(th.rings, ringRef{
			section: section, begin: h.Begin, end: h.End,
			continues: h.Flags&tracefile.RingContinues != 0 && len(th.rings) > 0 && h.Sequence == last[k]+1,
		})
		last[k] = h.Sequence
		t.lose("ring_slots_overwritten", h.DroppedOldest)
		t.lose("ring_slots_uncertain", h.DroppedNewest)
	}
	slices.SortFunc(t.Threads, func(a, b *Thread) int {
		return cmp.Or(cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Tid, b.Tid), cmp.Compare(a.Begin, b.Begin))
	})
}

func (t *Trace) loadKernel() error {
	window := make(map[uint32]*Thread)
	for _, th := range t.Threads {
		if w := window[th.Tid]; w != nil { // a number that was used twice
			window[th.Tid] = &Thread{Begin: min(w.Begin, th.Begin), End: max(w.End, th.End)}
			continue
		}
		window[th.Tid] = th
	}
	var initial []InitialThread
	for _, th := range t.Processes.Threads {
		in := InitialThread{Tid: uint32(th.Tid), Tgid: uint32(th.Pid), At: int64(min(th.StateNs, 1<<62))}
		if n := len(th.Names); n > 0 {
			in.Name = th.Names[n-1]
		}
		if th.State != "" {
			in.State = StateOfProc(th.State[0])
		}
		initial = append(initial, in)
	}
	t.Kernel = NewKernel(KernelOptions{
		Machine: NewMachine(t.Meta.Processors),
		Begin:   int64(min(t.Meta.Start.BootNs, 1<<61)), End: int64(min(t.Meta.End.BootNs, 1<<61)),
		Keep: func(tid uint32) (from, to int64) {
			if w := window[tid]; w != nil {
				return w.Begin, max(w.End, w.Begin+1)
			}
			return 0, 0
		},
	}, initial)
	for chunk, err := range t.File.Events() {
		if err != nil {
			return err
		}
		if err := t.Kernel.Push(chunk); err != nil {
			return err // tracefile gives whole events only
		}
	}
	t.Kernel.Finish()
	st := t.Kernel.Stats()
	t.lose("kernel_events_damaged", st.Damaged)
	t.lose("kernel_events_unsorted", st.Unsorted)
	t.lose("kernel_states_repaired", st.Repaired)
	t.lose("kernel_wakeups_missed", st.MissedWakeups)
	t.lose("kernel_waits_unkept", st.WaitStats.Beyond+st.BinderStats.Beyond)
	return nil
}

// Segments reads a thread's ring segments one at a time, into one buffer. A damaged one is left out, and counted as
// lost.
func (t *Trace) Segments(th *Thread) Segments {
	return func(yield func(*Segment, error) bool) {
		whole := true
		clock := t.Clock.Cursor()
		for _, ref := range th.rings {
			ring, buf, err := t.File.Ring(ref.section, t.buf)
			t.buf = buf
			switch {
			case errors.Is(err, tracefile.ErrChecksum), errors.Is(err, tracefile.ErrContent):
				t.lose("ring_segments_damaged", 1)
				whole = false
				continue
			case err != nil:
				yield(nil, err)
				return
			case ring.End < ring.Begin:
				t.lose("ring_segments_damaged", 1)
				whole = false
				continue
			}
			seg := &Segment{Segment: ring.Segment(), Continues: ref.continues && whole}
			whole = true
			if a := t.Kernel.Thread(th.Tid); a != nil && a.End >= clock.Ns(ring.Begin) && a.End < clock.Ns(ring.End) {
				seg.Ended = a.End // the recorder only saw later that it had gone
			}
			if !yield(seg, nil) {
				return
			}
		}
	}
}

// Joiner returns a Joiner for the thread's method records. Threads with the same Space can share one.
func (t *Trace) Joiner(th *Thread) *Joiner {
	return &Joiner{Clock: t.Clock, Methods: th.Space.Methods, owners: th.Space.owners}
}

// Activity is what the kernel events say of a thread with records, or nil.
func (t *Trace) Activity(th *Thread) *Activity { return t.Kernel.Thread(th.Tid) }
