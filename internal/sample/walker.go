package sample

import (
	"slices"

	"braid/internal/tracefile"
	"braid/internal/unwind"

	"golang.org/x/sys/unix"
)

// maxUserFrames bounds a user stack.
const maxUserFrames = 512

// walker makes samples of what the kernel recorded.
type walker struct {
	s      *Sampler
	unwind unwind.Walker
	pid    uint32 // of the stack being walked
	time   uint64
	space  []uint64
}

func (w *walker) init(s *Sampler) {
	w.s = s
	w.unwind = unwind.Walker{Arch: arch, Limit: maxUserFrames, FramePointers: s.o.Stacks == tracefile.StackAuto,
		Find: func(addr uint64) unwind.Code { return s.spaces.code(w.pid, addr, w.time) }}
}

// sample turns a record into a sample, and notes what needs a name. It fails if the record makes no sense.
func (w *walker) sample(r record, time uint64) (t tracefile.Sample, ok bool) {
	q, space, ok := decodeSample(r.body, w.s.kind.copied, w.space[:0])
	w.space = space
	if !ok {
		return t, false
	}
	w.pid, w.time = q.pid, time
	t = tracefile.Sample{Time: time, Tid: q.tid, Tgid: q.pid, CPU: uint16(q.cpu), Weight: q.period}
	if r.misc&unix.PERF_RECORD_MISC_CPUMODE_MASK == unix.PERF_RECORD_MISC_KERNEL {
		t.Flags |= tracefile.SampleKernel
	}
	if len(q.kernel) > 0 {
		t.Kernel = slices.Clone(q.kernel)
		for i := range t.Kernel {
			if i > 0 {
				t.Kernel[i]--
			}
			w.s.kernel[t.Kernel[i]] = struct{}{}
		}
	}
	if w.s.kind.copied {
		w.tables(&t, &q)
	} else {
		w.pointers(&t, &q)
	}
	if w.executing(&t) {
		t.User, t.Way, t.End = nil, tracefile.StackNone, tracefile.EndNone
	}
	for _, addr := range t.User {
		w.s.spaces.note(q.pid, addr, time)
	}
	w.s.ends[t.End&15]++
	return t, true
}

// executing reports whether a process may still be in the call that executes its program: its registers are the old
// program's then, and its stack has gone: what is there now may be zeros, which look like the outermost frame.
func (w *walker) executing(t *tracefile.Sample) bool {
	s := w.s.spaces.of(t.Tgid)
	if t.Flags&tracefile.SampleKernel == 0 || len(t.User) > 2 {
		s.executing = false
	}
	return s.executing
}

// pointers takes over the frames that the kernel found by frame pointers.
func (w *walker) pointers(t *tracefile.Sample, q *raw) {
	if len(q.user) == 0 {
		return
	}
	t.Way, t.End = tracefile.StackFP, tracefile.EndChain
	t.User = slices.Clone(q.user)
	for i := range t.User {
		t.User[i] = arch.Strip(t.User[i])
		if i > 0 {
			t.User[i]--
		}
	}
	last := t.User[len(t.User)-1]
	switch c := w.s.spaces.code(q.pid, last, t.Time); {
	case c.Table != nil && c.Table.Outermost(last-c.Bias):
		t.End = tracefile.EndComplete
	case !c.Known && len(w.s.spaces.of(q.pid).parts) == 0:
		t.End = tracefile.EndGone
	}
}

var stackEnds = map[unwind.End]tracefile.StackEnd{
	unwind.Complete: tracefile.EndComplete, unwind.Cut: tracefile.EndCut, unwind.Depth: tracefile.EndDepth,
	unwind.NoTable: tracefile.EndNoTable, unwind.NoModule: tracefile.EndNoModule, unwind.Bad: tracefile.EndBad, unwind.Chain: tracefile.EndChain,
}

// tables walks the copied stack.
func (w *walker) tables(t *tracefile.Sample, q *raw) {
	switch q.abi {
	case unix.PERF_SAMPLE_REGS_ABI_NONE:
		return
	case unix.PERF_SAMPLE_REGS_ABI_32:
		t.Way, t.End = tracefile.StackDWARF, tracefile.EndABI
		t.User = []uint64{q.regs.PC}
		return
	}
	frames, end, tables, chained := w.unwind.Walk(nil, &q.regs, &q.stack)
	t.User, t.End, t.Way = frames, stackEnds[end], tracefile.StackDWARF
	switch {
	case chained && tables:
		t.Way = tracefile.StackAuto
	case chained:
		t.Way = tracefile.StackFP
	}
	if end == unwind.NoModule && len(w.s.spaces.of(q.pid).parts) == 0 {
		t.End = tracefile.EndGone
	}
}
