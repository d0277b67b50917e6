package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// What a flame graph shows at most.
const (
	maxFlameDepth = 100
	flameH        = 16 // of a row, in pixels
	minFlame      = 0.3
)

// flameStyle gives native functions and the kernel their colours; methods have the first one of slices.
const flameStyle = `
.n{fill:#e7eaee;stroke:#b9c1ca}.k{fill:#fbdcc4;stroke:#e0a074}
@media(prefers-color-scheme:dark){.n{fill:#30363d;stroke:#59626c}.k{fill:#4c2c16;stroke:#93582f}}
`

// flameClasses by kind of function.
var flameClasses = [...]string{stacks.Native: "n", stacks.Method: "m0", stacks.Kernel: "k"}

// block is a function in a chain of calls, with all samples below it.
type block struct {
	fn            stacks.FuncID
	name, class   string
	samples, self uint64
	ns            uint64
	children      map[stacks.FuncID]*block
}

func (b *block) child(fn stacks.FuncID) *block {
	c := b.children[fn]
	if c == nil {
		if b.children == nil {
			b.children = map[stacks.FuncID]*block{}
		}
		c = &block{fn: fn}
		b.children[fn] = c
	}
	return c
}

// sorted are the children from left to right: by name.
func (b *block) sorted() []*block {
	list := make([]*block, 0, len(b.children))
	for _, c := range b.children {
		list = append(list, c)
	}
	slices.SortFunc(list, func(x, y *block) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.class, y.class), cmp.Compare(x.fn, y.fn))
	})
	return list
}

// flame is a flame graph under construction.
type flame struct {
	*drawing
	join    *stacks.Join
	width   float64
	deepest int
	cut     uint64 // samples with frames above the highest row
	narrow  uint64 // samples in blocks that are too narrow to be seen, each counted once
	total   uint64
}

// Flame draws a flame graph of a trace's samples: each block is a function, on top of the one that called it, and as wide as
// its part of all samples. Threads of the same name are one. The same trace and width give the same bytes. It returns
// stacks.ErrNone if there are no samples.
func Flame(out io.Writer, tr *timeline.Trace, o SVGOptions) (c Counts, err error) {
	width := cmp.Or(o.Width, DefaultSVGWidth)
	if width < MinSVGWidth || width > MaxSVGWidth {
		return c, fmt.Errorf("a picture %d pixels wide: want %d to %d", width, MinSVGWidth, MaxSVGWidth)
	}
	j, err := stacks.New(tr)
	if err != nil {
		return c, err
	}
	p := &picture{tr: tr, width: float64(width)}
	f := &flame{drawing: &drawing{p: p}, join: j, width: float64(width) - 2*margin}
	threads := map[string]*block{}
	err = j.Each(func(s *stacks.Sample) error {
		name := j.Thread(s.Pid, s.Tid)
		at := threads[name]
		if at == nil {
			at = &block{fn: stacks.FuncID(len(threads)), name: name, class: "n"}
			threads[name] = at
		}
		at.add(s)
		for i, frame := range s.Frames {
			if i+1 >= maxFlameDepth {
				f.cut++
				break
			}
			at = at.child(frame.Func)
			at.add(s)
			f.deepest = max(f.deepest, i+1)
		}
		at.self++
		return nil
	})
	if err != nil {
		return c, err
	}
	root := &block{children: map[stacks.FuncID]*block{}}
	for _, t := range threads {
		root.children[t.fn] = t
	}
	f.total = j.Stats.Samples
	c.addSamples(j)
	if err := f.write(out, root); err != nil {
		return c, fmt.Errorf("writing the flame graph: %w", err)
	}
	return c, nil
}

func (b *block) add(s *stacks.Sample) {
	b.samples++
	b.ns += s.Ns
}

// write draws the blocks from the threads upwards.
func (f *flame) write(out io.Writer, root *block) error {
	bottom := headRoom + float64(f.deepest)*flameH
	f.WriteString("<g class=\"m\">\n")
	x := 0.0
	for _, t := range root.sorted() {
		w := f.share(t)
		f.block(t, x, bottom)
		x += w
	}
	f.WriteString("</g>\n")
	f.y = bottom + flameH + 6
	st := &f.join.Stats
	for _, l := range []struct {
		n    uint64
		text string
	}{
		{f.cut, fmt.Sprintf("samples have more than %d frames", maxFlameDepth)},
		{st.Cut(), "user stacks are cut: they lack outer frames"},
		{st.Ends[tracefile.EndChain], "user stacks are by frame pointers, and may lack callers"},
		{f.narrow, "samples are in blocks that are too narrow to be shown"},
	} {
		if l.n > 0 {
			f.y += 14
			f.text("dim", margin, f.y, grouped(l.n)+" "+l.text)
		}
	}
	body := f.String()
	f.Reset()
	f.head()
	height, width := num(math.Ceil(f.y+12)), num(f.p.width)
	_, err := fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" role=\"img\">\n"+
		"<title>%s</title>\n<style>%s</style>\n<rect class=\"paper\" x=\".5\" y=\".5\" width=\"%s\" height=\"%s\" rx=\"8\"/>\n%s%s</svg>\n",
		width, height, width, height, clean("braid: flame graph of "+f.p.title()), style+flameStyle, num(f.p.width-1), num(math.Ceil(f.y+12)-1), f.String(), body)
	return err
}

// head writes the title and what the colours mean.
func (f *flame) head() {
	f.text("head", margin, 29, fitLabel(f.p.title(), int(f.p.width-400)/8))
	st := &f.join.Stats
	f.text("dim", margin, 46, fmt.Sprintf("%s of %v, %s of CPU time", plural(st.Samples, "sample"), f.join.Event, duration(int64(st.Ns))))
	x := f.p.width - margin
	for _, kind := range []stacks.Kind{stacks.Kernel, stacks.Native, stacks.Method} {
		n := kind.String()
		x -= float64(len(n)) * 6.2
		f.text("", x, 29, n)
		x -= 18
		fmt.Fprintf(f, "<rect class=\"%s\" x=\"%s\" y=\"19\" width=\"12\" height=\"12\" rx=\"2\"/>\n", flameClasses[kind], num(x))
		x -= 14
	}
}

// share is how wide a block is.
func (f *flame) share(b *block) float64 { return float64(b.samples) / float64(f.total) * f.width }

// block draws a block whose left edge is at x and whose upper edge is at y, and what it called above it.
func (f *flame) block(b *block, x, y float64) {
	w := f.share(b)
	if w < minFlame {
		f.narrow += b.samples
		return
	}
	text := fmt.Sprintf("%s: %s, %s %%, %s", b.name, plural(b.samples, "sample"), num(100*float64(b.samples)/float64(f.total)), duration(int64(b.ns)))
	if b.self > 0 && b.self < b.samples {
		text += fmt.Sprintf(", %s itself", grouped(b.self))
	}
	fmt.Fprintf(f, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%d\"><title>%s</title></rect>\n", b.class, num(margin+x), num(y),
		num(w), flameH-1, clean(text))
	if label := fitLabel(b.name, int((w-6)/charW)); label != "" && w >= 20 {
		f.text("mono", margin+x+3, y+flameH/2+textSize*.3, label)
	}
	for _, c := range b.children {
		fn := &f.join.Functions[c.fn]
		c.name, c.class = fn.Name, flameClasses[fn.Kind]
	}
	for _, c := range b.sorted() {
		f.block(c, x, y-flameH)
		x += f.share(c)
	}
}
