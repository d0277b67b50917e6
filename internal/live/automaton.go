package live

import (
	"math/bits"
	"slices"

	"braid/internal/trigger"
)

// automaton is all patterns of methods. Each method of a pattern is a bit of a call's state: it is set if the call is of
// that method, and its callers are those before it in the pattern.
type automaton struct {
	patterns []string // by bit
	start    uint64   // bits that need no caller
	stay     uint64   // bits that callees keep, since any number of methods may follow
	any      uint64   // bits of the pattern *
	of       []*watch // by bit; nil if it is not the last of a pattern

	open  uint64 // of calls that are reported while they are open
	exit  uint64 // of calls of which the end is of interest
	entry uint64 // of calls of which the beginning is
	loop  uint64
}

// watch is one condition with what is known of it for the process.
type watch struct {
	c     *trigger.Condition
	limit uint64 // ticks

	row    int      // Frame: slow calls in a row
	frozen uint64   // Frame: ticks
	since  uint64   // Response: counter of the input that is not answered; 0 none
	told   bool     // Response: that it takes long was reported
	method uint32   // Response: of the input
	newest []uint64 // Stack: ticks of the newest calls
	at     int      // Stack: where the next one goes
	sum    uint64   // Stack
	tid    int      // Response: of the input
}

func newAutomaton(conditions []*trigger.Condition) (a automaton, all []*watch) {
	for _, c := range conditions {
		w := &watch{c: c}
		all = append(all, w)
		switch c.Kind {
		case trigger.Method:
			b := a.path(w, c.Method)
			a.exit, a.open = a.exit|b, a.open|b
		case trigger.Frame:
			b := a.path(w, c.Method)
			a.exit |= b
			if c.Frozen != 0 || c.Count == 1 {
				a.open |= b
			}
		case trigger.Unresponsive:
			a.loop |= a.path(w, c.Method)
		case trigger.Response:
			a.entry |= a.path(w, c.Method)
			a.exit |= a.path(w, c.To)
		case trigger.Stack:
			a.exit |= a.path(w, c.Path...)
		}
	}
	return a, all
}

// path adds a pattern and returns the bit of its last method; 0 if there is no room.
func (a *automaton) path(w *watch, methods ...string) uint64 {
	if len(a.patterns)+len(methods) > trigger.MaxMethods {
		return 0
	}
	first, bit := true, uint64(0)
	for _, m := range methods {
		if m == "**" {
			a.stay |= bit
			continue
		}
		bit = 1 << len(a.patterns)
		if first {
			a.start |= bit
		}
		if m == "*" {
			a.any |= bit
		}
		a.patterns, a.of, first = append(a.patterns, m), append(a.of, nil), false
	}
	if bit != 0 {
		a.of[bits.TrailingZeros64(bit)] = w
	}
	return bit
}

// mask is the bits that a method of a name may have.
func (a *automaton) mask(names ...string) uint64 {
	m := a.any
	for i, p := range a.patterns {
		if m&(1<<i) == 0 && slices.ContainsFunc(names, func(n string) bool { return trigger.MatchMethod(p, n) }) {
			m |= 1 << i
		}
	}
	return m
}

// next is a call's state, from its caller's and its method's mask.
func (a *automaton) next(caller, mask uint64) uint64 {
	return (caller<<1|a.start)&mask | caller&a.stay
}

// each calls f for each set bit's condition.
func (a *automaton) each(set uint64, f func(bit uint64, w *watch)) {
	for ; set != 0; set &= set - 1 {
		bit := set & -set
		if w := a.of[bits.TrailingZeros64(bit)]; w != nil {
			f(bit, w)
		}
	}
}
