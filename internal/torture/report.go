package torture

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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

// WriteTable writes how many programs of each suite passed, in Markdown: a row for each suite and compiler, a column for
// each level. A cell says how many pass without stubs, with them, with them recorded, and have the right trace; one
// number if these are the same.
func WriteTable(w io.Writer, results []Result) error {
	levels := append(slices.Clone(Levels), OwnLevel)
	rows, sums := map[[2]string]map[string]*tally{}, map[[2]string]*tally{}
	for i := range results {
		r := &results[i]
		for _, key := range [][2]string{{r.Suite, r.Compiler}, {"~all", ""}} {
			if rows[key] == nil {
				rows[key], sums[key] = map[string]*tally{}, &tally{}
			}
			if rows[key][r.Level] == nil {
				rows[key][r.Level] = &tally{}
			}
			rows[key][r.Level].add(r)
			sums[key].add(r)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| suite | compiler | %s | fail without | functions | without stubs |\n", strings.Join(levels, " | "))
	fmt.Fprintf(&b, "|---|---|%s---:|---:|---:|\n", strings.Repeat("---:|", len(levels)))
	for _, k := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&b, "| %s | %s |", strings.TrimPrefix(k[0], "~"), k[1])
		for _, l := range levels {
			fmt.Fprintf(&b, " %s |", rows[k][l].cell())
		}
		fmt.Fprintf(&b, " %d | %d | %d |\n", sums[k].unsupported, sums[k].functions, sums[k].skipped)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (y *tally) cell() string {
	if y == nil {
		return ""
	}
	plain := y.cases - y.unsupported
	off := plain - y.build - y.off
	on := off - y.on
	right := on - y.trace
	if right == plain {
		return fmt.Sprint(plain)
	}
	return fmt.Sprintf("%d, %d, %d, %d", plain, off, on, right)
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
