package timeline

import (
	"slices"
	"testing"
)

// A program's launcher had threads, and their last switches come after it has become the program.
func TestThreadsBeforeTheProgram(t *testing.T) {
	for _, c := range []struct {
		name, events string
		want         []uint32
	}{
		{"they are not the program's", `
			100 exec 10 from 10
			110 cpu 1: - -> 11
			120 cpu 1: 11 -> 12 X
			130 cpu 1: 12 -> - X
			140 wake 13 by 10
			150 cpu 1: - -> 13
			160 cpu 1: 13 -> - X`, []uint32{10}},
		{"a thread of its own", `
			100 exec 10 from 10
			110 fork 11 by 10
			120 cpu 1: - -> 11
			130 exit 11
			140 cpu 1: 11 -> - X`, []uint32{10, 11}},
		{"a number that one of its own took over", `
			100 exec 10 from 10
			110 cpu 1: - -> 11
			120 cpu 1: 11 -> - X
			130 fork 11 by 10
			140 cpu 1: - -> 11`, []uint32{10, 11}},
		{"the end of which was seen", `
			100 exec 10 from 10
			110 cpu 1: - -> 11
			120 exit 11
			130 cpu 1: 11 -> - X`, []uint32{10, 11}},
		{"attached, with nothing executed", `
			110 cpu 1: - -> 11
			120 cpu 1: 11 -> - X`, []uint32{11}},
		{"before the process executes another program", `
			110 cpu 1: - -> 11
			120 cpu 1: 11 -> - S
			130 exec 10 from 10
			140 cpu 1: - -> 11
			150 cpu 1: 11 -> - X`, []uint32{10, 11}},
	} {
		chunk, _ := script(c.events)
		k := NewKernel(KernelOptions{End: 1000}, nil)
		if err := k.Push(chunk); err != nil {
			t.Fatal(err)
		}
		k.Finish()
		var got []uint32
		for _, a := range k.Threads() {
			got = append(got, a.Tid)
			if last := len(a.Intervals) - 1; a.Tid != 10 && last >= 0 && a.Intervals[last].End > 150 && c.want[0] != 10 {
				t.Errorf("%s: the dead thread %d goes on: %v", c.name, a.Tid, a.Intervals)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: threads %v, not %v", c.name, got, c.want)
		}
	}
}
