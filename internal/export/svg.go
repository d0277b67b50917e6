package export

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"braid/internal/kevent"
	"braid/internal/timeline"
)

// Limits of a picture's width, in pixels.
const (
	MinSVGWidth     = 400
	MaxSVGWidth     = 8000
	DefaultSVGWidth = 1000
)

// What a picture shows at most. The rest is counted, and said below the picture.
const (
	maxSVGThreads  = 16
	maxSVGDepth    = 12
	maxSVGDevices  = 8
	maxSVGLanes    = 4       // of one device: requests at the same time
	maxSVGRequests = 1 << 16 // that wait for their completion
)

// SVGOptions is how a trace is drawn. The zero value is the default.
type SVGOptions struct {
	Width int // pixels, MinSVGWidth to MaxSVGWidth; 0 is DefaultSVGWidth
}

// SVG draws a trace: for each thread, the target's main thread first, a strip of its states and its method slices
// below, then the devices' requests, on one axis of milliseconds. What is narrower than half a pixel is merged with its
// neighbours while it is read, so that memory depends on the picture's width and not on the trace's length. The same
// trace and width give the same bytes.
func SVG(out io.Writer, tr *timeline.Trace, o SVGOptions) (Counts, error) {
	width := cmp.Or(o.Width, DefaultSVGWidth)
	if width < MinSVGWidth || width > MaxSVGWidth {
		return Counts{}, fmt.Errorf("a picture %d pixels wide: want %d to %d", width, MinSVGWidth, MaxSVGWidth)
	}
	p := &picture{tr: tr, width: float64(width), byTid: map[uint32]*svgThread{}, requests: map[rqKey]svgRequest{},
		marked: map[string]bool{}, records: records{}}
	p.chooseThreads()
	p.bounds()
	for _, t := range p.threads {
		for _, th := range t.records {
			if err := p.methods(t, th); err != nil {
				return p.counts, err
			}
		}
	}
	if err := p.kernel(); err != nil {
		return p.counts, err
	}
	p.lost = p.records.lost(tr)
	for _, n := range p.lost {
		p.counts.Lost += n
	}
	if err := p.write(out); err != nil {
		return p.counts, fmt.Errorf("writing the picture: %w", err)
	}
	return p.counts, nil
}

// picture is a trace reduced to what can be seen.
type picture struct {
	tr      *timeline.Trace
	counts  Counts
	width   float64
	lo, hi  int64   // CLOCK_BOOTTIME ns, of the plot's edges
	scale   float64 // pixels a ns
	threads []*svgThread
	hidden  int // threads that are not shown
	deeper  uint64
	byTid   map[uint32]*svgThread

	devices  []*svgDevice
	requests map[rqKey]svgRequest
	unshown  uint64 // requests of further devices

	records records
	lost    map[string]uint64 // all that is lost, by name; once everything was read
	losses  row               // times in which the kernel side lost events
	marked  map[string]bool
}

type svgThread struct {
	pid, tid uint32
	name     string
	activity *timeline.Activity
	records  []*timeline.Thread // more than one if its number was used twice
	states   strip
	rows     []row // by depth
	waits    [3]row
}

// The rows of svgThread.waits.
var waitNames = [3]string{"fsync", "major faults", "reclaim"}

type svgDevice struct {
	dev   uint32
	lanes []row
	busy  []bool
}

type svgRequest struct {
	start int64
	lane  int
}

// chooseThreads takes the target's main thread, those with records, and those that ran longest.
func (p *picture) chooseThreads() {
	get := func(pid, tid uint32) *svgThread {
		t := p.byTid[tid]
		if t == nil {
			t = &svgThread{pid: pid, tid: tid}
			p.byTid[tid] = t
			p.threads = append(p.threads, t)
		}
		return t
	}
	for _, a := range p.tr.Kernel.Threads() {
		if a.Tid == 0 || a.States == [timeline.NumStates]int64{} {
			continue
		}
		t := get(a.Tgid, a.Tid)
		t.name, t.activity = a.Name, a
	}
	for _, th := range p.tr.Threads {
		t := get(th.Pid, th.Tid)
		t.name = cmp.Or(t.name, th.Name)
		t.records = append(t.records, th)
	}
	main := uint32(p.tr.Meta.Pid)
	weight := func(t *svgThread) (n, ran int64) {
		n = int64(min(len(t.records), 1))
		if t.activity != nil {
			ran = t.activity.States[timeline.Running]
		}
		if t.tid == main {
			n = math.MaxInt64
		}
		return n, ran
	}
	slices.SortFunc(p.threads, func(a, b *svgThread) int {
		an, ar := weight(a)
		bn, br := weight(b)
		return cmp.Or(cmp.Compare(bn, an), cmp.Compare(br, ar), cmp.Compare(a.tid, b.tid))
	})
	if p.hidden = len(p.threads) - maxSVGThreads; p.hidden > 0 {
		for _, t := range p.threads[maxSVGThreads:] {
			delete(p.byTid, t.tid)
		}
		p.threads = p.threads[:maxSVGThreads]
	}
	rank := func(t *svgThread) int {
		switch {
		case t.tid == main:
			return 0
		case t.pid == main:
			return 1
		}
		return 2
	}
	slices.SortFunc(p.threads, func(a, b *svgThread) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	})
}

