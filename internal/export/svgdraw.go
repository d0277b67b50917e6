package export

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"braid/internal/timeline"
)

// Geometry in pixels.
const (
	gutter   = 128 // left of the plot, for names
	margin   = 18
	headRoom = 58
	stripH   = 12
	barH     = 18
	laneH    = 15
	gapH     = 2
	blockGap = 16
	charW    = 6.63 // of the bars' font, which is monospaced, 11 px
	textSize = 11
)

// The colours can be told apart with each kind of colour blindness: they are Okabe and Ito's, and differ in lightness.
const style = `
text{font:11px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
.head{font-size:15px;font-weight:600}.name{font-weight:600}.dim{fill:#59636e}.end{text-anchor:end}.mid{text-anchor:middle}
.paper{fill:#fff;stroke:#d1d9e0}.grid{stroke:#e6eaef;fill:none}.axis{stroke:#8c959f;fill:none}.rule{stroke:#d1d9e0;fill:none}
.cut{stroke:#1f2328;fill:none;stroke-width:1.4}.warn{fill:#b42318}.mark{stroke:#b42318;stroke-width:1.5;fill:none}.gone{fill:#b42318;fill-opacity:.14}
.s0{fill:none}.s1{fill:#0072b2}.s2{fill:#f2bd2b}.s3{fill:#c9d0d8}.s4{fill:#d55e00}.ground{fill:#f6f7f9}
.m rect{stroke-width:.6}
.m0{fill:#dbe9f8;stroke:#9dbfe2}.m1{fill:#dff0e3;stroke:#a0cdab}.m2{fill:#ece3f6;stroke:#bfa7dc}
.m3{fill:#fbeccd;stroke:#dfc182}.m4{fill:#d8f0ef;stroke:#93cbc8}.m5{fill:#f8e1e6;stroke:#dfa7b4}
.w{fill:#fbdcc4;stroke:#e0a074}.many{fill-opacity:.55}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.paper{fill:#0d1117;stroke:#3d444d}.grid{stroke:#20262d}
.axis{stroke:#656c76}.rule{stroke:#3d444d}.cut{stroke:#e6edf3}.warn{fill:#ff8577}.mark{stroke:#ff8577}.gone{fill:#ff8577;fill-opacity:.2}
.s1{fill:#3d9fdd}.s2{fill:#f0c040}.s3{fill:#4a535e}.s4{fill:#ee7a2b}.ground{fill:#171c23}
.m0{fill:#1d3350;stroke:#3a5f8f}.m1{fill:#1e3a27;stroke:#3b6c49}.m2{fill:#35284a;stroke:#644c8a}
.m3{fill:#43351a;stroke:#7d6431}.m4{fill:#173c3b;stroke:#327170}.m5{fill:#45252e;stroke:#874655}.w{fill:#4c2c16;stroke:#93582f}}
`

// drawing is an SVG document that grows downwards.
type drawing struct {
	bytes.Buffer
	p      *picture
	y      float64
	shades map[string]int
}

// num writes a length with two decimals at most.
func num(v float64) string {
	s := strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// clean makes any bytes a piece of XML text: what no XML may hold and what could turn or hide text is replaced.
func clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteRune(r) // invalid UTF-8 is U+FFFD by now
		default:
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}

// fitLabel shortens a name to n columns, in its middle if there is room for both ends, and gives nothing if that would
// say nothing any more.
func fitLabel(s string, n int) string {
	r := []rune(s)
	wide := columns(s)
	switch {
	case wide <= n:
		return s
	case n < 4:
		return ""
	case wide > len(r):
		n = max(n/2, 2)
	}
	if n >= len(r) {
		return s
	}
	head := n / 2
	if n < 12 {
		head = n - 1
	}
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// text writes text at a place of the whole picture.
func (d *drawing) text(class string, x, y float64, s string) {
	fmt.Fprintf(d, "<text class=\"%s\" x=\"%s\" y=\"%s\">%s</text>\n", class, num(x), num(y), clean(s))
}

func (p *picture) write(out io.Writer) error {
	d := &drawing{p: p, y: headRoom, shades: map[string]int{}}
	for i, t := range p.threads {
		if i > 0 {
			d.y += blockGap
		}
		d.thread(t)
	}
	if len(p.threads) == 0 {
		d.text("dim", gutter, d.y+12, "no thread left anything in this trace")
		d.y += 20
	}
	d.deviceLanes()
	bottom := d.y + 8
	body := d.String()
	d.Reset()
	d.y = bottom
	d.axis()
	d.footer()
	axis := d.String()
	d.Reset()
	d.header()
	head := d.String()

	height := num(math.Ceil(d.y + 12))
	w := num(p.width)
	_, err := fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" role=\"img\">\n"+
		"<title>%s</title>\n<style>%s</style>\n<rect class=\"paper\" x=\".5\" y=\".5\" width=\"%s\" height=\"%s\" rx=\"8\"/>\n%s%s%s</svg>\n",
		w, height, w, height, clean("braid: "+p.title()), style, num(p.width-1), num(math.Ceil(d.y+12)-1), head, axis, body)
	return err
}

