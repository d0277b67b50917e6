package analysis

import (
	"fmt"
	"math"
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
	// Method is a pattern of names: * is any text, and parameters may be left out. Empty is any.
	Method string
	// IgnoreTrigger looks at the whole trace even if it has a trigger.
	IgnoreTrigger bool
}

const (
	// MinPeers is how many other calls of a method there must be to say what is normal for it.
	MinPeers = 10
	// lookBack is how long before a trigger the call that set it off may have ended.
	lookBack = 1_000_000_000
)

// around is where to look, with what a trigger says put in place.
func (a *analyzer) around() Around {
	o := a.options.Around
	tg := a.trace.Meta.Trigger
	if tg == nil || o.IgnoreTrigger || o.From != 0 || o.To != 0 || o.Tid != 0 || o.Pid != 0 || o.Method != "" {
		return o
	}
	at := int64(min(tg.TimeNs, math.MaxInt64/8))
	o = Around{From: at - lookBack, To: at, Pid: tg.Pid, Tid: tg.Tid}
	if tg.Method != "" {
		o.Method = strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(tg.Method)
	}
	return o
}

// wider gives up one condition after the other, the one that is most likely to be wrong first, and says which.
func (o Around) wider() (Around, string) {
	switch {
	case o.Method != "" && o.From != 0:
		name := o.Method
		o.Method = ""
		return o, fmt.Sprintf("no call of %s was recorded at that time; other methods were looked at", name)
	case o.Tid != 0:
		tid := o.Tid
		o.Tid = 0
		return o, fmt.Sprintf("no call of thread %d was recorded at that time; other threads were looked at", tid)
	case o.Pid != 0:
		pid := o.Pid
		o.Pid = 0
		return o, fmt.Sprintf("no call of process %d was recorded at that time; other processes were looked at", pid)
	}
	return o, ""
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
		if w.now < from || f.begin > to || o.Tid != 0 && int(th.Tid) != o.Tid || o.Pid != 0 && int(th.Pid) != o.Pid {
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

// choose returns the method whose worst call is the moment. If there is a method with enough calls to say what is normal,
// it is the one whose worst call is furthest above its median; methods whose calls wait as a rule come last. Without one
// it is the outermost of the longest.
func (n *normals) choose() (method uint32, ok bool) {
	best, bestExcess := -1, int64(0)
	for pass := range 2 {
		for i := range n.rows {
			row := &n.rows[i]
			if row.worst.end == 0 || row.calls <= MinPeers || pass == 0 && row.waits() {
				continue
			}
			if excess := row.worst.end - row.worst.begin - row.total.Quantile(0.5); best < 0 || excess > bestExcess {
				best, bestExcess = i, excess
			}
		}
		if best >= 0 {
			return uint32(best), true
		}
	}
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

func longer(a, b *call) bool {
	if la, lb := a.end-a.begin, b.end-b.begin; la != lb {
		return la > lb
	}
	return a.depth < b.depth
}
