package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the widest line that WriteText writes, in characters.
const Width = 80

// WriteJSON writes {"checks": [...]}.
func WriteJSON(w io.Writer, checks []Check) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Checks []Check `json:"checks"`
	}{checks})
}

// WriteText writes one paragraph a check, and a line that counts outcomes.
func WriteText(w io.Writer, checks []Check) error {
	var b strings.Builder
	count := make(map[Status]int)
	for _, c := range checks {
		count[c.Status]++
		wrap(&b, fmt.Sprintf("%-8s%-26s", c.Status, c.Title), c.Found)
		if c.Status == OK {
			continue
		}
		const indent = "        "
		if c.Lost != "" {
			wrap(&b, indent+"lost  ", c.Lost)
		}
		if c.Do != "" {
			wrap(&b, indent+"do    ", c.Do)
		}
	}
	fmt.Fprintf(&b, "\n%d checks: %d ok, %d warn, %d fail, %d unknown\n",
		len(checks), count[OK], count[Warn], count[Fail], count[Unknown])
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap writes text after a heading, with further lines below the text's start.
func wrap(b *strings.Builder, heading, text string) {
	b.WriteString(heading)
	indent := utf8.RuneCountInString(heading)
	room := Width - indent
	at := 0
	for _, word := range strings.Fields(printable(text)) {
		n := utf8.RuneCountInString(word)
		if at > 0 && at+1+n > room {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = 0
		}
		if at > 0 {
			b.WriteByte(' ')
			at++
		}
		for n > room { // a word, such as a path, that no line holds
			head := string([]rune(word)[:room])
			b.WriteString(head + "\n" + strings.Repeat(" ", indent))
			word, n = word[len(head):], n-room
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}

// printable replaces what a terminal might obey: some texts come from other programs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return '?'
		}
		return r
	}, s)
}
