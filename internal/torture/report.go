package torture

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally counts one row of the table.
type tally struct{ cases, unsupported, build, off, on, trace, functions, skipped int }

func (y *tally) add(r *Result) {
	y.cases++
	y.functions += r.Functions
	y.skipped += len(r.Skipped)
	switch r.Verdict {
	case Unsupported:
		y.unsupported++
	case BuildFails:
		y.build++
	case OffFails:
		y.off++
	case OnFails:
		y.on++
	case TraceWrong:
		y.trace++
	}
}

// WriteTable writes how many programs of each suite passed, by compiler and level, in Markdown.
func WriteTable(w io.Writer, results []Result) error {
	rows := map[[3]string]*tally{}
	for i := range results {
		r := &results[i]
		for _, key := range [][3]string{{r.Suite, r.Compiler, r.Level}, {"all", "", ""}} {
			if rows[key] == nil {
				rows[key] = &tally{}
			}
			rows[key].add(r)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "| suite\t | compiler\t | level\t | programs\t | pass plain\t | pass untraced\t | pass traced\t | trace right\t | functions\t | skipped\t |\n")
	fmt.Fprint(t, "|---\t | ---\t | ---\t | ---:\t | ---:\t | ---:\t | ---:\t | ---:\t | ---:\t | ---:\t |\n")
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b [3]string) int {
		return cmp.Or(cmp.Compare(boolInt(a[0] == "all"), boolInt(b[0] == "all")), slices.Compare(a[:], b[:]))
	})
	for _, k := range keys {
		y := rows[k]
		plain := y.cases - y.unsupported
		off := plain - y.build - y.off
		on := off - y.on
		fmt.Fprintf(t, "| %s\t | %s\t | %s\t | %d\t | %d\t | %d\t | %d\t | %d\t | %d\t | %d\t |\n",
			k[0], k[1], k[2], y.cases, plain, off, on, on-y.trace, y.functions, y.skipped)
	}
	return t.Flush()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Reasons counts why functions got no stubs.
func Reasons(results []Result) map[string]int {
	n := map[string]int{}
	for _, r := range results {
		for _, s := range r.Skipped {
			_, why, _ := strings.Cut(s, ": ")
			n[why]++
		}
	}
	return n
}
