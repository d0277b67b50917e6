package programs

import (
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// soundness is what a trace of many processes says.
type soundness struct {
	processes map[uint32]bool
	threads   int
	stats     inline.Stats
	calls     map[string]uint64 // by name
	open      int               // the most methods that were open when a thread ended
}

// called reports whether a function was called. name may leave out its parameters.
func (s *soundness) called(name string) bool {
	for n := range s.calls {
		if n == name || strings.HasPrefix(n, name+"(") {
			return true
		}
	}
	return false
}

// examine decodes all of a trace and checks what must be true of any: nothing is damaged, every method has a symbol,
// every end is that of the innermost method, and of each method that ended, or that control came back into, the
// beginning is there, unless it was overwritten or is in the records of the process that this one was forked from.
func examine(t *testing.T, file string) soundness {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	overwritten := map[uint32]bool{} // by thread
	for _, h := range r.RingHeaders() {
		if h.Flags&tracefile.RingComplete == 0 {
			overwritten[h.Tid] = true
		}
	}
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Problems) > 0 || len(r.Problems()) > 0 {
		t.Fatalf("problems %v %v", tr.Problems, r.Problems())
	}
	first := map[*timeline.Space]*timeline.Thread{} // a forked process shares the space of the first one
	begun := map[uint32]*timeline.Thread{}          // by process
	for _, th := range tr.Threads {
		if f := first[th.Space]; f == nil || th.Begin < f.Begin {
			first[th.Space] = th
		}
		if f := begun[th.Pid]; f == nil || th.Begin < f.Begin {
			begun[th.Pid] = th
		}
	}
	forked := forks(tr)
	s := soundness{processes: map[uint32]bool{}, threads: len(tr.Threads), calls: map[string]uint64{}}
	for _, th := range tr.Threads {
		s.processes[th.Pid] = true
		inherits := th.Pid != first[th.Space].Pid || forked[th.Pid] && th.Space == begun[th.Pid].Space
		s.add(t, tr, th, !overwritten[th.Tid] && !inherits)
	}
	return s
}

// forks are the processes that have modules of their own in the trace, and yet the first of them from their parent: it
// had executed a program after it was forked itself.
func forks(tr *timeline.Trace) map[uint32]bool {
	parent := map[int]int{}
	for _, p := range tr.Processes.Processes {
		parent[p.Pid] = p.PPid
	}
	type place struct {
		pid  int
		path string
		bias uint64
	}
	places := map[place]bool{}
	for _, m := range tr.Modules {
		places[place{m.Pid, m.Path, m.Bias}] = true
	}
	found := map[uint32]bool{}
	for _, m := range tr.Modules {
		if m.Since == 0 && places[place{parent[m.Pid], m.Path, m.Bias}] {
			found[uint32(m.Pid)] = true
		}
	}
	return found
}

// add examines one thread. whole says that its records are there from its beginning.
func (s *soundness) add(t *testing.T, tr *timeline.Trace, th *timeline.Thread, whole bool) {
	t.Helper()
	counts := map[uint32]uint64{}
	var stack []uint32
	open := 0
	j := tr.Joiner(th)
	err := j.Edges(tr.Segments(th), func(edges []timeline.Edge) error {
		for _, e := range edges {
			switch {
			case e.Begin:
				stack = append(stack, e.Method)
				if e.Flags&inline.CutStart == 0 {
					counts[e.Method]++
				}
			case len(stack) == 0 || stack[len(stack)-1] != e.Method:
				t.Fatalf("thread %d of %s: %s is not the innermost and ends", th.Tid, th.Name, th.Space.Name(e.Method).Name)
			default:
				stack = stack[:len(stack)-1]
				if e.Flags&inline.CutEnd != 0 {
					open++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for m, n := range counts {
		name := th.Space.Name(m)
		if !name.Resolved && (whole || name.Name != timeline.UnknownName) {
			t.Errorf("thread %d of %s: %d calls of a method without a symbol: %s", th.Tid, th.Name, n, name.Name)
		}
		s.calls[name.Name] += n
	}
	// Where older records were overwritten, the first one may be half a record.
	if j.Stats.Damaged > 1 || whole && j.Stats.Damaged > 0 {
		t.Errorf("thread %d of %s: %d damaged records", th.Tid, th.Name, j.Stats.Damaged)
	}
	if whole && j.Stats.LostResumes+j.Stats.Orphans > 0 {
		t.Errorf("thread %d of %s: no beginning of what ended or was resumed: %+v", th.Tid, th.Name, j.Stats)
	}
	if len(stack) > 0 {
		t.Errorf("thread %d of %s: %d methods without an end", th.Tid, th.Name, len(stack))
	}
	if whole {
		s.open = max(s.open, open)
	}
	s.stats.Add(j.Stats)
}
