package inline

// calls is what a thread has open, and what it has left without an exit. It outlives segments.
type calls struct {
	stack []frame // open, outermost first
	left  left
	// settled says that stack is that of the last segment's end. It is that of its beginning if the segment had no
	// framed and no resumed record: whoever only decodes does without the end's.
	settled bool
}

// frame is an open call.
type frame struct {
	method uint32
	sp     uint32 // low half of the stack pointer at the entry, if framed
	framed bool
	// guessed: the entry was not seen, and sp is where control came back at first, or above it.
	guessed bool
	// base: a stack begins with this call. It was seen to go on while calls that stand before it were left.
	base bool
}

func (c *calls) reset() {
	c.stack, c.settled = c.stack[:0], true
	c.left.reset()
}

// settle brings the stack to the end of d, which was decoded last.
func (c *calls) settle(d *Decoded) {
	c.left.endSegment()
	if c.settled {
		return
	}
	c.settled = true
	n := len(c.stack)
	for range d.Orphans {
		c.stack = append(c.stack, frame{})
	}
	copy(c.stack[d.Orphans:], c.stack[:n])
	clear(c.stack[:d.Orphans])
	for i := range d.Events {
		if e := &d.Events[i]; e.Kind == KindEntry {
			c.stack = append(c.stack, frame{method: e.Method})
		} else {
			c.stack = c.stack[:len(c.stack)-1]
		}
	}
}

// Limits of looking for the call that control came back into.
const (
	// nearFrame is how far below its entry's stack pointer a call that was left may be found again, in bytes, if nothing
	// is known of its method. It is also the most by which a method's frame may grow.
	nearFrame = 64 << 10
	// smallFrame is how far an open call may be so that it is preferred to one that was left, in the same case. Stacks
	// are larger.
	smallFrame = 4 << 10
	// maxCompared is how many open calls below the first candidate are compared with it.
	maxCompared = 4096
)

// find finds the call of method that control came back into with stack pointer sp: as the number of open calls that
// stay open, or as a call that was left; neither if it was never seen.
//
// Stacks grow downwards and a call's frame lies below its entry's stack pointer. So of the calls of the method whose
// entry lies above sp, it is the nearest. No other method's calls say anything about it, since they may be on other
// stacks. A call that was left may be gone, though, and another one in its place: then the method's usual distance
// decides.
func (c *calls) find(method, sp uint32, budget *int) (keep int, was leftID) {
	s := c.left.of(method)
	was, apart := c.left.find(s, sp)
	keep, dist := c.findOpen(method, sp, s.reach, was != noLeft, budget)
	if keep == 0 || was != noLeft && !openIsRight(dist, apart, s.reach) {
		return 0, was
	}
	if f := &c.stack[keep-1]; was == noLeft && f.framed && !f.guessed && (s.reach == 0 || dist < s.reach) {
		s.reach = dist
	}
	return keep, noLeft
}

// openIsRight decides between an open call and one that was left, from how far their entries are above.
func openIsRight(open, was, reach uint32) bool {
	if reach == 0 {
		return open <= smallFrame || open <= was
	}
	off := func(d uint32) uint32 { return max(d, reach) - min(d, reach) }
	return off(open) <= off(was)
}

// findOpen finds the nearest open call of method whose entry lies above sp, as the number of calls that stay open, and
// how far above it is. If there is none, it is the innermost call of which the stack pointer is not known, at 2^31.
func (c *calls) findOpen(method, sp, reach uint32, elsewhere bool, budget *int) (keep int, dist uint32) {
	end, bare := 0, 0
	if elsewhere { // perhaps nothing of what is looked through will be unwound
		end = max(0, len(c.stack)-max(maxCompared, *budget))
	}
	i := len(c.stack) - 1
	for ; i >= end; i-- {
		f := &c.stack[i]
		if f.method != method {
			continue
		}
		if !f.framed {
			bare = max(bare, i+1)
			continue
		}
		d := f.sp - sp
		if d >= 1<<31 || keep > 0 && d >= dist {
			continue
		}
		if keep == 0 {
			end = max(end, i-maxCompared)
		}
		keep, dist = i+1, d
		if d == reach {
			break
		}
	}
	*budget -= len(c.stack) - i
	if keep == 0 && bare > 0 {
		return bare, 1 << 31
	}
	return keep, dist
}

// findBare finds the innermost open call of a method, as the number of calls that stay open.
func (c *calls) findBare(method uint32) int {
	n := len(c.stack)
	for n > 0 && c.stack[n-1].method != method {
		n--
	}
	return n
}
