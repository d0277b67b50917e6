package analysis

import (
	"braid/internal/timeline"
)

const (
	maxNodes  = 1 << 16 // of the tree; calls beyond are counted to their caller
	maxPieces = 1 << 14 // of waits for a CPU
	maxFold   = 16      // how far up a method is looked for that calls itself through others
)

// node is the calls of one method under one caller in the moment; recursion is folded into one node.
type node struct {
	method   uint32
	parent   *node
	children map[uint32]*node
	calls    uint64
	folded   uint64 // calls within themselves
	active   int
	total    Split
	self     Split
	points   Points
	sleeps   map[thing]*sleeper
}

// piece is a part of a wait for a CPU.
type piece struct {
	node     *node
	from, to int64
	cpu      uint16
}

// outer is a call around the moment.
type outer struct {
	method uint32
	begin  int64
	total  Split
	self   Split
	known  bool // its end was seen
}

// peers sums what a method does within one call of the moment's method, over all those calls but the moment.
type peers struct {
	present uint64 // calls in which it occurs; the sketches have no zeros of the others
	calls   Sketch
	self    Sketch
	by      [numCauses]*Sketch
}

// within collects one call's sums by method.
type within struct {
	serial uint64 // of the call that the sums are of
	calls  uint64
	self   Split
}

// detail is the second pass: the moment's tree, and the moment's peers.
type detail struct {
	methods *methods
	method  uint32
	moment  call

	root   *node
	nodes  int
	hidden uint64 // calls that found no room in the tree
	pieces []piece
	cut    bool // pieces are missing
	outers []outer
	inside bool // the moment is open

	rows    []peers
	sums    []within
	touched []uint32
	serial  uint64
	open    int // calls of the method that are open
	n       uint64
}

func (d *detail) enter(w *walker, f *frame) {
	if n := len(w.methods.names); int(f.method) >= len(d.sums) {
		d.sums = append(d.sums, make([]within, n-len(d.sums))...)
		d.rows = append(d.rows, make([]peers, n-len(d.rows))...)
	}
	if f.method == d.method {
		if d.open++; d.open == 1 {
			d.serial++
			d.touched = d.touched[:0]
		}
	}
	switch {
	case d.inside:
		d.child(f, w.stack[len(w.stack)-2].node)
	case w.thread == d.moment.thread && f.serial == d.moment.serial:
		d.inside = true
		d.root = &node{method: f.method}
		d.nodes++
		f.node = d.root
		for i := range w.stack[1 : len(w.stack)-1] {
			d.outers = append(d.outers, outer{method: w.stack[i+1].method, begin: w.stack[i+1].begin})
		}
		w.observe = d.observe
	}
	if f.node != nil {
		f.node.active++
	}
}

// child gives a call within the moment its node.
func (d *detail) child(f *frame, caller *node) {
	up := caller
	for range maxFold {
		if up == nil {
			break
		}
		if up.method == f.method {
			up.folded++
			f.node = up
			return
		}
		up = up.parent
	}
	n := caller.children[f.method]
	if n == nil {
		if d.nodes >= maxNodes {
			d.hidden++
			f.node = caller
			return
		}
		d.nodes++
		n = &node{method: f.method, parent: caller}
		if caller.children == nil {
			caller.children = make(map[uint32]*node)
		}
		caller.children[f.method] = n
	}
	n.calls++
	f.node = n
}

func (d *detail) leave(w *walker, f *frame, flags timeline.SliceFlags) {
	if n := f.node; n != nil {
		if n.active--; n.active == 0 {
			total := w.total(f)
			n.total.add(&total)
		}
		n.self.add(&f.self)
		n.points.add(f.points)
		if n == d.root && n.active == 0 {
			n.calls++
			d.inside, w.observe = false, nil
		}
	} else if i := len(w.stack) - 2; d.root != nil && !d.inside && w.thread == d.moment.thread && i < len(d.outers) &&
		!d.outers[i].known && d.outers[i].begin == f.begin {
		d.outers[i].known, d.outers[i].self, d.outers[i].total = true, f.self, w.total(f)
	}
	if d.open == 0 {
		return
	}
	s := &d.sums[f.method]
	if s.serial != d.serial {
		*s = within{serial: d.serial}
		d.touched = append(d.touched, f.method)
	}
	s.calls++
	if f.stretch == w.cur {
		c := w.stretches[w.cur].cause
		s.self[c] += f.self[c]
	} else {
		s.self.add(&f.self)
	}
	if f.method != d.method {
		return
	}
	if d.open--; d.open > 0 || flags&partial != 0 || d.isMoment(w, f) {
		return
	}
	d.n++
	for _, m := range d.touched {
		row, s := &d.rows[m], &d.sums[m]
		row.present++
		row.calls.Add(int64(s.calls))
		row.self.Add(s.self.Wall())
		for c, ns := range s.self {
			if ns == 0 {
				continue
			}
			if row.by[c] == nil {
				row.by[c] = new(Sketch)
			}
			row.by[c].Add(ns)
		}
	}
}

// isMoment reports whether an outermost call holds the moment.
func (d *detail) isMoment(w *walker, f *frame) bool {
	return w.thread == d.moment.thread && f.begin <= d.moment.begin && w.now >= d.moment.end
}

// observe gets where the moment's time went.
func (d *detail) observe(f *frame, from, to int64, st *stretch) {
	n := f.node
	if n == nil {
		return
	}
	switch st.cause {
	case Runnable:
		if len(d.pieces) >= maxPieces {
			d.cut = true
			return
		}
		d.pieces = append(d.pieces, piece{n, from, to, st.cpu})
	case Sleeping, Lock, Binder, Poll, Stream, Timer:
		t := thingOf(st.cause, st.wait)
		s := n.sleeps[t]
		if s == nil {
			s = new(sleeper)
			if n.sleeps == nil {
				n.sleeps = make(map[thing]*sleeper)
			}
			n.sleeps[t] = s
		}
		s.slept(from, to, st)
	}
}

// usual is the median of a sketch over all peers: those that are not in it count as 0.
func (d *detail) usual(s *Sketch) int64 {
	if s == nil || s.N()*2 < d.n {
		return 0
	}
	full := *s
	full.AddZeros(d.n - s.N())
	return full.Quantile(0.5)
}
