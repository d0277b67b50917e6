package render

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
)

// drawing writes an SVG figure. All text goes through text and title, which escape it: names come from files that anybody
// can have written. Colours and fonts come from the page's style sheet, by classes.
type drawing struct {
	b             strings.Builder
	width, height float64
}

// em is about how wide a character is, as a share of the font's size: on the safe side, fonts differ.
const em = 0.6

// fontSize of labels, in the units of figures, which are shown in their own size.
const fontSize = 13

// Widths of figures: as wide as the page's text, and for telephones.
const (
	figureWidth = 976
	narrowWidth = 340
)

// textWidth is about how much room a label takes.
func textWidth(s string) float64 {
	return float64(len([]rune(s))) * fontSize * em
}

// px writes a coordinate to a tenth.
func px(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, px(x), px(y), px(max(w, 0)), px(max(h, 0)))
}

// text writes a label; class has start, middle or end for where x is.
func (d *drawing) text(class string, x, y float64, s string) {
	fmt.Fprintf(&d.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, px(x), px(y), html.EscapeString(s))
}

// group opens what belongs together; hint is shown when the pointer rests on it.
func (d *drawing) group(class, hint string) {
	fmt.Fprintf(&d.b, `<g class="%s">`, class)
	if hint != "" {
		fmt.Fprintf(&d.b, `<title>%s</title>`, html.EscapeString(hint))
	}
}

func (d *drawing) end() { d.b.WriteString("</g>\n") }

func (d *drawing) path(class string, points [][2]float64) {
	fmt.Fprintf(&d.b, `<path class="%s" d="`, class)
	for i, p := range points {
		c := "L"
		if i == 0 {
			c = "M"
		}
		d.b.WriteString(c + px(p[0]) + " " + px(p[1]))
	}
	d.b.WriteString(`"/>`)
}

// shape is how a mark looks, so that colour is not the only difference.
type shape string

const (
	disc     shape = "disc"
	ring     shape = "ring"
	square   shape = "square"
	diamond  shape = "diamond"
	hollow   shape = "hollow" // a diamond's outline
	cross    shape = "cross"
	plus     shape = "plus"
	triangle shape = "triangle"
)

// mark draws a shape about r around a point.
func (d *drawing) mark(s shape, x, y, r float64) {
	corners := func(class string, p ...float64) {
		fmt.Fprintf(&d.b, `<path class="%s" d="`, class)
		for i := 0; i < len(p); i += 2 {
			c := "L"
			if i == 0 {
				c = "M"
			}
			d.b.WriteString(c + px(x+p[i]*r) + " " + px(y+p[i+1]*r))
		}
		d.b.WriteString(`Z"/>`)
	}
	switch s {
	case disc, ring:
		class := "full"
		if s == ring {
			class = "open"
		}
		fmt.Fprintf(&d.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, px(x), px(y), px(r))
	case square:
		corners("full", -0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9)
	case diamond:
		corners("full", 0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0)
	case hollow:
		corners("open", 0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0)
	case triangle:
		corners("full", 0, -1.2, 1.2, 0.9, -1.2, 0.9)
	case plus:
		d.line("stroke", x-r*1.2, y, x+r*1.2, y)
		d.line("stroke", x, y-r*1.2, x, y+r*1.2)
	default:
		d.line("stroke", x-r, y-r, x+r, y+r)
		d.line("stroke", x-r, y+r, x+r, y-r)
	}
}

// finish wraps the figure. id must be unique in a page and come from the program.
func (d *drawing) finish(id, class, title, desc string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="%s" role="img" aria-labelledby="%s-t %s-d" viewBox="0 0 %s %s" width="%s" height="%s" xmlns="http://www.w3.org/2000/svg"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`+"\n%s</svg>",
		class, id, id, px(d.width), px(d.height), px(d.width), px(d.height), id, html.EscapeString(title), id, html.EscapeString(desc), d.b.String()))
}

// mark for a legend: a small figure of its own, hidden from readers who listen, because the text beside it says the same.
func legendMark(s shape, class string) template.HTML {
	d := drawing{}
	d.mark(s, 8, 8, 5)
	return template.HTML(`<svg class="` + html.EscapeString(class) + `" aria-hidden="true" viewBox="0 0 16 16" width="16" height="16">` + d.b.String() + `</svg>`)
}

// legendLine is a piece of a line, as it is drawn in a figure.
func legendLine(l line) template.HTML {
	d := drawing{}
	d.path("curve", [][2]float64{{1, 8}, {35, 8}})
	d.mark(groupShape(l.group), 18, 8, 4)
	return template.HTML(`<svg class="` + groupClass(l.group) + " line" + pattern(l.nth) + `" aria-hidden="true" viewBox="0 0 36 16" width="36" height="16">` + d.b.String() + `</svg>`)
}

// groupClass is the style of an arm's group; groups that are not known look like the floor.
func groupClass(group string) string {
	switch group {
	case "inline", "compiled", "probe", "external":
		return "g-" + group
	}
	return "g-floor"
}

func groupShape(group string) shape {
	switch group {
	case "inline":
		return disc
	case "compiled":
		return square
	case "probe":
		return diamond
	case "external":
		return triangle
	}
	return ring
}
