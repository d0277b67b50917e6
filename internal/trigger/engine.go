package trigger

import (
	"maps"
	"math"
	"time"
)

// Engine decides which rules fire. It is not for use by several goroutines at a time.
//
// What is true when, for one process:
//
//   - A leaf is true from an observation that meets it: for a moment (1 ns), for as long as the kind lasts by itself
//     (pressure, major faults), or, for a level (thermal, cpu_frequency), until an observation that does not meet it. An
//     observation of the system is one of every process.
//   - Its parts are the occurrences of a leaf and the members of a combination. A part counts while it is true and for
//     Within afterwards. All is true while all members count, any while one does.
//   - With For, a condition is true when that has been so for as long, without a break.
//
// A rule fires for a process at the first moment of a stretch of truth at which it is not cooling down. What is true for the
// system alone fires once, for the system, and not for its processes.
//
// An observation counts from the time at which the engine gets it, which is never before that of another observation or
// tick; Fired.Time is the observation's own. Between observations, time passes exactly: it does not matter how often
// Tick is called.
type Engine struct {
	now   uint64
	rules []*ruleState
	stats Stats
}

// Stats counts what an engine did.
type Stats struct {
	Fired      map[string]uint64 // by rule
	Suppressed map[string]uint64 // by rule: stretches of truth that ended, or fired later, because it was cooling down
	Evicted    uint64            // processes that were forgotten because there were too many
}

// maxTargets bounds the processes that a rule knows something of at a time.
const maxTargets = 1024

// ruleState is a rule with what is known of each process.
type ruleState struct {
	rule   *Rule
	leaves []*Condition
	nodes  []node
	// all has the system at 0, always, and processes of which anything differs from that.
	all    map[int]*instance
	slack  time.Duration  // for which an occurrence may count at most after it
	cooled map[int]uint64 // by process: when it may fire again
	at     uint64         // of the last look
	due    uint64         // of the next one, if nothing is observed before
}

// node is a condition with its place in the tree. Members come before the one that combines them; the root is last.
type node struct {
	c       *Condition
	members []int
	leaf    int           // index in ruleState.leaves, or -1
	within  time.Duration // for which it counts after it was true
}

const forever = math.MaxUint64

// NewEngine returns an engine for the rules of a configuration.
func NewEngine(c *Config) *Engine {
	e := &Engine{stats: Stats{Fired: map[string]uint64{}, Suppressed: map[string]uint64{}}}
	for _, r := range c.Rules {
		s := &ruleState{rule: r, all: map[int]*instance{}, cooled: map[int]uint64{}, due: forever}
		s.add(r.When, 0)
		s.all[0] = s.fresh(0)
		e.rules = append(e.rules, s)
	}
	return e
}

// Observe takes an observation and returns what fires.
func (e *Engine) Observe(o Observation) []Fired {
	to := max(e.now, o.Time)
	var fired []Fired
	if to > 0 {
		fired = e.Tick(to - 1)
	}
	e.now = to
	for _, s := range e.rules {
		if s.observe(e, o) {
			fired = s.look(e, &o, fired)
		} else if s.due <= to {
			fired = s.look(e, nil, fired)
		}
	}
	return fired
}

// Tick says that it is now, CLOCK_BOOTTIME ns, and returns what fires because nothing has changed until then.
func (e *Engine) Tick(now uint64) []Fired {
	var fired []Fired
	for now > e.now {
		e.now = now
		for _, s := range e.rules {
			e.now = min(e.now, s.due)
		}
		for _, s := range e.rules {
			if s.due <= e.now {
				fired = s.look(e, nil, fired)
			}
		}
	}
	return fired
}

// Next is when Tick should be called at the latest, CLOCK_BOOTTIME ns; 0: nothing is pending.
func (e *Engine) Next() uint64 {
	next := uint64(forever)
	for _, s := range e.rules {
		next = min(next, s.due)
	}
	if next == forever {
		return 0
	}
	return next
}

// Forget drops what is known of a process that has ended.
func (e *Engine) Forget(target int) {
	if target == 0 {
		return
	}
	for _, s := range e.rules {
		delete(s.all, target)
		delete(s.cooled, target)
	}
}

// Stats returns copies of the counts since the engine was made.
func (e *Engine) Stats() Stats {
	return Stats{maps.Clone(e.stats.Fired), maps.Clone(e.stats.Suppressed), e.stats.Evicted}
}

// about reports whether an observation is about a leaf.
func (c *Condition) about(o *Observation) bool {
	if o.Kind != c.Kind || o.Condition != 0 && o.Condition != c.ID {
		return false
	}
	if o.Condition != 0 {
		return true
	}
	switch c.Kind {
	case Method, Frame:
		return MatchMethod(c.Method, o.Subject)
	case Thermal:
		return Match(c.Zone, o.Subject)
	case Pressure:
		return o.Subject == c.Resource
	case Signal:
		return o.Value == float64(c.Sig)
	case Socket, ProgramAsks:
		return Match(c.Why, o.Subject)
	case Response, Stack, Unresponsive:
		return false // whoever sees these knows the condition
	}
	return true
}

// met reports whether a value passes the limit.
func (c *Condition) met(v float64) bool {
	limit, below := c.Limit()
	if below {
		return v < limit
	}
	return limit == 0 || v >= limit
}
