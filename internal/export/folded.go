package export

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"braid/internal/stacks"
	"braid/internal/timeline"
)

// Folded writes a trace's samples as folded stacks: a line for each different stack, with its thread's name, its frames from
// the outermost to the innermost, and how many samples had it. Frames are separated by semicolons. Those of the kernel end
// in "_[k]" and those of methods in "_[j]", as flamegraph.pl and its relatives tell the kernel and an application's own
// methods from the rest. The same trace gives the same bytes. It returns stacks.ErrNone if there are no samples.
func Folded(out io.Writer, tr *timeline.Trace) (c Counts, err error) {
	j, err := stacks.New(tr)
	if err != nil {
		return c, err
	}
	counts := map[string]uint64{}
	var labels []string // by function
	var line []byte
	err = j.Each(func(s *stacks.Sample) error {
		for len(labels) < len(j.Functions) {
			f := &j.Functions[len(labels)]
			labels = append(labels, foldable(f.Name)+[...]string{stacks.Native: "", stacks.Method: "_[j]", stacks.Kernel: "_[k]"}[f.Kind])
		}
		line = append(line[:0], foldable(j.Thread(s.Pid, s.Tid))...)
		for _, f := range s.Frames {
			line = append(append(line, ';'), labels[f.Func]...)
		}
		counts[string(line)]++
		return nil
	})
	if err != nil {
		return c, err
	}
	w := bufio.NewWriter(out)
	for _, l := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s %d\n", l, counts[l])
	}
	c.addSamples(j)
	if err := w.Flush(); err != nil {
		return c, fmt.Errorf("writing folded stacks: %w", err)
	}
	return c, nil
}

// foldable replaces what ends a frame or a line.
func foldable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case r < ' ' || r == 0x7f:
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
