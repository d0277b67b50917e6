package trigger

import (
	"maps"
	"slices"
	"time"
)

// instance is what is known of a rule's condition for one process.
type instance struct {
	target int
	seen   uint64 // when the last observation came
	due    uint64 // when to look again, if nothing is observed before
	leaf   []leafState
	node   []nodeState
	// fired: this stretch of truth has fired. held: it would have, but for the cooldown.
	fired, held bool
}

// leafState is what was observed. It counts until a time, which is included.
type leafState struct {
	on    bool
	until uint64
	last  Observation // that met it
}

// nodeState is what follows from it, as of the last look. It stays so until the rule's next look is due.
type nodeState struct {
	base  bool   // true, apart from For
	since uint64 // when base became so, if it is
	truth bool
	ever  bool   // it was true at a time that may still count
	last  uint64 // when it was last true, if ever
}

// add appends a condition's nodes and returns the index of its own.
func (s *ruleState) add(c *Condition, within time.Duration) int {
	n := node{c: c, leaf: -1, within: within}
	s.slack += c.Within
	for _, m := range c.Members {
		n.members = append(n.members, s.add(m, c.Within))
	}
	if len(c.Members) == 0 {
		n.leaf = len(s.leaves)
		s.leaves = append(s.leaves, c)
	}
	s.nodes = append(s.nodes, n)
	return len(s.nodes) - 1
}

// fresh is what is known of a process of which nothing was observed: what is known of the system.
func (s *ruleState) fresh(target int) *instance {
	i := &instance{target: target, due: forever, leaf: make([]leafState, len(s.leaves)), node: make([]nodeState, len(s.nodes))}
	if sys := s.all[0]; sys != nil {
		copy(i.node, sys.node)
	}
	return i
}

// observe writes down what an observation says, and reports whether anything may have changed.
func (s *ruleState) observe(e *Engine, o Observation) (changed bool) {
	for k, c := range s.leaves {
		if !c.about(&o) {
			continue
		}
		met, i := c.met(o.Value), s.all[o.Target]
		if !met && (!c.level() || i == nil || !i.leaf[k].on) {
			continue
		}
		if i == nil {
			s.evict(e)
			i = s.fresh(o.Target)
			s.all[o.Target] = i
		}
		i.seen, changed = e.now, true
		l := &i.leaf[k]
		switch {
		case !met && l.until != forever: // over already, and only counts for a while
		case !met:
			l.until = addSat(e.now-1, c.Within)
			l.on = l.until >= e.now
		case c.level():
			l.on, l.until, l.last = true, forever, o
		default:
			l.on, l.last = true, o
			l.until = max(l.until, addSat(e.now, c.lasting()+c.Within))
		}
	}
	return changed
}

// evict makes room for one more process: the one that was not heard of for longest goes.
func (s *ruleState) evict(e *Engine) {
	if len(s.all) <= maxTargets {
		return
	}
	var oldest *instance
	for _, i := range s.all {
		if i.target != 0 && (oldest == nil || i.seen < oldest.seen || i.seen == oldest.seen && i.target < oldest.target) {
			oldest = i
		}
	}
	delete(s.all, oldest.target)
	e.stats.Evicted++
}

// look finds out what is true now, for the system and for all processes, and fires. cause is the observation that changed
// something, nil if time did.
func (s *ruleState) look(e *Engine, cause *Observation, fired []Fired) []Fired {
	s.at = e.now
	sys := s.all[0]
	if cause != nil && cause.Target != 0 && s.due > s.at { // nothing has changed for anyone else
		fired = s.lookAt(e, s.all[cause.Target], sys, cause, fired)
	} else {
		for _, pid := range slices.Sorted(maps.Keys(s.all)) { // the system first
			fired = s.lookAt(e, s.all[pid], sys, cause, fired)
		}
	}
	s.due = forever
	for _, i := range s.all {
		s.due = min(s.due, i.due)
	}
	return fired
}

