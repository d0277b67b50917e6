package programs

import (
	"testing"

	"braid/inline"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// pair is a caller and its callee, by their entries. The zero caller stands for all that has no stubs.
type pair struct{ caller, callee place }

// calls is what the trace of one process says that it called.
type calls struct {
	count map[place]uint64
	pairs map[pair]uint64
	// left are the methods that had not ended at the end; unwound those that ended by a jump out of them; cut those
	// whose beginning is not in the trace.
	left, unwound, cut map[place]uint64
	names              map[place]string
}

// readTrace decodes all threads of a trace that must be whole: rings that did not wrap, nothing lost, one process.
func readTrace(t *testing.T, file string) calls {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Lost) > 0 || len(tr.Problems) > 0 || len(r.Problems()) > 0 {
		t.Fatalf("lost %v, problems %v %v", tr.Lost, tr.Problems, r.Problems())
	}
	c := calls{map[place]uint64{}, map[pair]uint64{}, map[place]uint64{}, map[place]uint64{}, map[place]uint64{}, map[place]string{}}
	for _, th := range tr.Threads {
		if th.Pid != tr.Threads[0].Pid {
			t.Fatalf("records of processes %d and %d", th.Pid, tr.Threads[0].Pid)
		}
		places := map[uint32]place{}
		where := func(method uint32) place {
			p, ok := places[method]
			if !ok {
				p = locate(t, tr, th, method)
				places[method] = p
				c.names[p] = th.Space.Name(method).Name
			}
			return p
		}
		j := tr.Joiner(th)
		stack := []place{{}}
		err := j.Edges(tr.Segments(th), func(edges []timeline.Edge) error {
			for _, e := range edges {
				p := where(e.Method)
				if e.Begin {
					if e.Flags&(inline.CutStart|inline.Reentered) == 0 {
						c.count[p]++
						c.pairs[pair{stack[len(stack)-1], p}]++
					}
					stack = append(stack, p)
					continue
				}
				if stack[len(stack)-1] != p {
					t.Fatalf("%s ends while %s is the innermost", c.names[p], c.names[stack[len(stack)-1]])
				}
				stack = stack[:len(stack)-1]
				for flag, m := range map[timeline.SliceFlags]map[place]uint64{
					inline.CutEnd: c.left, inline.Unwound: c.unwound, inline.CutStart: c.cut,
				} {
					if e.Flags&flag != 0 {
						m[p]++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := j.Stats; s.Damaged+s.Orphans+s.LostResumes > 0 || len(stack) != 1 {
			t.Errorf("thread %d: %+v", th.Tid, s)
		}
	}
	return c
}

// locate finds the file that a method is in, and its address there.
func locate(t *testing.T, tr *timeline.Trace, th *timeline.Thread, method uint32) place {
	t.Helper()
	row := th.Space.Methods.Row(method)
	if row.State != inline.MethodKnown {
		t.Fatalf("method at %#x has no symbol", row.Addr)
	}
	for _, m := range tr.Modules {
		if m.Pid == int(th.Pid) && row.Addr >= m.Start && row.Addr < m.End {
			return place{objectName(m.Path), row.Addr - m.Bias}
		}
	}
	t.Fatalf("method at %#x is in no module", row.Addr)
	return place{}
}
