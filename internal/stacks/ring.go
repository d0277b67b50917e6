package stacks

import (
	"cmp"
	"fmt"
	"slices"

	"braid/inline"
	"braid/internal/timeline"
)

const (
	// slack is how far, in ns, a record's time may be off beyond the error of the clock: a stub reads the counter some
	// instructions before its record counts.
	slack = 200
	// maxDepth bounds the open methods of a sample, against files that are hostile: those within are left out. A stack
	// of 8 MiB has room for fewer.
	maxDepth = 1 << 17
	// maxTries bounds the states of a ring before a sample, and those after it, that are looked at.
	maxTries = 8
)

// threadKey is a thread.
type threadKey struct{ pid, tid uint32 }

// moment is a sample that the rings are asked for.
type moment struct {
	time  int64  // CLOCK_BOOTTIME ns
	index uint32 // of the sample, in the order of the file
}

// states is what the ring of its thread says of a sample: chains of open methods, as nodes. Chains[first] was open at
// the sample's time; those after it were open a little before or after.
type states struct {
	first uint32
	n     uint8 // 0: no ring covers that time
	// tail: it was after the newest record. Perhaps the thread no longer recorded: one that was asked to stop does so at
	// once, and says when only later.
	tail  bool
	space uint32
	// left is the method whose exit was the newest record, entered the one whose entry is the next: no other records
	// lie between those and the sample. inline.Unknown: it was another record.
	left, entered uint32
}

// node is a chain of open methods: one more than its parent. Node 0 is no method.
type node struct {
	parent, method, space, depth uint32
}

// none is a chain that was not numbered yet.
const none = ^uint32(0)

// open is an open method during a sweep.
type open struct{ method, node uint32 }

// sweep goes through one thread's rings and notes which methods were open at given moments.
type sweep struct {
	*Join
	space  *space
	window int64 // ns before and after a moment in which another state may be the true one
	todo   []moment
	stack  []open
	left   uint32   // the method whose exit was the newest record, or inline.Unknown
	past   []change // the newest ones, oldest first
	active []tried  // moments whose window has not ended

	covered []span // in order of time
	seen    int    // of covered: how many begin before the newest record
}

// change is a state that ended at a time.
type change struct {
	at     int64
	before uint32
}

type tried struct {
	moment
	left, entered uint32
	chains        []uint32
	after         int
}

// rings goes through all rings, with the moments of each thread.
func (j *Join) rings(moments map[threadKey][]moment) error {
	for _, th := range j.trace.Threads {
		sp := j.spaceOf(th.Space)
		k := threadKey{th.Pid, th.Tid}
		list := moments[k]
		slices.SortFunc(list, func(a, b moment) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.index, b.index)) })
		if err := j.sweep(sp, th, list); err != nil {
			return fmt.Errorf("methods of thread %d: %w", th.Tid, err)
		}
	}
	for _, s := range j.spaces {
		s.index()
	}
	return nil
}

// span is a time that a ring covers.
type span struct {
	begin, end int64
	newest     int64 // record
	late       bool  // older records were overwritten: it begins with its first record
	continues  bool  // it begins where the one before it ends
}

