package steptest

import (
	"runtime"
	"strings"
	"syscall"
	"testing"

	"braid/control"
	"braid/inline"
	layout "braid/inline/runtime"

	"golang.org/x/sys/unix"
)

// ringBytes is small, so that a pass may begin where the ring wraps.
const ringBytes = 4096

// mode is a way to be interrupted.
type mode struct {
	name    string
	handler int64 // of steps.c
	flags   int64 // of sigaction
	land    bool  // the handler may jump
	thread  bool  // each pass has a thread of its own
	cold    bool  // the first trace point of the pass is one that attends
	wrap    int64 // slots that are written before, if more than those of one call
	stop    bool  // the recorder asks for a stop just before the signal
	again   bool  // the handler gets the same signal again, before an instruction of its own
	silent  bool  // no signal at all
	once    bool  // tested with one compiler only
}

// The handlers of steps.c.
const (
	handlerPlain = iota
	handlerTraced
	handlerJump
	handlerTracedJump
	handlerExit
	handlerTracedExit
)

// bench is the program being stepped through and its recorder.
type bench struct {
	*tracee
	session *control.Session
	area    *control.Area
	decoder inline.Decoder
	buf     []uint64
}

// outcome is what a pass came to.
type outcome struct {
	path    []uint64 // where the call goes, if it was walked
	slots   []uint64
	records []record // between those that frame the pass
	zeros   int
	hole    int // before which of the records the unwritten slots are
	dropped int // newest slots that the recorder left out
	regs    unix.PtraceRegs
	floats  [9][16]byte // st0, xmm0 to xmm7
	sp      uint64      // the stack pointer at the function's first instruction
}