// lookAt is look for one process.
func (s *ruleState) lookAt(e *Engine, i, sys *instance, cause *Observation, fired []Fired) []Fired {
	s.evaluate(i, sys)
	fired = s.fire(e, i, sys, cause, fired)
	i.due = max(s.next(i), s.at+1)
	if i != sys && i.quiet(sys) {
		delete(s.all, i.target)
	}
	return fired
}

func (s *ruleState) evaluate(i, sys *instance) {
	for k := range i.leaf {
		l := &i.leaf[k]
		l.on = l.on && l.until >= s.at
	}
	for k := range s.nodes {
		d, n := &s.nodes[k], &i.node[k]
		base := s.base(i, sys, d)
		if !base {
			n.since = 0
		} else if !n.base {
			n.since = s.at
		}
		n.base = base
		was := n.truth
		n.truth = base && s.at >= addSat(n.since, d.c.For)
		switch {
		case n.truth:
			n.ever, n.last = true, s.at
		case was:
			n.last = max(n.last, s.at-1) // until now: nothing changes without a look
		}
		if n.ever && !n.truth && s.at > addSat(n.last, d.within) {
			n.ever, n.last = false, 0
		}
	}
}

// base is a node's truth apart from For. Its members' states are those of now.
func (s *ruleState) base(i, sys *instance, d *node) bool {
	if d.leaf >= 0 {
		return i.leaf[d.leaf].on || sys.leaf[d.leaf].on
	}
	for _, m := range d.members {
		counts := i.node[m].ever
		if counts != (d.c.Kind == All) {
			return counts
		}
	}
	return d.c.Kind == All
}

// next is when something may change for a process without an observation, or forever.
func (s *ruleState) next(i *instance) uint64 {
	next := uint64(forever)
	for k := range i.leaf {
		if l := &i.leaf[k]; l.on && l.until != forever {
			next = min(next, l.until+1)
		}
	}
	for k := range i.node {
		n, d := &i.node[k], &s.nodes[k]
		switch {
		case n.base && !n.truth:
			next = min(next, addSat(n.since, d.c.For))
			fallthrough
		case !n.truth:
			if n.ever {
				next = min(next, addSat(n.last, d.within)+1)
			}
		}
	}
	if i.held {
		next = min(next, s.cooled[i.target])
	}
	return next
}

// quiet reports whether a process differs in nothing from one that was never heard of.
func (i *instance) quiet(sys *instance) bool {
	if i.fired || i.held {
		return false
	}
	for k := range i.leaf {
		if i.leaf[k].on {
			return false
		}
	}
	return slices.Equal(i.node, sys.node)
}

// fire decides whether a rule fires for a process.
func (s *ruleState) fire(e *Engine, i, sys *instance, cause *Observation, fired []Fired) []Fired {
	root := len(s.nodes) - 1
	switch {
	case !i.node[root].truth:
		i.fired, i.held = false, false
	case i.fired || i != sys && sys.node[root].truth:
	case s.at < s.cooled[i.target]:
		if !i.held {
			e.stats.Suppressed[s.rule.Name]++
		}
		i.held = true
	default:
		i.fired, i.held = true, false
		e.stats.Fired[s.rule.Name]++
		s.cool(i.target)
		return append(fired, s.describe(i, sys, cause))
	}
	return fired
}

// cool begins the time in which a rule does not fire again for a process.
func (s *ruleState) cool(target int) {
	if s.rule.Cooldown == 0 {
		return
	}
	if len(s.cooled) >= 4*maxTargets {
		maps.DeleteFunc(s.cooled, func(_ int, until uint64) bool { return until <= s.at })
	}
	for len(s.cooled) >= 4*maxTargets { // programs that come and go faster than rules cool down
		first := -1
		for pid, until := range s.cooled {
			if first < 0 || until < s.cooled[first] || until == s.cooled[first] && pid < first {
				first = pid
			}
		}
		delete(s.cooled, first)
	}
	s.cooled[target] = addSat(s.at, s.rule.Cooldown)
}

func addSat(t uint64, d time.Duration) uint64 {
	if t > forever-uint64(d) {
		return forever
	}
	return t + uint64(d)
}