// sweep decodes a thread's rings. It does so also if there are no moments: that is how one learns which functions are
// methods.
func (j *Join) sweep(sp *space, th *timeline.Thread, list []moment) error {
	first, _ := slices.BinarySearchFunc(list, th.Begin, func(m moment, at int64) int { return cmp.Compare(m.time, at) })
	s := &sweep{Join: j, space: sp, window: j.trace.Clock.MaxResidualNs() + slack, todo: list[first:]}
	clock := j.trace.Clock.Cursor()
	segments := func(yield func(*timeline.Segment, error) bool) {
		for seg, err := range j.trace.Segments(th) {
			if err == nil {
				c := span{begin: clock.Ns(seg.Begin), end: clock.Ns(seg.End), late: !seg.Complete && !seg.Continues, continues: seg.Continues}
				if seg.Ended != 0 {
					c.end = seg.Ended
				}
				s.covered = append(s.covered, c)
			}
			if !yield(seg, err) {
				return
			}
		}
	}
	err := j.trace.Joiner(th).Edges(segments, func(edges []timeline.Edge) error {
		for i := range edges {
			s.cover(&edges[i])
			s.edge(&edges[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.finish(th.End)
	s.forget(list[first : len(list)-len(s.todo)])
	return nil
}

// cover learns where spans begin whose oldest records were overwritten, and when their newest ones are.
func (s *sweep) cover(e *timeline.Edge) {
	if e.Begin && e.Flags&inline.CutStart != 0 || !e.Begin && e.Flags&inline.CutEnd != 0 {
		return // no record
	}
	for ; s.seen < len(s.covered) && s.covered[s.seen].begin <= e.Ns; s.seen++ {
		if c := &s.covered[s.seen]; c.late {
			c.begin = e.Ns
		}
	}
	if s.seen > 0 {
		s.covered[s.seen-1].newest = e.Ns
	}
}

// forget drops what was noted of moments that no ring covers.
func (s *sweep) forget(list []moment) {
	for i := range s.covered[s.seen:] { // without any record
		if c := &s.covered[s.seen+i]; c.late {
			c.begin = c.end + 1
		}
	}
	i := 0
	for _, m := range list {
		for i < len(s.covered) && s.covered[i].end < m.time {
			i++
		}
		st := &s.Join.states[m.index]
		if i == len(s.covered) || s.covered[i].begin > m.time {
			st.n = 0
			continue
		}
		st.tail = m.time > s.covered[i].newest && (i+1 == len(s.covered) || !s.covered[i+1].continues)
	}
}

func (s *sweep) edge(e *timeline.Edge) {
	near := len(s.active) > 0 || len(s.todo) > 0 && e.Ns >= s.todo[0].time-s.window
	before := uint32(0)
	if near {
		before = s.node()
		entered := inline.Unknown
		if e.Begin {
			entered = e.Method
		}
		s.begin(e.Ns, before, entered)
		s.retire(e.Ns)
	}
	if s.left = inline.Unknown; !e.Begin {
		s.left = e.Method
	}
	if e.Begin {
		s.stack = append(s.stack, open{e.Method, none})
	} else if n := len(s.stack); n > 0 {
		s.stack = s.stack[:n-1]
	}
	if !near {
		s.past = s.past[:0]
		return
	}
	if len(s.past) == maxTries {
		s.past = append(s.past[:0], s.past[1:]...)
	}
	s.past = append(s.past, change{e.Ns, before})
	if len(s.active) > 0 {
		now := s.node()
		for i := range s.active {
			if a := &s.active[i]; a.after < maxTries {
				a.after++
				a.chains = append(a.chains, now)
			}
		}
	}
}

// begin notes the state at the moments before time at, until when it was node. The next record enters a method.
func (s *sweep) begin(at int64, node, entered uint32) {
	for len(s.todo) > 0 && s.todo[0].time < at {
		t := tried{moment: s.todo[0], left: s.left, entered: entered, chains: []uint32{node}}
		for i := len(s.past) - 1; i >= 0 && s.past[i].at >= t.time-s.window; i-- {
			t.chains = append(t.chains, s.past[i].before)
		}
		s.active = append(s.active, t)
		s.todo = s.todo[1:]
	}
}

// retire gives up waiting for states of moments that are a window before time at.
func (s *sweep) retire(at int64) {
	s.active = slices.DeleteFunc(s.active, func(t tried) bool {
		if t.time+s.window >= at {
			return false
		}
		s.Join.states[t.index] = states{first: uint32(len(s.chains)), n: uint8(len(t.chains)), space: s.space.id, left: t.left, entered: t.entered}
		s.chains = append(s.chains, t.chains...)
		return true
	})
}

// finish notes the state at the moments that are left, up to the thread's last time.
func (s *sweep) finish(end int64) {
	s.begin(end+1, s.node(), inline.Unknown)
	s.retire(end + 2*s.window + 2)
}

// node numbers the chain of open methods.
func (s *sweep) node() uint32 {
	i := len(s.stack)
	for i > 0 && s.stack[i-1].node == none {
		i--
	}
	parent := uint32(0)
	if i > 0 {
		parent = s.stack[i-1].node
	}
	for ; i < min(len(s.stack), maxDepth); i++ {
		n := node{parent: parent, method: s.stack[i].method, space: s.space.id, depth: uint32(i) + 1}
		id, ok := s.nodeIDs[n]
		if !ok {
			id = uint32(len(s.nodes))
			s.nodeIDs[n] = id
			s.nodes = append(s.nodes, n)
		}
		s.stack[i].node = id
		parent = id
	}
	return parent
}

// lines appends the open methods of a chain, from the outermost to the innermost.
func (j *Join) lines(dst []line, chain uint32) []line {
	n := j.nodes[chain]
	start := len(dst)
	dst = slices.Grow(dst, int(n.depth))[:start+int(n.depth)]
	for i := len(dst) - 1; i >= start; i-- {
		s := j.spaces[n.space]
		dst[i] = line{fn: j.methodFn(s, n.method), key: s.key(n.method), method: true, any: n.method == inline.Unknown}
		if s.whole(n.method) {
			dst[i].addr = dst[i].key
		}
		n = j.nodes[n.parent]
	}
	return dst
}
