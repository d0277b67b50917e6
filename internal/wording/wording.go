// Package wording writes numbers and names for people: in few columns, and safe for a terminal.
package wording

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Duration is a time in three digits and a unit, at most 6 columns.
func Duration(ns int64) string {
	v := float64(ns)
	switch {
	case ns == 0:
		return "0"
	case ns < 1000:
		return fmt.Sprintf("%dns", ns)
	case v < 999.5e3:
		return digits(v/1e3) + "us"
	case v < 999.5e6:
		return digits(v/1e6) + "ms"
	case v < 999.5e9:
		return digits(v/1e9) + "s"
	}
	return digits(v/3600e9) + "h"
}

// digits is a value of up to 999 in three digits.
func digits(v float64) string {
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Count is a number in at most 6 columns.
func Count(n uint64) string {
	v := float64(n)
	switch {
	case n < 1e6:
		return fmt.Sprint(n)
	case v < 999.5e6:
		return digits(v/1e6) + "M"
	}
	return digits(v/1e9) + "G"
}

// Size is a number of bytes in at most 7 columns.
func Size(n uint64) string {
	v, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return digits(v) + units[i]
}

// Percent is part of whole in percent, rounded; 0 of nothing.
func Percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return int64(float64(part)/float64(whole)*100 + 0.5)
}

// Printable replaces what a terminal could take for a command.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

const gap = "..."

// Fit cuts a text to n columns at its end.
func Fit(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}

// Shorten makes a method's name fit n columns: first without its parameters, then without its template arguments,
// then without its middle.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s, ')'); i > 0 && strings.TrimLeft(s[i+1:], " &") == "" || strings.HasSuffix(s, " const") && i > 0 {
		if j := opening(s[:i+1], '(', ')'); j > 0 {
			s = s[:j]
		}
	}
	if utf8.RuneCountInString(s) > n {
		s = withoutTemplates(s)
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - len(gap)) / 3 // the end says more than the namespaces
	return string(r[:head]) + gap + string(r[len(r)-(n-len(gap)-head):])
}

// opening is where the bracket opens that s ends with, or -1.
func opening(s string, open, closing byte) int {
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case closing:
			depth++
		case open:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// withoutTemplates leaves <> of each list of template arguments. Operators with < or > are left alone.
func withoutTemplates(s string) string {
	if strings.Contains(s, "operator<") || strings.Contains(s, "operator>") || strings.Contains(s, "operator->") ||
		strings.Count(s, "<") != strings.Count(s, ">") {
		return s
	}
	var b strings.Builder
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '<':
			if depth++; depth == 1 {
				b.WriteByte('<')
			}
		case '>':
			if depth--; depth == 0 {
				b.WriteByte('>')
			}
		default:
			if depth == 0 {
				b.WriteByte(s[i])
			}
		}
	}
	return b.String()
}

// Wrap writes a text in lines of width columns, the later ones indented by two.
func Wrap(w io.Writer, s string, width int) {
	column := 0
	for i, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && column+1+n > width:
			fmt.Fprint(w, "\n  ")
			column = 2
		case i > 0:
			fmt.Fprint(w, " ")
			column++
		}
		fmt.Fprint(w, word)
		column += n
	}
	fmt.Fprintln(w)
}