// newBench starts a program and stops it at its first mark. The calling goroutine must stay on its thread, which is
// pinned to one processor: then tracer and tracee take turns at once, and see one clock.
func newBench(t *testing.T, bin string) *bench {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test, since it is never unlocked
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	one := unix.CPUSet{}
	for i := range 1024 {
		if cpus.IsSet(i) {
			one.Set(i)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	s, err := control.NewSession(layout.PolicyAll, ringBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := &bench{tracee: startTracee(t, bin, s.Env()), session: s, decoder: inline.Decoder{Methods: inline.NewMethods(8)}}
	if _, mark := b.run(b.pid, 0); mark != "ready" {
		t.Fatalf("the program began with mark %q", mark)
	}
	areas, err := s.Areas()
	if err != nil {
		t.Fatal(err)
	}
	if len(areas) == 1 { // a program without stubs has none
		b.area = areas[0]
		t.Cleanup(b.area.Close)
		b.thread(b.pid).RequestStop()
		b.order(order{Target: int64(b.symbols["plain"])}) // its end answers
		b.run(b.pid, 0)
		b.run(b.pid, 0)
		b.run(b.pid, 0)
		if _, mark := b.run(b.pid, 0); mark != "ready" {
			t.Fatalf("the first call ended at mark %q", mark)
		}
	}
	return b
}

func (b *bench) thread(tid int) *control.Thread {
	b.t.Helper()
	for _, th := range b.area.Threads() {
		if th.Tid == tid {
			return th
		}
	}
	b.t.Fatalf("thread %d is not registered", tid)
	return nil
}

// pass calls a function, and delivers a signal before instruction n of its path. Without a path it finds the path, and
// delivers none.
func (b *bench) pass(target string, m mode, path []uint64, n int) (o outcome) {
	b.t.Helper()
	do := order{Target: int64(b.symbols[target]), Handler: m.handler, Flags: m.flags, Warm: max(m.wrap/2, 1)}
	if do.Target == 0 {
		b.t.Fatalf("no function %s", target)
	}
	if m.cold {
		do.Warm = 0
	}
	if m.land {
		do.Land = 1
	}
	if m.thread {
		do.Thread = 1
	} else if b.area != nil {
		b.thread(b.pid).Start()
	}
	b.order(do)
	tid, mark := b.run(b.pid, 0)
	if mark != "begin" {
		b.t.Fatalf("%s: mark %q at the beginning", target, mark)
	}
	if tid != b.pid {
		b.settle()
	}
	o.sp = b.regs(tid).Rsp - 8
	if path == nil {
		o.path = b.walk(tid, "end_mark")
		m.silent, m.stop, m.again = true, false, false
	} else {
		b.reach(tid, path, n)
	}
	if m.stop {
		b.thread(tid).RequestStop()
	}
	signal := syscall.SIGUSR1
	if m.silent {
		signal = 0
	}
	if m.again { // stops at the handler's first instruction
		if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(tid), 0, uintptr(signal), 0, 0); e != 0 {
			b.t.Fatal(e)
		}
		b.trapped(tid)
		for range 1 + n*7%60 {
			b.step(tid)
		}
	}
	at, mark := b.run(tid, signal)
	if mark == "end" {
		o.regs, o.floats = b.regs(at), b.floats(at)
		at, mark = b.run(at, 0)
	}
	if mark == "after" {
		if b.area != nil && !m.stop {
			b.thread(at).RequestStop()
		}
		at, mark = b.run(at, 0)
	}
	if mark != "ready" || at != b.pid {
		b.t.Fatalf("%s %s %d: mark %q at the end", target, m.name, n, mark)
	}
	if tid != b.pid {
		b.reap(tid)
	}
	if b.area != nil {
		b.collect(tid, m, &o)
	}
	return o
}

// collect reads what was recorded, and has the decoder check it.
func (b *bench) collect(tid int, m mode, o *outcome) {
	b.t.Helper()
	th := b.thread(tid)
	seg, err := th.Collect(b.buf)
	if err != nil {
		b.t.Fatal(err)
	}
	th.Release()
	b.buf, o.slots, o.dropped = seg.Slots, seg.Slots, seg.DroppedNewest
	if !seg.Exact || !seg.Complete && m.wrap == 0 {
		b.t.Errorf("exact %v, complete %v", seg.Exact, seg.Complete)
	}
	whole := seg.Slots
	if !seg.Complete {
		whole = whole[len(whole)-200:] // the oldest record may be half
	}
	records, zeros, hole, err := parse(whole, b.names)
	if err != nil {
		b.t.Errorf("%v in %s", err, text(records))
	}
	for i := 1; i < len(records); i++ {
		if int32(records[i].time-records[i-1].time) < 0 {
			b.t.Errorf("record %d is earlier than the one before: %s", i, text(records))
		}
	}
	o.records, o.zeros, o.hole = records, zeros, hole
	for i := len(records) - 1; i > 0 && !m.cold; i-- {
		if records[i-1].what == "warm" && records[i].what == "-" {
			o.records, o.hole = records[i+1:], hole-i-1
			break
		}
	}
	d, err := b.decoder.Decode(&seg.Segment, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if s := d.Stats; s.Damaged+s.Ambiguous+s.BackSteps+s.LostResumes != 0 || seg.Complete && (s.Orphans != 0 || s.Unwritten != uint64(zeros)) {
		b.t.Errorf("the decoder found %+v in %s", s, text(records))
	}
	if open := b.open(&d); !m.stop && m.handler < handlerExit && open != "closing" {
		b.t.Errorf("the decoder takes %q for open at the end of %s", open, text(records))
	}
}

// open lists the methods that are open at the end of a segment.
func (b *bench) open(d *inline.Decoded) string {
	stack := append([]uint32(nil), d.Open...)
	for _, e := range d.Events {
		switch e.Kind {
		case inline.KindEntry, inline.KindReentered:
			stack = append(stack, e.Method)
		case inline.KindExit, inline.KindUnwound, inline.KindSuspended:
			stack = stack[:len(stack)-1]
		}
	}
	var names []string
	for _, m := range stack {
		low := uint32(b.decoder.Methods.Row(m).Addr)
		for a, n := range b.names {
			if uint32(a) == low {
				names = append(names, n)
			}
		}
	}
	return strings.Join(names, " ")
}
