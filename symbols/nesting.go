package symbols

import (
	"iter"
	"slices"
)

// maxNesting bounds how many ranges around an address are looked at. Real files nest two or three deep.
const maxNesting = 64

// nesting finds the ranges that contain an address, among ranges that may overlap in any way. Ranges are numbered in
// the order of their starts.
//
// For each range, outer is the top of a stack on which earlier ranges lie from which only those were popped that end
// before this one starts. So every range that contains an address is on the chain from the last range that starts at or
// before it.
type nesting struct {
	starts []uint64
	ends   []uint64 // exclusive
	outer  []int32  // -1 for none
}

// newNesting takes over starts, which must be sorted, and ends.
func newNesting(starts, ends []uint64) nesting {
	n := nesting{starts, ends, make([]int32, len(starts))}
	var stack []int32
	for i := range starts {
		for len(stack) > 0 && ends[stack[len(stack)-1]] <= starts[i] {
			stack = stack[:len(stack)-1]
		}
		n.outer[i] = -1
		if len(stack) > 0 {
			n.outer[i] = stack[len(stack)-1]
		}
		stack = append(stack, int32(i))
	}
	return n
}

// containing yields the ranges that contain addr, the last to start first.
func (n *nesting) containing(addr uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		i := n.last(addr)
		for hops := 0; i >= 0 && hops < maxNesting; hops++ {
			if addr < n.ends[i] && !yield(i) {
				return
			}
			i = int(n.outer[i])
		}
	}
}

// last returns the last range that starts at or before addr, or -1.
func (n *nesting) last(addr uint64) int {
	i, exact := slices.BinarySearch(n.starts, addr)
	if !exact {
		return i - 1
	}
	for i+1 < len(n.starts) && n.starts[i+1] == addr {
		i++
	}
	return i
}
