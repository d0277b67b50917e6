package analysis

import (
	"testing"

	"braid/internal/timeline"
)

// statesOf sums self times with the timeline's own sweep.
func statesOf(t *testing.T, tr *timeline.Trace) map[string]map[string]int64 {
	t.Helper()
	out := map[string]map[string]int64{}
	for _, th := range tr.Threads {
		var table timeline.MethodTable
		if err := tr.Joiner(th).Sum(tr.Segments(th), tr.Activity(th), &table); err != nil {
			t.Fatal(err)
		}
		for i := range table.Rows {
			if table.Rows[i].Calls == 0 {
				continue
			}
			by := map[string]int64{}
			for s, ns := range table.Rows[i].Self.Ns {
				by[timeline.State(s).String()] += ns
			}
			out[th.Space.Name(uint32(i)).Name] = by
		}
	}
	return out
}
