package recorder

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Summary is one line on what was recorded and what was lost.
func (r *Result) Summary(output string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records of %s", r.Records, plural(r.Threads, "thread"))
	if r.Wrapped > 0 {
		fmt.Fprintf(&b, " (the newest: %s filled up)", plural(r.Wrapped, "ring"))
	}
	if r.KernelEvents > 0 {
		fmt.Fprintf(&b, ", %d kernel events", r.KernelEvents)
	}
	b.WriteString(r.sampleSummary())
	if len(r.Lost) == 0 {
		b.WriteString(", nothing lost")
	} else {
		b.WriteString("; lost:")
		for i, name := range slices.Sorted(maps.Keys(r.Lost)) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s %d", name, r.Lost[name])
		}
	}
	fmt.Fprintf(&b, ": %s (%s)", output, size(r.Bytes))
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func size(n uint64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
