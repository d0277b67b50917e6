package render

import (
	"html/template"
	"math"

	"braid/compare/estimate"
)

// box is an arm's distribution.
type box struct {
	label, group string
	estimate.Box
	hint string
}

// boxFigure shows distributions of times in ns, a row for each arm.
type boxFigure struct {
	id, title, desc string
	axis            string
	unit            float64 // ns of the axis' unit
	log             bool
	mark            float64 // the median of the baseline
	boxes           []box
}

func (f *boxFigure) draw(narrow bool) template.HTML {
	d := &drawing{width: figureWidth}
	label, right, row, top := 0.0, 90.0, 30.0, 30.0
	if narrow {
		d.width, right, row = narrowWidth, 12, 46
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, b := range f.boxes {
		if !narrow {
			label = max(label, min(textWidth(b.label), 300)+16)
		}
		low, high = min(low, b.Low), max(high, b.High)
		for _, o := range b.Outliers {
			low, high = min(low, o), max(high, o)
		}
	}
	from, to, labels := label+10, d.width-right, 8
	if narrow {
		labels = 5
	}
	var s *scale
	if f.log && low > 0 {
		s = logarithmic(low/f.unit, high/f.unit, from, to, labels)
	} else {
		s = linear(low/f.unit, high/f.unit, from, to, labels)
	}
	bottom := top + float64(len(f.boxes))*row
	d.height = bottom + 44
	a := dotFigure{axis: f.axis, mark: f.mark / f.unit, markLabel: "baseline"}
	a.axes(d, s, top, bottom)
	for i, b := range f.boxes {
		y := top + (float64(i)+0.5)*row
		d.group(groupClass(b.group), b.hint)
		value := number(b.Median/f.unit, decimals(b.Median/f.unit, 2))
		if narrow {
			d.text("label start", 2, y-6, b.label)
			d.text("value end", d.width-2, y-6, value)
			y += 10
		} else {
			d.text("label end", label, y+4.5, b.label)
			d.text("value end", d.width-2, y+4.5, value)
		}
		f.box(d, s, b, y)
		d.end()
	}
	class := "wide"
	if narrow {
		class = "narrow"
	}
	return d.finish(f.id+"-"+class, class, f.title, f.desc)
}

func (f *boxFigure) box(d *drawing, s *scale, b box, y float64) {
	at := func(v float64) float64 { return s.at(v / f.unit) }
	d.line("whisker", at(b.Low), y, at(b.Q1), y)
	d.line("whisker", at(b.Q3), y, at(b.High), y)
	d.line("whisker", at(b.Low), y-4, at(b.Low), y+4)
	d.line("whisker", at(b.High), y-4, at(b.High), y+4)
	d.rect("box", at(b.Q1), y-8, at(b.Q3)-at(b.Q1), 16)
	d.line("median", at(b.Median), y-8, at(b.Median), y+8)
	for _, o := range b.Outliers {
		d.mark(ring, at(o), y, 2.5)
	}
}
