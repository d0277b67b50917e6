package analysis

import (
	"braid/inline"
	"braid/internal/timeline"
)

// call is one call of a method.
type call struct {
	thread     int    // index in the trace
	serial     uint64 // of the thread, which finds it again
	begin, end int64
	depth      int
	sleeping   int64
	flags      timeline.SliceFlags
}

// normal is what all calls of one method are like.
type normal struct {
	calls     uint64 // whole ones, which the sketches are of
	partial   uint64 // cut or suspended ones, which they are not of
	wall      int64  // sum of the totals
	sleeping  int64  // its part
	total     Sketch
	self      Sketch
	selfBy    [numCauses]*Sketch // without zeros: usual adds them
	selfSplit Split
	worst     call // the longest that the moment may be; end 0: none
}

// usual is the median of the method's own time in a cause, over all whole calls.
func (n *normal) usual(c Cause) int64 {
	s := n.selfBy[c]
	if s == nil || s.N()*2 < n.calls {
		return 0 // most calls have none of it
	}
	full := *s
	full.AddZeros(n.calls - s.N())
	return full.Quantile(0.5)
}

// normals is the first pass: what is normal, and which call is the longest of each method. It also looks for
// signatures, since it sees every call.
type normals struct {
	rows   []normal
	want   func(w *walker, f *frame) bool // whether the moment may be this call
	sigs   *matcher                       // or nil
	counts bool                           // false on a second attempt: only look for the moment
}

func (n *normals) enter(w *walker, f *frame) {
	if int(f.method) >= len(n.rows) {
		n.rows = append(n.rows, make([]normal, len(w.methods.names)-len(n.rows))...)
	}
	if n.sigs != nil {
		n.sigs.enter(w, f)
	}
}

func (n *normals) leave(w *walker, f *frame, flags timeline.SliceFlags) {
	row := &n.rows[f.method]
	length := w.now - f.begin
	sleeping := int64(-1) // not known yet
	if n.counts {
		row.selfSplit.add(&f.self)
		if flags&partial != 0 {
			row.partial++
		} else {
			sleeping = n.whole(row, w, f, length)
		}
		if n.sigs != nil {
			n.sigs.leave(w, f)
		}
	}
	if length > row.worst.end-row.worst.begin && flags&(inline.CutStart|inline.Reentered) == 0 && n.want(w, f) {
		if sleeping < 0 {
			s := w.total(f)
			sleeping = s.idle()
		}
		row.worst = call{thread: w.thread, serial: f.serial, begin: f.begin, end: w.now, depth: len(w.stack) - 2, sleeping: sleeping, flags: flags}
	}
}

// whole counts a whole call and returns how long it slept.
func (n *normals) whole(row *normal, w *walker, f *frame, length int64) (sleeping int64) {
	row.calls++
	row.wall += length
	row.total.Add(length)
	if f.stretch == w.cur { // one cause, which is most calls
		c := w.stretches[w.cur].cause
		row.self.Add(f.self[c])
		row.by(c).Add(f.self[c])
		if c.idle() {
			sleeping = length
		}
	} else {
		row.self.Add(f.self.Wall())
		for c, ns := range f.self {
			if ns > 0 {
				row.by(Cause(c)).Add(ns)
			}
		}
		s := w.total(f)
		sleeping = s.idle()
	}
	row.sleeping += sleeping
	return sleeping
}

func (n *normal) by(c Cause) *Sketch {
	if n.selfBy[c] == nil {
		n.selfBy[c] = new(Sketch)
	}
	return n.selfBy[c]
}

// waits reports whether the method's calls wait as a rule, the worst one aside: then a long one may be an idle one.
func (n *normal) waits() bool {
	wall, sleeping := n.wall, n.sleeping
	if n.worst.flags&partial == 0 {
		wall, sleeping = wall-(n.worst.end-n.worst.begin), sleeping-n.worst.sleeping
	}
	return sleeping*2 > wall
}
