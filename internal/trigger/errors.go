package trigger

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a file.
type Error struct {
	File         string
	Line, Column int // from 1; 0: the file as a whole
	Message      string
}

// Error renders it as compilers do.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are all things that are wrong with a file, in its order.
type Errors []*Error

// Error has one line for each.
func (e Errors) Error() string {
	var lines []string
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// near returns the word that somebody may have meant, or "".
func near(given string, allowed []string) string {
	fold := func(s string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	}
	if len(given) > 64 {
		return ""
	}
	best, least := "", 0
	for _, a := range allowed {
		d := distance(fold(given), fold(a))
		if d <= max(1, len(a)/3) && d < len(a) && (best == "" || d < least) {
			best, least = a, d
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace, or swap with the next one, to come from a to b (optimal string
// alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// quoted shortens what was found in a file, and makes it printable.
func quoted(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// didYouMean is the end of a message.
func didYouMean(given string, allowed []string) string {
	s := "allowed: " + strings.Join(allowed, ", ")
	if n := near(given, allowed); n != "" {
		return fmt.Sprintf("did you mean %q? %s", n, s)
	}
	return s
}
