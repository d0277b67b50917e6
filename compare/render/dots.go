package render

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"braid/compare/estimate"
)

// dot is a mark on a row.
type dot struct {
	estimate.Value
	shape shape
	hint  string // what the pointer shows
}

// dotRow is an arm, or the arms of a family that differ in the instruction that the probe sits on.
type dotRow struct {
	label, group string
	dots         []dot
}

// values are the row's figures, as text; of many only the ends, where there is little room.
func (r *dotRow) values(narrow bool) string {
	var s []string
	if n := len(r.dots); narrow && n > 2 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, m := range r.dots {
			low, high = min(low, m.Median), max(high, m.Median)
		}
		return nanoseconds(low) + " to " + nanoseconds(high)
	}
	for _, m := range r.dots {
		s = append(s, nanoseconds(m.Median))
	}
	return strings.Join(s, " · ")
}

// dotFigure shows costs on a logarithmic axis, a row for each arm.
type dotFigure struct {
	id, title, desc string
	axis            string
	rows            []dotRow
	mark            float64 // where a dashed line stands; 0: none
	markLabel       string
}

// least is where logarithmic axes of ns begin: what is below can't be told from nothing.
const least = 0.1

func (f *dotFigure) draw(narrow bool) template.HTML {
	d := &drawing{width: figureWidth}
	label, right, row, top := 0.0, 12.0, 26.0, 34.0
	if narrow {
		d.width, right, row = narrowWidth, 12, 42
	} else {
		for _, r := range f.rows {
			label = max(label, min(textWidth(r.label), 300)+16)
			right = max(right, textWidth(r.values(false))*1.06+18)
		}
	}
	low, high := math.Inf(1), least*10
	for _, r := range f.rows {
		for _, m := range r.dots {
			low, high = min(low, max(m.Median, least)), max(high, m.High, m.Median)
		}
	}
	labels := 8
	if narrow {
		labels = 5
	}
	s := logarithmic(min(low, high), high, label+10, d.width-right, labels)
	bottom := top + float64(len(f.rows))*row
	d.height = bottom + 44
	f.axes(d, s, top, bottom)
	group := ""
	for i, r := range f.rows {
		y := top + (float64(i)+0.5)*row
		if r.group != group && i > 0 {
			d.line("rule", 0, y-row/2, d.width, y-row/2)
		}
		group = r.group
		d.group(groupClass(r.group), "")
		if narrow {
			d.text("label start", 2, y-5, cut(r.label, int((d.width-textWidth(r.values(true))*1.06)/(fontSize*em))-2))
			y += 9
		} else {
			d.text("label end", label, y+4.5, r.label)
		}
		f.dots(d, s, r, y, narrow)
		d.end()
	}
	class := "wide"
	if narrow {
		class = "narrow"
	}
	return d.finish(f.id+"-"+class, class, f.title, f.desc)
}

func (f *dotFigure) axes(d *drawing, s *scale, top, bottom float64) {
	for _, t := range s.ticks {
		class := "grid"
		if t.label == "" {
			class = "grid fine"
		}
		x := s.at(t.at)
		d.line(class, x, top, x, bottom)
		if t.label != "" {
			d.text("tick "+f.anchor(d, x, t.label), x, bottom+17, t.label)
		}
	}
	d.text("axis middle", (s.from+s.to)/2, bottom+37, f.axis)
	if f.mark > 0 {
		x := s.at(f.mark)
		d.line("mark", x, top-6, x, bottom)
		d.text("tick "+f.anchor(d, x, f.markLabel), x, top-12, f.markLabel)
	}
}

// anchor keeps a label inside the figure.
func (f *dotFigure) anchor(d *drawing, x float64, label string) string {
	switch w := textWidth(label) * 1.06 / 2; {
	case x+w > d.width:
		return "end"
	case x-w < 0:
		return "start"
	}
	return "middle"
}

func (f *dotFigure) dots(d *drawing, s *scale, r dotRow, y float64, narrow bool) {
	d.line("track", s.from, y, s.to, y)
	for _, m := range r.dots {
		x, inside := s.place(m.Median)
		d.group("dot", m.hint)
		if a, b := s.at(m.Low), s.at(m.High); b-a > 8 {
			d.line("whisker", a, y, b, y)
			d.line("whisker", a, y-4, a, y+4)
			d.line("whisker", b, y-4, b, y+4)
		}
		if inside {
			d.mark(m.shape, x, y, 5)
		} else {
			d.path("stroke", [][2]float64{{x + 7, y - 5}, {x + 1, y}, {x + 7, y + 5}})
		}
		d.end()
	}
	if narrow {
		y -= 18.5
	}
	d.text("value end", d.width-2, y+4.5, r.values(narrow))
}

// hint is what the pointer shows over a mark.
func hint(name string, m estimate.Value, unit string) string {
	return fmt.Sprintf("%s: %s %s (%s)", name, nanoseconds(m.Median), unit, span(m.Low, m.High, 2))
}
