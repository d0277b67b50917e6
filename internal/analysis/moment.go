package analysis

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"braid/internal/timeline"
)

// Around says which moment to explain. The zero value is the trigger of the trace if it has one, and else the call that is
// furthest above its method's median.
type Around struct {
	// From and To bound the moment, CLOCK_BOOTTIME ns: calls that touch this time are looked at. Both 0 is any time.
	From, To int64
	// Pid and Tid are the process and the thread; 0 is any.
	Pid, Tid int
	// Thread is a thread's id, or a pattern of names (path.Match); empty is any. A pattern that is wrong matches none.
	Thread string
	// Method is a pattern of names: * is any text, and parameters may be left out. Empty is any.
	Method string
	// IgnoreTrigger looks at the whole trace even if it has a trigger.
	IgnoreTrigger bool
}

const (
	// MinPeers is how many other calls of a method there must be to say what is normal for it.
	MinPeers = 10
	// nearby is how long before a trigger the call that set it off may have ended, in ns.
	nearby = 1_000_000_000
)

// search is where to look for the moment. What the user asked for is given up last.
type search struct {
	Around
	asked   bool // a thread or method, by the user
	widened bool
}

// search is what the options ask for, and what the trigger says of the rest.
func (a *analyzer) search() search {
	o := a.options.Around
	s := search{o, o.Pid != 0 || o.Tid != 0 || o.Thread != "" || o.Method != "", false}
	tg := a.trace.Meta.Trigger
	if tg == nil || o.IgnoreTrigger || o.From != 0 || o.To != 0 {
		return s
	}
	at := int64(min(tg.TimeNs, math.MaxInt64/8))
	s.From, s.To, s.widened = at-nearby, at, true
	if s.asked {
		return s
	}
	s.Pid, s.Tid = tg.Pid, tg.Tid
	if tg.Method != "" {
		s.Method = strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(tg.Method)
	}
	return s
}

// wider gives up one condition after the other, the one that is most likely to be wrong first, and says which. It returns
// false if there is none left.
func (s *search) wider() (note string, ok bool) {
	there := s.From != 0 || s.To != 0
	switch {
	case there && !s.widened:
		s.From, s.To, s.widened = s.From-nearby, s.To+nearby, true
		return "no such call was open at that time; those within a second of it were looked at", true
	case !s.asked && s.Method != "":
		note = fmt.Sprintf("no call of %s was recorded at that time; other methods were looked at", s.Method)
		s.Method = ""
	case !s.asked && s.Tid != 0:
		note = fmt.Sprintf("no call of thread %d was recorded at that time; other threads were looked at", s.Tid)
		s.Tid = 0
	case !s.asked && s.Pid != 0:
		note = fmt.Sprintf("no call of process %d was recorded at that time; other processes were looked at", s.Pid)
		s.Pid = 0
	case there:
		note = "no such call was recorded at that time; the whole recording was looked at"
		s.From, s.To = 0, 0
	}
	return note, note != ""
}

// wants says whether the moment may be a call, when the call ends.
func (o Around) wants(t *timeline.Trace, m *methods) func(w *walker, f *frame) bool {
	var byMethod []int8 // 0 not asked, 1 yes, -1 no
	p := compile(o.Method)
	from, to := o.From, o.To
	if from == 0 && to == 0 {
		from, to = minTime, math.MaxInt64
	}
	return func(w *walker, f *frame) bool {
		th := t.Threads[w.thread]
		if w.now < from || f.begin > to || o.Tid != 0 && int(th.Tid) != o.Tid || o.Pid != 0 && int(th.Pid) != o.Pid ||
			o.Thread != "" && !threadMatches(o.Thread, th) {
			return false
		}
		if o.Method == "" {
			return true
		}
		if int(f.method) >= len(byMethod) {
			byMethod = append(byMethod, make([]int8, len(m.names)-len(byMethod))...)
		}
		if byMethod[f.method] == 0 {
			byMethod[f.method] = -1
			if p.matches(m.names[f.method].Name) {
				byMethod[f.method] = 1
			}
		}
		return byMethod[f.method] > 0
	}
}

// threadMatches reports whether a pattern is a thread's number or matches its name.
func threadMatches(pattern string, th *timeline.Thread) bool {
	ok, _ := path.Match(pattern, th.Name)
	return ok || pattern == strconv.FormatUint(uint64(th.Tid), 10)
}

// choose returns the method whose worst call is the moment. If there is a method with enough calls to say what is normal,
// it is the one whose worst call is furthest above its median; methods whose calls wait as a rule come last. If that call
// lies within another one that is nearly as far above its own, it is the outermost of those. Without a method with enough
// calls it is the outermost of the longest.
func (n *normals) choose() (method uint32, ok bool) {
	for _, waits := range []bool{false, true} {
		var candidates []uint32
		best, bestExcess := uint32(0), int64(0)
		for i := range n.rows {
			row := &n.rows[i]
			if row.worst.end == 0 || row.calls <= MinPeers || !waits && row.waits() {
				continue
			}
			if excess := row.excess(); len(candidates) == 0 || excess > bestExcess {
				best, bestExcess = uint32(i), excess
			}
			candidates = append(candidates, uint32(i))
		}
		if len(candidates) == 0 {
			continue
		}
		inner := n.rows[best].worst
		for _, i := range candidates {
			if row := &n.rows[i]; row.worst.holds(&inner) && row.worst.depth < n.rows[best].worst.depth && row.excess() >= bestExcess-bestExcess/10 {
				best = i
			}
		}
		return best, true
	}
	best := -1
	for i := range n.rows {
		row := &n.rows[i]
		if row.worst.end == 0 {
			continue
		}
		if best < 0 || longer(&row.worst, &n.rows[best].worst) {
			best = i
		}
	}
	return uint32(max(best, 0)), best >= 0
}

// excess is how far the worst call is above the median.
func (n *normal) excess() int64 { return n.worst.end - n.worst.begin - n.total.Quantile(0.5) }

// holds reports whether other lies within c.
func (c *call) holds(other *call) bool {
	return c.thread == other.thread && c.begin <= other.begin && c.end >= other.end
}

func longer(a, b *call) bool {
	if la, lb := a.end-a.begin, b.end-b.begin; la != lb {
		return la > lb
	}
	return a.depth < b.depth
}