// title is what was recorded.
func (p *picture) title() string {
	m := p.tr.Meta
	if len(m.Command) > 0 {
		return path.Base(m.Command[0])
	}
	for _, q := range p.tr.Processes.Processes {
		if q.Pid == m.Pid && q.Name != "" {
			return q.Name
		}
	}
	if m.Pid != 0 {
		return fmt.Sprintf("process %d", m.Pid)
	}
	return "trace"
}

func (d *drawing) header() {
	p := d.p
	title := fitLabel(p.title(), int(p.width-500)/8)
	if title == "" {
		title = "trace"
	}
	d.text("head", margin, 29, title)
	calls := fmt.Sprintf("%s, %s, %s", duration(p.hi-p.lo), plural(uint64(len(p.threads)+max(p.hidden, 0)), "thread"), plural(p.counts.Slices, "call"))
	d.text("dim", margin, 46, calls)
	x := p.width - margin
	for _, s := range []timeline.State{timeline.Blocked, timeline.Sleeping, timeline.Runnable, timeline.Running} {
		n := s.String()
		x -= float64(len(n)) * 6.2
		d.text("", x, 29, n)
		x -= 18
		fmt.Fprintf(d, "<rect class=\"s%d\" x=\"%s\" y=\"19\" width=\"12\" height=\"12\" rx=\"2\"/>\n", s, num(x))
		x -= 14
	}
}

