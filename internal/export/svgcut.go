package export

import (
	"fmt"

	"braid/inline"
	"braid/internal/timeline"
)

// cutMarks says at which ends a bar was cut.
func cutMarks(f timeline.SliceFlags) (start, end bool) {
	return f&inline.CutStart != 0, f&inline.CutEnd != 0
}

// cutText says how a bar's ends came about; of several bars, what is true of one of them.
func cutText(f timeline.SliceFlags) string {
	start, end := cutMarks(f)
	text := ""
	switch {
	case start && end:
		text = ", its beginning and its end were not recorded"
	case start:
		text = ", its beginning was not recorded"
	case end:
		text = ", its end was not recorded"
	}
	if f&inline.Reentered != 0 {
		text += ", goes on after a switch of stacks"
	}
	if f&inline.Suspended != 0 {
		text += ", suspended at the end"
	}
	if f&inline.Unwound != 0 {
		text += ", ended without an exit"
	}
	return text
}

// cuts draws a torn edge where a bar was cut, and a line where it ended without an exit.
func (d *drawing) cuts(b bar, w, height float64) {
	start, end := cutMarks(b.flags)
	tear := func(x float64) {
		q := num(height / 4)
		fmt.Fprintf(d, "<path class=\"cut\" d=\"M%s %sl2 %sl-4 %sl4 %sl-2 %s\"/>\n", num(gutter+x), num(d.y), q, q, q, q)
	}
	if start {
		tear(b.x0)
	}
	if end {
		tear(b.x0 + w)
	}
	if b.flags&inline.Unwound != 0 && b.count == 1 {
		fmt.Fprintf(d, "<path class=\"mark\" d=\"M%s %sv%s\"/>\n", num(gutter+b.x0+w), num(d.y), num(height))
	}
}
