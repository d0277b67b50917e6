package timeline

import (
	"maps"
	"slices"

	"braid/internal/tracefile"
)

// ProcessName is how a process is called, as far as the trace knows: the name of the process table, or else that of its
// first thread; empty if it has none.
func (t *Trace) ProcessName(pid uint32) string {
	if i := slices.IndexFunc(t.Processes.Processes, func(p tracefile.Process) bool { return p.Pid == int(pid) }); i >= 0 && t.Processes.Processes[i].Name != "" {
		return t.Processes.Processes[i].Name
	}
	if a := t.Kernel.Thread(pid); a != nil && a.Tgid == pid {
		return a.Name
	}
	return ""
}

// MethodsAt calls visit for each of times, CLOCK_BOOTTIME ns in ascending order, with the innermost method of a thread that
// was open then, by its index in the thread's Space. Times at which none was, or of which there are no records, are passed
// over. It decodes the thread's rings, and leaves Lost as it was: who sums the thread up counts what is missing.
func (t *Trace) MethodsAt(th *Thread, times []int64, visit func(i int, method uint32)) error {
	lost := maps.Clone(t.Lost)
	defer func() { t.Lost = lost }()
	var stack []uint32
	next := 0
	until := func(ns int64) {
		for ; next < len(times) && times[next] < ns; next++ {
			if n := len(stack); n > 0 {
				visit(next, stack[n-1])
			}
		}
	}
	return t.Joiner(th).Edges(t.Segments(th), func(edges []Edge) error {
		for i := range edges {
			e := &edges[i]
			until(e.Ns)
			if e.Begin {
				stack = append(stack, e.Method)
			} else { // edges nest
				stack = stack[:len(stack)-1]
			}
		}
		return nil
	})
}
