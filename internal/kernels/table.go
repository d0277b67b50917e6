package main

import (
	"fmt"
	"os"
	"strings"
)

// The table is between these lines of the page.
const (
	tableBegin = "<!-- make test-kernels writes this table -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

func runOf(name string) run {
	for _, r := range runs {
		if r.name == name {
			return r
		}
	}
	panic("no run " + name)
}

// cell is judge where there is something to try.
func (r results) cell(f feature, kernel string) cell {
	if kernel == native && runOf(f.run).guest {
		return nowhere
	}
	return r.judge(f)
}

// complete reports whether all works that was tried.
func (c choice) complete(r results, kernel string) bool {
	for _, f := range c.features() {
		if r.cell(f, kernel) != works && r.cell(f, kernel) != nowhere {
			return false
		}
	}
	return true
}

// table is Markdown: a row for each feature, a column for each kernel.
func table(found map[string]results) string {
	var b strings.Builder
	b.WriteString("| feature |")
	for _, k := range kernels {
		if k == native {
			k = "this machine, amd64"
		} else {
			k += ", arm64"
		}
		fmt.Fprintf(&b, " %s |", k)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(kernels)) + "\n")
	for _, f := range features {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, k := range kernels {
			c := notTried
			if r, ok := found[k]; ok {
				c = r.cell(f, k)
			}
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// writeTable replaces the table of a page.
func writeTable(page string, found map[string]results) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return fmt.Errorf("%s has no place for the table", page)
	}
	return os.WriteFile(page, []byte(before+tableBegin+table(found)+tableEnd+after), 0o644)
}
