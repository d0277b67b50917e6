package analysis

import (
	"fmt"
	"math"

	"braid/inline"
	"braid/internal/timeline"
)

// minTime is before all times, far enough from the end of int64 that differences do not overflow.
const minTime = math.MinInt64 / 4

// Points counts what happened at a moment rather than for a time.
type Points struct {
	Fsyncs   uint32 `json:"fsyncs,omitempty"`
	FsyncNs  int64  `json:"fsync_ns,omitempty"` // that they took, on a CPU or not
	Faults   uint32 `json:"major_faults,omitempty"`
	Requests uint32 `json:"requests,omitempty"` // to block devices
	Bytes    uint64 `json:"bytes,omitempty"`    // of requests
}

func (p *Points) add(o Points) {
	p.Fsyncs += o.Fsyncs
	p.FsyncNs += o.FsyncNs
	p.Faults += o.Faults
	p.Requests += o.Requests
	p.Bytes += o.Bytes
}

func (p *Points) count(s *timeline.Span) {
	switch {
	case s.Request():
		p.Requests++
		p.Bytes += uint64(s.Bytes)
	case s.Kind == timeline.SpanFsync:
		p.Fsyncs++
		p.FsyncNs += s.End - s.Start
	case s.Kind == timeline.SpanMajorFault:
		p.Faults++
	}
}

// frame is an open call. The walker's stack[0] stands for being in none.
type frame struct {
	begin   int64
	self    Split
	points  Points // of itself
	method  uint32 // by methods
	serial  uint64 // of the thread's calls; the same in each pass
	stretch int    // in which it began
	node    *node  // of the tree, or nil
}

// visitor is one pass. Both are called with the walker at their time: the call is the last of the walker's stack.
type visitor interface {
	enter(w *walker, f *frame)
	leave(w *walker, f *frame, flags timeline.SliceFlags)
}

// walker sweeps over a thread's calls and causes. Its buffers are reused from thread to thread.
type walker struct {
	thread    int // index in the trace
	methods   *methods
	visit     visitor
	stretches []stretch
	stack     []frame
	cur       int
	until     int64 // where stretches[cur] ends
	now       int64
	calls     uint64 // of the thread so far
	spans     []timeline.Span
	nextSpan  int
	points    Points // of the thread so far
	// observe gets each part of a stretch and the call that it was spent in; nil: nobody is interested.
	observe func(f *frame, from, to int64, st *stretch)
}

// run sweeps over one thread.
func (w *walker) run(t *timeline.Trace, thread int, j *timeline.Joiner) error {
	th := t.Threads[thread]
	a := t.Activity(th)
	w.thread, w.now, w.nextSpan, w.spans, w.points, w.calls = thread, minTime, 0, nil, Points{}, 0
	if a != nil {
		w.spans = a.Spans
	}
	w.stretches = stretches(w.stretches, a)
	w.stack = append(w.stack[:0], frame{})
	w.at(0)
	ids := w.methods.space(th.Space)
	err := j.Edges(t.Segments(th), func(edges []timeline.Edge) error {
		for i := range edges {
			e := &edges[i]
			w.advance(e.Ns)
			if e.Begin {
				w.visit.enter(w, w.push(ids.id(e.Method)))
				continue
			}
			w.visit.leave(w, &w.stack[len(w.stack)-1], e.Flags)
			w.stack = w.stack[:len(w.stack)-1]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("analyse thread %d: %w", th.Tid, err)
	}
	return nil
}

// push begins a call. A frame is large: it is made where it stays.
func (w *walker) push(method uint32) *frame {
	n := len(w.stack)
	if n < cap(w.stack) {
		w.stack = w.stack[:n+1]
		w.stack[n] = frame{}
	} else {
		w.stack = append(w.stack, frame{})
	}
	f := &w.stack[n]
	w.calls++
	f.begin, f.method, f.stretch, f.serial = w.now, method, w.cur, w.calls
	return f
}

// at makes stretch i the current one.
func (w *walker) at(i int) {
	w.cur, w.until = i, math.MaxInt64
	if i+1 < len(w.stretches) {
		w.until = w.stretches[i+1].start
	}
}

// advance gives the time until t to the innermost call.
func (w *walker) advance(t int64) {
	if t <= w.now {
		return
	}
	top := &w.stack[len(w.stack)-1]
	for w.nextSpan < len(w.spans) && w.spans[w.nextSpan].Start < t {
		s := &w.spans[w.nextSpan]
		if w.nextSpan++; s.Start >= w.now { // earlier ones began before the recording of methods
			top.points.count(s)
			w.points.count(s)
		}
	}
	for t > w.until {
		w.spend(top, w.until)
		w.at(w.cur + 1)
	}
	w.spend(top, t)
}

func (w *walker) spend(f *frame, t int64) {
	if w.now == minTime {
		w.now = t
		return
	}
	st := &w.stretches[w.cur]
	f.self[st.cause] += t - w.now
	if w.observe != nil && t > w.now {
		w.observe(f, w.now, t, st)
	}
	w.now = t
}

// total is the time of a call so far, with its callees.
func (w *walker) total(f *frame) Split {
	if f.stretch == w.cur {
		var s Split
		s[w.stretches[w.cur].cause] = w.now - f.begin
		return s
	}
	sum, old := w.stretches[w.cur].at(w.now), w.stretches[f.stretch].at(f.begin)
	return sum.sub(&old)
}

// partial are the flags of a slice that is not one whole call.
const partial = inline.CutStart | inline.CutEnd | inline.Suspended | inline.Reentered