// bounds sets the plot's edges: from the first thread's beginning to the last one's end.
func (p *picture) bounds() {
	begin, end := int64(min(p.tr.Meta.Start.BootNs, 1<<61)), int64(min(p.tr.Meta.End.BootNs, 1<<61))
	if first := p.firstEvent(); len(p.tr.Meta.Command) > 0 && first > begin { // that is the program's exec
		begin = first
	}
	lo, hi := int64(math.MaxInt64), int64(0)
	for _, t := range p.threads {
		from, to := int64(math.MaxInt64), int64(0)
		for _, th := range t.records {
			from, to = min(from, th.Begin), max(to, th.End)
		}
		if a := t.activity; a != nil {
			if a.Start > 0 {
				from = min(from, a.Start)
			}
			if a.End > 0 { // a ring is read some time after that
				to = a.End
			}
		}
		if from == math.MaxInt64 {
			from = begin
		}
		if to == 0 {
			to = end
		}
		lo, hi = min(lo, from), max(hi, to)
	}
	if lo == math.MaxInt64 {
		lo, hi = begin, end
	}
	if end > begin {
		lo, hi = max(lo, int64(min(p.tr.Meta.Start.BootNs, 1<<61))), min(hi, end)
	}
	p.lo, p.hi = lo, max(hi, lo+1000)
	p.scale = (p.width - gutter - margin) / float64(p.hi-p.lo)
}

// firstEvent is the time of the first kernel event, or 0.
func (p *picture) firstEvent() int64 {
	for chunk, err := range p.tr.File.Events() {
		if err != nil {
			break
		}
		if h, _, _, err := kevent.Next(chunk); err == nil {
			return int64(min(h.Time, 1<<61))
		}
	}
	return 0
}

// x is a time's place within the plot, which it does not leave.
func (p *picture) x(ns int64) float64 {
	return float64(min(max(ns, p.lo), p.hi)-p.lo) * p.scale
}

// span clips a time to the plot; ok is false if nothing of it lies within.
func (p *picture) span(start, end int64) (x0, x1 float64, ok bool) {
	return p.x(start), p.x(end), start <= p.hi && end >= p.lo
}

// methods reads one thread's calls.
func (p *picture) methods(t *svgThread, th *timeline.Thread) error {
	if p.tr.Clock == nil {
		return nil
	}
	type open struct {
		begin int64
		flags timeline.SliceFlags
	}
	var stack []open
	names := map[uint32]string{}
	j := p.tr.Joiner(th)
	err := j.Edges(p.tr.Segments(th), func(edges []timeline.Edge) error {
		for _, e := range edges {
			if e.Begin {
				stack = append(stack, open{e.Ns, e.Flags})
				continue
			}
			if len(stack) == 0 {
				continue
			}
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			p.counts.add(e.Flags)
			depth := len(stack)
			if depth >= maxSVGDepth {
				p.deeper++
				continue
			}
			name, ok := names[e.Method]
			if !ok {
				name = th.Space.Name(e.Method).Name
				names[e.Method] = name
			}
			for len(t.rows) <= depth {
				t.rows = append(t.rows, row{})
			}
			if x0, x1, ok := p.span(o.begin, e.Ns); ok {
				t.rows[depth].add(bar{x0: x0, x1: x1, ns: e.Ns - o.begin, label: name, count: 1, flags: o.flags | e.Flags})
			}
		}
		return nil
	})
	p.records.add(j)
	return err
}

