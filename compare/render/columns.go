package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"braid/internal/wording"
)

// columns is a table for terminals: the first column is text, the others are figures and stand to the right.
type columns struct {
	rows  [][]string
	texts int // so many of the last columns are text too
}

func (c *columns) add(cells ...string) { c.rows = append(c.rows, cells) }

// line adds a line that is not part of the columns.
func (c *columns) line(s string) { c.rows = append(c.rows, []string{s}) }

// heading adds a line where probes on another instruction begin, and returns that instruction.
func (c *columns) heading(before, now string) string {
	if now != before && now != "" {
		c.line(wording.Printable("  probe on " + now))
	}
	return now
}

// write writes the table, no wider than most: where the first column has no room it stands on a line of its own.
func (c *columns) write(w io.Writer, most int) {
	var widths []int
	for _, r := range c.rows {
		for i, s := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if len(r) > 1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(s))
			}
		}
	}
	rest := 0
	for _, n := range widths[1:] {
		rest += n + 2
	}
	widths[0] = min(widths[0], most-rest)
	for _, r := range c.rows {
		if len(r) == 1 {
			fmt.Fprintln(w, cut(r[0], most))
			continue
		}
		var b strings.Builder
		for i, s := range r {
			n := widths[i]
			if i == 0 && utf8.RuneCountInString(s) > n {
				fmt.Fprintln(w, cut(s, most))
				s = ""
			}
			pad := strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
			switch {
			case i == 0:
				b.WriteString(s + pad)
			case i >= len(widths)-c.texts:
				b.WriteString("  " + s + pad)
			default:
				b.WriteString("  " + pad + s)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// cut shortens a text to n columns; an ellipsis says so.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}
