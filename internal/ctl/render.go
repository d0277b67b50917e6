package ctl

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// width is how many columns the table takes at most.
const width = 80

// Render writes a status as a table of at most 80 columns. There are no escape sequences in it, whatever targets are called.
func Render(w io.Writer, s *Status) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		text := []rune(fmt.Sprintf(format, args...))
		b.WriteString(strings.TrimRight(string(text[:min(len(text), width)]), " ") + "\n")
	}
	d := &s.Daemon
	uptime := time.Duration(d.UptimeNs)
	share := 0.0
	if uptime > 0 {
		share = 100 * float64(d.CPUNs) / float64(d.UptimeNs)
	}
	line("braid %s  pid %d  up %s  cpu %.2f%%  memory %s  rings %s", clean(d.Version, 20), d.PID, span(uptime), share,
		size(int64(d.RSSBytes)), size(int64(d.RingBytes)))
	for i, l := range wrapped("kernel "+clean(d.Kernel, maxNote), width-7) {
		line("%*s%s", min(i, 1)*7, "", l)
	}
	if len(d.HooksMissing) > 0 {
		line("hooks missing: %s", clean(strings.Join(d.HooksMissing, ", "), width))
	}
	lost(line, "", d.Lost)
	line("")
	line("%7s %-18s %6s %-8s %7s %8s %7s %-10s", "PID", "PROGRAM", "UID", "STATE", "THREADS", "RECORDS", "FLUSHES", "TRIGGER")
	for _, t := range s.Targets {
		on := 0
		for _, th := range t.Threads {
			if th.On {
				on++
			}
		}
		line("%7d %-18s %6d %-8s %7s %8s %7d %-10s", t.PID, clean(t.Name, 18), t.UID, clean(t.State, 8),
			fmt.Sprintf("%d/%d", on, len(t.Threads)), count(t.Records), t.Flushes, clean(t.LastTrigger, 10))
		for _, th := range t.Threads {
			state := "off"
			if th.On {
				state = "on"
			}
			line("%7d   %-16s        %-8s %7s %8s  wraps %s, swaps %s", th.TID, clean(th.Name, 16), state, size(int64(th.RingBytes)),
				count(th.Records), count(th.Wraps), count(th.Swaps))
		}
		for _, l := range wrapped(clean(t.Note, maxNote), width-10) {
			line("          %s", l)
		}
		lost(line, "          ", t.Lost)
	}
	if len(s.Targets) == 0 {
		line("no targets")
	}
	if len(s.Triggers) > 0 {
		line("")
		line("%-40s %8s %10s  %s", "TRIGGER", "FIRED", "SUPPRESSED", "LAST")
		for _, t := range s.Triggers {
			last := "-"
			if !t.Last.IsZero() {
				last = span(s.Time.Sub(t.Last)) + " ago"
			}
			line("%-40s %8s %10s  %s", clean(t.Name, 40), count(t.Fired), count(t.Suppressed), last)
		}
	}
	line("")
	line("kept: %d traces, %s in %s", s.Kept.Traces, size(s.Kept.Bytes), clean(s.Kept.Dir, width))
	counts(line, "not kept: ", s.Kept.Refused)
	counts(line, "removed: ", s.Kept.Removed)
	_, err := io.WriteString(w, b.String())
	return err
}

// Clear is what a terminal needs before the next table of a live one.
const Clear = "\x1b[H\x1b[2J"

func lost(line func(string, ...any), indent string, m map[string]uint64) {
	counts(line, indent+"lost: ", m)
}

// counts writes names with their counts, over as many lines as they need.
func counts(line func(string, ...any), head string, m map[string]uint64) {
	text := head
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] == 0 {
			continue
		}
		item := clean(name, 40) + " " + count(m[name])
		switch {
		case text == head:
		case len([]rune(text))+len([]rune(item))+2 > width-1:
			line("%s,", text)
			text = strings.Repeat(" ", len(head))
		default:
			text += ", "
		}
		text += item
	}
	if text != head {
		line("%s", text)
	}
}

// maxNote bounds what a target can say of itself by its name.
const maxNote = 400

// wrapped breaks a text into lines of at most n columns, between words where it can.
func wrapped(s string, n int) []string {
	var out []string
	text := []rune(s)
	for len(text) > n {
		at := n
		for at > n/2 && text[at] != ' ' {
			at--
		}
		if text[at] != ' ' {
			at = n
		}
		out = append(out, string(text[:at]))
		if text = text[at:]; text[0] == ' ' {
			text = text[1:]
		}
	}
	if len(text) > 0 {
		out = append(out, string(text))
	}
	return out
}

// clean makes a foreign text printable and at most n columns long.
func clean(s string, n int) string {
	out := make([]rune, 0, n)
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = '?'
		}
		if out = append(out, r); len(out) > n {
			return string(append(out[:n-1], '…'))
		}
	}
	return string(out)
}

// size writes bytes in at most seven columns.
func size(n int64) string {
	f, unit := float64(n), 0
	for ; f >= 1000 && unit < 5; unit++ {
		f /= 1024
	}
	return digits(f, unit) + [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// count writes a number in at most five columns.
func count(n uint64) string {
	f, unit := float64(n), 0
	for ; f >= 999.5 && unit < 6; unit++ {
		f /= 1000
	}
	return digits(f, unit) + [...]string{"", "k", "M", "G", "T", "P", "E"}[unit]
}

func digits(f float64, unit int) string {
	if unit == 0 || f >= 99.5 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// span writes a time with the two largest units.
func span(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