// kernel reads the kernel events once.
func (p *picture) kernel() error {
	states := timeline.NewStates(p.lo, func(tid uint32, iv timeline.Interval) {
		if t := p.byTid[tid]; t != nil {
			if x0, x1, ok := p.span(iv.Start, iv.End); ok {
				t.states.add(iv.State, x0, x1)
			}
		}
	})
	if begin := p.tr.Meta.Start.BootNs; begin > 0 {
		states.Begin = int64(min(begin, 1<<61))
	}
	for _, th := range p.tr.Processes.Threads {
		if th.State != "" {
			if s := timeline.StateOfProc(th.State[0]); s != timeline.Unknown {
				states.Initial(uint32(th.Tid), uint32(th.Pid), s, int64(min(th.StateNs, 1<<62)))
			}
		}
	}
	last := p.hi
	s := timeline.Sorter{Deliver: func(h kevent.Header, body []byte) {
		last = max(last, int64(h.Time))
		states.Event(h, body)
		p.event(h, body)
	}}
	if end := p.tr.Meta.End.BootNs; end > 0 {
		s.MaxTime = end + 1e9
	}
	for chunk, err := range p.tr.File.Events() {
		if err != nil {
			return fmt.Errorf("reading kernel events: %w", err)
		}
		if err := s.Push(chunk); err != nil {
			continue // counted when the trace was loaded
		}
	}
	s.Flush()
	if end := int64(min(p.tr.Meta.End.BootNs, 1<<61)); end > 0 {
		last = end
	}
	states.Finish(last)
	return nil
}

func (p *picture) event(h kevent.Header, body []byte) {
	switch h.Kind {
	case kevent.KindSwitch:
		p.counts.Switches++
	case kevent.KindRqIssue:
		b := kevent.DecodeRq(body)
		if d := p.device(b.Dev); d != nil && len(p.requests) < maxSVGRequests {
			p.requests[keyOf(b)] = svgRequest{start: int64(h.Time), lane: d.take()}
		}
	case kevent.KindRqComplete:
		p.complete(h, kevent.DecodeRq(body))
	case kevent.KindFsync:
		b := kevent.DecodeFsync(body)
		p.wait(h, 0, callName(b.Call), b.StartNs)
	case kevent.KindMajorFault:
		p.wait(h, 1, "major fault", kevent.DecodeMajorFault(body).StartNs)
	case kevent.KindLost:
		b := kevent.DecodeLost(body)
		name := string(bytes.TrimRight(b.Name[:], "\x00"))
		if x0, x1, ok := p.span(int64(min(b.SinceNs, h.Time)), int64(h.Time)); ok {
			p.losses.add(bar{x0: x0, x1: x1, label: name + " " + grouped(b.Count), count: 1})
			p.marked[name] = true
		}
	case kevent.KindReclaim:
		p.wait(h, 2, "direct reclaim", kevent.DecodeReclaim(body).StartNs)
	}
}

func (p *picture) wait(h kevent.Header, which int, name string, start uint64) {
	t := p.byTid[h.Tid]
	if t == nil {
		return
	}
	if start == 0 || start > h.Time {
		start = h.Time
	}
	if x0, x1, ok := p.span(int64(start), int64(h.Time)); ok {
		t.waits[which].add(bar{x0: x0, x1: x1, ns: int64(h.Time - start), label: name, count: 1})
	}
}

func keyOf(b kevent.Rq) rqKey { return rqKey{b.Dev, b.ID, b.Sector, b.Op} }

func (p *picture) complete(h kevent.Header, b kevent.Rq) {
	d := p.device(b.Dev)
	if d == nil {
		p.unshown++
		return
	}
	k := keyOf(b)
	r, issued := p.requests[k]
	if issued {
		delete(p.requests, k)
		d.busy[r.lane] = false
	} else { // a part of a request, or one that was issued before the beginning
		r = svgRequest{start: int64(h.Time), lane: 0}
		if b.IssueNs > 0 && b.IssueNs <= h.Time {
			r.start = int64(b.IssueNs)
		}
	}
	p.counts.Requests++
	if x0, x1, ok := p.span(r.start, int64(h.Time)); ok {
		label := opName(b.Op)
		if b.Bytes > 0 {
			label += " " + byteSize(uint64(b.Bytes))
		}
		d.lanes[r.lane].add(bar{x0: x0, x1: x1, ns: int64(h.Time) - r.start, label: label, count: 1, bytes: uint64(b.Bytes)})
	}
}

func (p *picture) device(dev uint32) *svgDevice {
	i, ok := slices.BinarySearchFunc(p.devices, dev, func(d *svgDevice, dev uint32) int { return cmp.Compare(d.dev, dev) })
	if ok {
		return p.devices[i]
	}
	if len(p.devices) >= maxSVGDevices {
		return nil
	}
	d := &svgDevice{dev: dev, lanes: make([]row, 1), busy: make([]bool, 1)}
	p.devices = slices.Insert(p.devices, i, d)
	return d
}

// take gives the first lane that is free, or the last one.
func (d *svgDevice) take() int {
	for i, b := range d.busy {
		if !b {
			d.busy[i] = true
			return i
		}
	}
	if len(d.busy) < maxSVGLanes {
		d.busy = append(d.busy, true)
		d.lanes = append(d.lanes, row{})
	}
	return len(d.busy) - 1
}
