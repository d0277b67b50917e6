package render

import (
	"html/template"
	"math"
	"slices"

	"braid/compare/estimate"
)

// line is an arm's figures over a parameter, one for each of the figure's columns.
type line struct {
	label, group string
	points       []estimate.Value // of shares: 0.1 is 10 %
	faint        bool             // without label and marks: it is there for the whole picture
	nth          int              // among the lines of its group, for the pattern
}

// lineFigure shows shares over a parameter.
type lineFigure struct {
	id, title, desc string
	x               string   // what the horizontal axis is
	columns         []string // labels of the parameter's values, evenly spaced
	broken          bool     // the first column does not belong to the scale of the others: 0 on a logarithmic axis
	log             bool
	lines           []line
}

// leastShare is where logarithmic axes of shares begin: a tenth of a percent.
const leastShare = 0.001

func (f *lineFigure) draw(narrow bool) template.HTML {
	d := &drawing{width: figureWidth, height: 480}
	right, top, bottom := 10.0, 16.0, 54.0
	if narrow {
		d.width, d.height = narrowWidth, 330
	} else {
		for _, l := range f.lines {
			if !l.faint {
				right = max(right, min(textWidth(l.label), 350)+58)
			}
		}
	}
	s := f.scale(d.height-bottom, top, narrow)
	left := 0.0
	for _, t := range s.ticks {
		if t.label != "" {
			left = max(left, textWidth(f.share(s, t))+9)
		}
	}
	column := func(i int) float64 {
		if len(f.columns) < 2 {
			return (left + d.width - right) / 2
		}
		return left + 18 + float64(i)*(d.width-right-left-36)/float64(len(f.columns)-1)
	}
	f.axes(d, s, column, left, d.width-right, narrow)
	for pass := range 2 { // faint lines lie below
		for _, l := range f.lines {
			if l.faint == (pass == 0) {
				f.line(d, s, column, l)
			}
		}
	}
	if !narrow {
		f.labels(d, s, column(len(f.columns)-1)+14)
	}
	class := "wide"
	if narrow {
		class = "narrow"
	}
	return d.finish(f.id+"-"+class, class, f.title, f.desc)
}

func (f *lineFigure) scale(from, to float64, narrow bool) *scale {
	low, high := math.Inf(1), 0.0
	for _, l := range f.lines {
		for _, p := range l.points {
			if p.OK {
				low, high = min(low, p.Low), max(high, p.High)
			}
		}
	}
	labels := 7
	if narrow {
		labels = 6
	}
	if f.log {
		s := logarithmic(leastShare*100, max(high, leastShare*10)*100, from, to, labels)
		s.ticks[0].label = tickLabel(s.low) // what is below stands there too
		return s
	}
	return linear(min(low, 0)*100, max(high, 0.01)*100, from, to, labels)
}

// share is the label of a tick.
func (f *lineFigure) share(s *scale, t tick) string {
	if f.log && t.at == s.low {
		return "≤ " + t.label + " %"
	}
	return t.label + " %"
}

func (f *lineFigure) axes(d *drawing, s *scale, column func(int) float64, left, right float64, narrow bool) {
	for _, t := range s.ticks {
		y, class := s.at(t.at), "grid"
		if t.label == "" {
			class = "grid fine"
		} else if t.at == 0 {
			class = "zero"
		}
		d.line(class, left, y, right, y)
		if t.label != "" {
			d.text("tick end", left-7, y+4.5, f.share(s, t))
		}
	}
	for i, c := range f.columns {
		x := column(i)
		d.line("grid", x, s.to, x, s.from+5)
		if narrow && len(f.columns) > 6 && i%2 == 1 {
			continue
		}
		d.text("tick middle", x, s.from+19, c)
	}
	if f.broken && len(f.columns) > 1 {
		x := (column(0) + column(1)) / 2
		d.rect("break", x-5, s.from-3, 10, 6)
		d.line("stroke axis", x-7, s.from+5, x-3, s.from-5)
		d.line("stroke axis", x+3, s.from+5, x+7, s.from-5)
	}
	d.text("axis middle", (left+right)/2, s.from+42, f.x)
}

func (f *lineFigure) line(d *drawing, s *scale, column func(int) float64, l line) {
	class := groupClass(l.group) + " line" + pattern(l.nth)
	if l.faint {
		class = groupClass(l.group) + " faint"
	}
	d.group(class, l.label)
	var points [][2]float64
	flush := func() {
		if len(points) > 1 {
			d.path("curve", points)
		}
		points = nil
	}
	for i, p := range l.points {
		if !p.OK {
			flush()
			continue
		}
		points = append(points, [2]float64{column(i), s.at(p.Median * 100)})
	}
	flush()
	if !l.faint {
		for i, p := range l.points {
			if p.OK {
				f.point(d, s, column(i), l, f.columns[i], p)
			}
		}
	}
	d.end()
}

func (f *lineFigure) point(d *drawing, s *scale, x float64, l line, column string, p estimate.Value) {
	y, inside := s.place(p.Median * 100)
	d.group("dot", l.label+", "+f.x+" "+column+": "+percent(p.Median)+" % ("+percents(p.Low, p.High)+" %)")
	if a, b := s.at(p.Low*100), s.at(p.High*100); a-b > 8 {
		d.line("whisker", x, a, x, b)
		d.line("whisker", x-3, a, x+3, a)
		d.line("whisker", x-3, b, x+3, b)
	}
	if inside {
		d.mark(groupShape(l.group), x, y, 4)
	} else {
		d.path("stroke", [][2]float64{{x - 5, y - 6}, {x, y}, {x + 5, y - 6}})
	}
	d.end()
}

// labels writes the names beside the ends of lines, moved apart where they would cover each other.
func (f *lineFigure) labels(d *drawing, s *scale, x float64) {
	type name struct {
		line line
		y    float64
		end  float64
	}
	var names []name
	for _, l := range f.lines {
		if l.faint {
			continue
		}
		for i := len(l.points) - 1; i >= 0; i-- {
			if l.points[i].OK {
				y := s.at(l.points[i].Median * 100)
				names = append(names, name{l, y, y})
				break
			}
		}
	}
	slices.SortStableFunc(names, func(a, b name) int { return int(math.Copysign(1, a.y-b.y)) })
	ys := make([]float64, len(names))
	for i := range names {
		ys[i] = names[i].y
	}
	spread(ys, 17, s.to+6, s.from-2)
	for i, n := range names {
		d.group(groupClass(n.line.group)+" line"+pattern(n.line.nth), "")
		d.path("leader", [][2]float64{{x - 8, n.end}, {x + 4, ys[i]}, {x + 22, ys[i]}})
		d.mark(groupShape(n.line.group), x+30, ys[i], 4)
		d.text("label start", x+40, ys[i]+4.5, cut(n.line.label, 45))
		d.end()
	}
}

// spread moves sorted values apart to at least gap, between low and high as far as they fit.
func spread(ys []float64, gap, low, high float64) {
	for i := range ys {
		if ys[i] = max(ys[i], low); i > 0 {
			ys[i] = max(ys[i], ys[i-1]+gap)
		}
	}
	for i := len(ys) - 1; i >= 0; i-- {
		limit := high
		if i < len(ys)-1 {
			limit = ys[i+1] - gap
		}
		ys[i] = min(ys[i], limit)
	}
}

// pattern is the class of how a line is dashed, for the nth line of a group.
func pattern(nth int) string {
	return []string{"", " dash", " dots", " dashdot"}[nth%4]
}