// axis draws time at the bottom and a grid behind everything.
func (d *drawing) axis() {
	p := d.p
	ms := float64(p.hi-p.lo) / 1e6
	step := math.Pow(10, math.Floor(math.Log10(ms)))
	for _, f := range []float64{.1, .2, .5, 1, 2} { // the finest that leaves 80 px for each
		if s := step * f; s/ms*(p.width-gutter-margin) >= 80 {
			step = s
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var grid strings.Builder
	for i := 0; ; i++ {
		at := float64(i) * step
		if at > ms*(1+1e-9) {
			break
		}
		x := gutter + at*1e6*p.scale
		fmt.Fprintf(&grid, "M%s %dV%s", num(x), headRoom-8, num(d.y))
		label := strconv.FormatFloat(at, 'f', decimals, 64)
		class := "dim mid"
		if x > p.width-margin-14 {
			class, x = "dim end", p.width-margin
		}
		if i == 0 {
			label += " ms"
		}
		d.text(class, x, d.y+15, label)
	}
	fmt.Fprintf(d, "<path class=\"grid\" d=\"%s\"/>\n<path class=\"axis\" d=\"M%d %sH%s\"/>\n", grid.String(), gutter, num(d.y), num(p.width-margin))
	for _, b := range p.losses.all() {
		what := b.label
		if b.count > 1 {
			what = "several times"
		}
		fmt.Fprintf(d, "<rect class=\"gone\" x=\"%s\" y=\"%d\" width=\"%s\" height=\"%s\"><title>%s</title></rect>\n", num(gutter+b.x0),
			headRoom-8, num(max(b.x1-b.x0, 1)), num(d.y-headRoom+8), clean("kernel events were lost: "+what))
	}
	d.y += 20
}

// footer says what is missing, and what is unusual.
func (d *drawing) footer() {
	p := d.p
	var says []string
	atEnd := false
	for _, name := range slices.Sorted(maps.Keys(p.lost)) {
		says = append(says, name+" "+grouped(p.lost[name]))
		atEnd = atEnd || !p.marked[name]
	}
	if atEnd { // when it was lost is not known
		fmt.Fprintf(d, "<path class=\"mark\" d=\"M%s %dV%s\"/>\n", num(p.width-margin), headRoom-8, num(d.y-20))
	}
	if len(says) > 0 {
		d.y += 14
		d.text("warn", margin, d.y, fitLabel("lost: "+strings.Join(says, ", "), int((p.width-2*margin)/6.2)))
	}
	for _, l := range []struct {
		n    uint64
		text string
	}{
		{uint64(max(p.hidden, 0)), "more threads are not shown"},
		{p.deeper, "calls below the deepest row are not shown"},
		{p.unshown, "requests of further devices are not shown"},
		{p.counts.Unwound, "calls ended without an exit"},
	} {
		if l.n > 0 {
			d.y += 14
			d.text("dim", margin, d.y, grouped(l.n)+" "+l.text)
		}
	}
}

func (d *drawing) thread(t *svgThread) {
	p := d.p
	name := t.name
	if name == "" {
		name = "thread " + strconv.Itoa(int(t.tid))
	}
	d.text("name", margin, d.y+10, fitLabel(name, 16))
	id := "tid " + strconv.Itoa(int(t.tid))
	if t.pid != uint32(p.tr.Meta.Pid) && t.pid != t.tid {
		id = fmt.Sprintf("pid %d, tid %d", t.pid, t.tid)
	}
	d.text("dim", margin, d.y+24, id)
	top := d.y
	fmt.Fprintf(d, "<rect class=\"ground\" x=\"%d\" y=\"%s\" width=\"%s\" height=\"%d\" rx=\"2\"/>\n", gutter, num(d.y), num(p.width-gutter-margin), stripH)
	t.states.flush()
	for s := timeline.Running; s < timeline.NumStates; s++ {
		if len(t.states.patches[s]) == 0 {
			continue
		}
		fmt.Fprintf(d, "<path class=\"s%d\" d=\"", s)
		for _, r := range t.states.patches[s] {
			fmt.Fprintf(d, "M%s %sh%sv%sh-%sz", num(gutter+r.x0), num(d.y+r.y0*stripH), num(r.x1-r.x0), num((r.y1-r.y0)*stripH), num(r.x1-r.x0))
		}
		d.WriteString("\"/>\n")
	}
	d.y += stripH + gapH
	for i := range t.rows {
		d.row(&t.rows[i], barH, "call", func(b *bar) string { return d.shade(b.label) })
		d.y += barH + gapH
	}
	for i := range t.waits {
		if !t.waits[i].empty() {
			d.y += gapH
			d.text("dim end", gutter-8, d.y+11, waitNames[i])
			d.row(&t.waits[i], laneH, waitNames[i], func(*bar) string { return "w" })
			d.y += laneH + gapH
		}
	}
	d.y = max(d.y, top+28)
}

func (d *drawing) deviceLanes() {
	for _, dev := range d.p.devices {
		if len(dev.lanes) == 1 && dev.lanes[0].empty() {
			continue
		}
		d.y += blockGap
		d.text("name", margin, d.y+10, "block I/O")
		d.text("dim", margin, d.y+24, fmt.Sprintf("device %d:%d", dev.dev>>20, dev.dev&(1<<20-1)))
		top := d.y
		for i := range dev.lanes {
			d.row(&dev.lanes[i], laneH, "request", func(b *bar) string { return "w" })
			d.y += laneH + gapH
		}
		d.y = max(d.y, top+28)
	}
}

// shade is the class of a method's colour: the next one for each new name.
func (d *drawing) shade(name string) string {
	if name == "" {
		return "m0"
	}
	c, ok := d.shades[name]
	if !ok {
		c = len(d.shades) % 6
		d.shades[name] = c
	}
	return "m" + strconv.Itoa(c)
}

// row draws bars with their names; what is what they are called together. A name that does not fit its bar stands
// beside it, where there is room.
func (d *drawing) row(r *row, height float64, what string, class func(*bar) string) {
	d.WriteString("<g class=\"m\">\n")
	bars, free := r.all(), 0.0 // the row is free from there on
	for i, b := range bars {
		w := max(b.x1-b.x0, minBar)
		c, label := class(&b), b.label
		if b.count > 1 {
			c += " many"
			if label == "" {
				label = plural(b.count, what)
			} else {
				label += " ×" + grouped(b.count)
			}
		}
		fmt.Fprintf(d, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"", c, num(gutter+b.x0), num(d.y), num(w), num(height))
		if w > 4 {
			d.WriteString(" rx=\"1.5\"")
		}
		fmt.Fprintf(d, "><title>%s</title></rect>\n", clean(label+": "+duration(b.ns)+cutText(b.flags)))
		d.cuts(b, w, height)
		right := d.p.width - gutter - margin
		if i+1 < len(bars) {
			right = bars[i+1].x0
		}
		y, need := d.y+height/2+textSize*.36, float64(columns(label))*charW+8
		inside := fitLabel(label, int((w-8)/charW))
		switch {
		case inside == label || w >= 80 && inside != "":
			d.text("mono", gutter+b.x0+4, y, inside)
		case right-b.x0-w >= need:
			d.text("mono dim", gutter+b.x0+w+4, y, label)
			w += need
		case b.x0-free >= need:
			d.text("mono dim end", gutter+b.x0-4, y, label)
		case inside != "":
			d.text("mono", gutter+b.x0+4, y, inside)
		}
		free = max(free, b.x0+w)
	}
	d.WriteString("</g>\n")
}

// columns is how wide a text is in the bars' font; wide characters take two.
func columns(s string) (n int) {
	for _, r := range s {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}

// duration is a time in three digits and a unit.
func duration(ns int64) string {
	v := float64(ns)
	switch {
	case v < 1e3:
		return fmt.Sprintf("%d ns", ns)
	case v < 999.5e3:
		return three(v/1e3) + " µs"
	case v < 999.5e6:
		return three(v/1e6) + " ms"
	}
	return three(v/1e9) + " s"
}

func three(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func byteSize(n uint64) string {
	v, units, i := float64(n), []string{"B", "KiB", "MiB", "GiB"}, 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " " + units[i]
}

func plural(n uint64, what string) string {
	if n == 1 || strings.HasSuffix(what, "s") {
		return grouped(n) + " " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a number with spaces between thousands.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
