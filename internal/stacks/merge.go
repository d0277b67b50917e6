package stacks

import "slices"

// line is an open method or a user frame, as the merge sees it.
type line struct {
	fn   FuncID
	key  uint64 // of a method: what it is on both sides
	addr uint64 // of a method: where it begins, 0 if not known as a whole
	// method: the function has a stub, so that ring and stack may both know it.
	method bool
	// any: a method is open, but which one is not known. It was entered before the first record that is left, so that
	// those that are known are within it.
	any bool
	// entry: a function that begins a thread. No method is outside of it.
	entry bool
}

// pair is one line of a merged stack: indices into the open methods and into the frames, -1 where that side lacks it.
type pair struct{ ring, frame int }

// verdict is what a merge found out about how well ring and stack agree.
type verdict struct {
	both     int // methods that both know
	supplied int // methods that only the ring knows
	// unseen are methods that the ring has open where the stack has certainly no frame for them; unopened are frames of
	// methods that the ring should have open.
	unseen, unopened int
}

func (v verdict) contradictions() int { return v.unseen + v.unopened }

const (
	maxRingDepth  = 4096 // innermost open methods that are compared
	maxFrameDepth = 512  // innermost frames of methods that are compared
)

// call is a native function that was seen to call a method.
type call struct{ native, method FuncID }

// merger holds the merge's buffers.
//
// The rules. Both sides are given from the outermost to the innermost.
//
//  1. All open methods and all frames are in the result, each side in its own order.
//  2. A method that is on both sides in compatible order is one line. Of the possible pairings the one with the most
//     pairs counts, and of several the one that is furthest inside: unwinding starts there, and what it loses in recursion
//     are the outer calls. Methods of which the ring knows no name are paired with what is outside of those.
//  3. Between two such lines the order of what only one side knows is not certain. A native function that was seen to
//     call a method, in any stack of the trace, is outside of that method. Functions that begin a thread are outside of
//     all methods. Else methods are outside of native functions: unwinding loses methods that called a native function
//     which keeps no frame pointer.
type merger struct {
	calls map[call]struct{}

	methods []int // indices of frames that are methods
	score   []int32
	pairs   []pair // that both know, innermost first
	outside []int  // of each open method in a gap, innermost first: the frame before which all lie outside of it
}

// merge appends to dst. complete says that unwinding reached the stack's beginning and loses nothing on its way. leaf
// says that the last frame is where the thread was, so that no method can be open within it.
func (m *merger) merge(dst []pair, ring, frames []line, complete, leaf bool) ([]pair, verdict) {
	m.match(ring, frames)
	v := verdict{both: len(m.pairs), supplied: len(ring) - len(m.pairs)}
	if n := len(m.pairs); n > 0 {
		// Within the outermost pair both should know the same.
		outer := m.pairs[n-1]
		for _, i := range m.methods {
			if i > outer.frame {
				v.unopened++
			}
		}
		v.unopened -= n - 1
		switch {
		case complete:
			v.unseen = len(ring) - 1 - outer.ring - (n - 1)
		case leaf && m.pairs[0].frame == len(frames)-1:
			v.unseen = len(ring) - 1 - m.pairs[0].ring
		}
	} else if n := len(frames); leaf && n > 0 && frames[n-1].method {
		v.unopened = 1
	}
	r, f := 0, 0
	for i := len(m.pairs) - 1; i >= 0; i-- {
		p := m.pairs[i]
		dst = m.between(dst, ring[:p.ring], frames[:p.frame], r, f)
		dst = append(dst, p)
		r, f = p.ring+1, p.frame+1
	}
	return m.between(dst, ring, frames, r, f), v
}

// match finds the pairs of methods that both sides know.
func (m *merger) match(ring, frames []line) {
	m.pairs, m.methods = m.pairs[:0], m.methods[:0]
	for i := range frames {
		if frames[i].method {
			m.methods = append(m.methods, i)
		}
	}
	known := 0
	for known < len(ring) && ring[known].any {
		known++
	}
	m.exact(ring[known:], frames)
	for i := range m.pairs {
		m.pairs[i].ring += known
	}
	if len(m.pairs) == 0 && known < len(ring) {
		return // none of the names agrees, so that nothing says where the nameless ones are
	}
	n := len(m.methods)
	if len(m.pairs) > 0 {
		n, _ = slices.BinarySearch(m.methods, m.pairs[len(m.pairs)-1].frame)
	}
	for known > 0 && n > 0 {
		known, n = known-1, n-1
		m.pairs = append(m.pairs, pair{known, m.methods[n]})
	}
}

// exact pairs methods by what they are: the longest common subsequence.
func (m *merger) exact(ring, frames []line) {
	k, n := len(ring), len(m.methods)
	// Equal innermost lines are a pair in one of the longest, and in the innermost one.
	for k > 0 && n > 0 && ring[k-1].key == frames[m.methods[n-1]].key {
		k, n = k-1, n-1
		m.pairs = append(m.pairs, pair{k, m.methods[n]})
	}
	if k == 0 || n == 0 {
		return
	}
	r0, f0 := max(0, k-maxRingDepth), max(0, n-maxFrameDepth)
	k, n = k-r0, n-f0
	same := func(i, j int) bool { return ring[r0+i-1].key == frames[m.methods[f0+j-1]].key } // the ith and the jth, from 1
	// score[i][j] is how many pairs the outer i open methods and the outer j frames have at best.
	w := n + 1
	if size := (k + 1) * w; cap(m.score) < size {
		m.score = make([]int32, size)
	} else {
		m.score = m.score[:size]
	}
	clear(m.score[:w])
	for i := 1; i <= k; i++ {
		m.score[i*w] = 0
		for j := 1; j <= n; j++ {
			if same(i, j) {
				m.score[i*w+j] = m.score[(i-1)*w+j-1] + 1
			} else {
				m.score[i*w+j] = max(m.score[(i-1)*w+j], m.score[i*w+j-1])
			}
		}
	}
	for i, j := k, n; i > 0 && j > 0; {
		switch {
		case same(i, j):
			i, j = i-1, j-1
			m.pairs = append(m.pairs, pair{r0 + i, m.methods[f0+j]})
		case m.score[(i-1)*w+j] >= m.score[i*w+j-1]:
			i--
		default:
			j--
		}
	}
}

// between appends what lies between two pairs: the open methods from r on and the frames from f on.
func (m *merger) between(dst []pair, ring, frames []line, r, f int) []pair {
	m.outside = m.outside[:0]
	limit := len(frames)
	for i := len(ring) - 1; i >= r && f < limit; i-- {
		at := 0
		for k := limit - 1; k >= f; k-- {
			if frames[k].method {
				continue
			}
			if _, ok := m.calls[call{frames[k].fn, ring[i].fn}]; ok {
				at, limit = k+1, k
				break
			}
		}
		m.outside = append(m.outside, at)
	}
	for len(m.outside) < len(ring)-r {
		m.outside = append(m.outside, 0)
	}
	if r < len(ring) {
		for f < len(frames) && frames[f].entry {
			dst = append(dst, pair{-1, f})
			f++
		}
	}
	for ; r < len(ring); r++ {
		for ; f < m.outside[len(ring)-1-r]; f++ {
			dst = append(dst, pair{-1, f})
		}
		dst = append(dst, pair{r, -1})
	}
	for ; f < len(frames); f++ {
		dst = append(dst, pair{-1, f})
	}
	return dst
}
