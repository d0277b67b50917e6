package analysis

import (
	"cmp"
	"slices"

	"braid/internal/timeline"
)

// matcher looks for signatures while a walker goes through a trace.
type matcher struct {
	trace    *timeline.Trace
	methods  *methods
	sigs     []wanted
	found    []Match
	byMethod [][]int     // signatures whose last pattern matches
	known    []bool      // byMethod and counted are filled in
	counters []counter   // for calls(...) conditions
	counted  [][]int     // by method: counters that count it
	open     [][]opening // by signature: its calls that are open
	onThread []bool      // by signature, of the thread that is walked
	thread   int
}

// wanted is a signature with what is worth knowing before each call.
type wanted struct {
	*Signature
	counter  int  // the first of its counters
	counters int  // how many it has
	counts   bool // a condition is about what is counted between a call's two ends
	own      bool // a condition is about the call itself
}

type counter struct {
	pattern pattern
	n       uint64
}

// opening is what was counted when a call began.
type opening struct {
	points Points
	calls  []uint64 // by condition
}

func newMatcher(t *timeline.Trace, m *methods, sigs []*Signature) *matcher {
	k := &matcher{trace: t, methods: m, found: make([]Match, len(sigs)), open: make([][]opening, len(sigs)), thread: -1}
	for i, s := range sigs {
		k.found[i] = Match{Name: s.Name, Description: s.Description, Examples: []Example{}}
		want := wanted{Signature: s, counter: len(k.counters)}
		for _, c := range s.When {
			if c.metric == metricCalls {
				k.counters = append(k.counters, counter{pattern: c.calls})
			}
			want.counts = want.counts || c.metric != metricTime && !c.self
			want.own = want.own || c.self
		}
		want.counters = len(k.counters) - want.counter
		k.sigs = append(k.sigs, want)
	}
	return k
}

// learn finds out what a method that was not seen before has to do with the signatures.
func (k *matcher) learn(method uint32) {
	if n := len(k.methods.names) - len(k.known); n > 0 {
		k.known = append(k.known, make([]bool, n)...)
		k.byMethod = append(k.byMethod, make([][]int, n)...)
		k.counted = append(k.counted, make([][]int, n)...)
	}
	k.known[method] = true
	name := k.methods.names[method].Name
	for i, s := range k.sigs {
		if s.Chain[len(s.Chain)-1].matches(name) {
			k.byMethod[method] = append(k.byMethod[method], i)
		}
	}
	for i := range k.counters {
		if k.counters[i].pattern.matches(name) {
			k.counted[method] = append(k.counted[method], i)
		}
	}
}

// choose finds the signatures for a thread.
func (k *matcher) choose(thread int) {
	k.thread = thread
	k.onThread = k.onThread[:0]
	th := k.trace.Threads[thread]
	for _, s := range k.sigs {
		ok := s.Thread == "" || s.Thread == "main" && th.Tid == th.Pid
		if s.Thread != "" && s.Thread != "main" {
			ok = threadMatches(s.Thread, th)
		}
		k.onThread = append(k.onThread, ok)
	}
	for i := range k.open {
		k.open[i] = k.open[i][:0]
	}
}

func (k *matcher) enter(w *walker, f *frame) {
	if k.thread != w.thread {
		k.choose(w.thread)
	}
	if int(f.method) >= len(k.known) || !k.known[f.method] {
		k.learn(f.method)
	}
	for _, i := range k.counted[f.method] {
		k.counters[i].n++
	}
	for _, i := range k.byMethod[f.method] {
		if s := &k.sigs[i]; k.onThread[i] && s.counts {
			o := opening{points: w.points}
			for _, c := range k.counters[s.counter : s.counter+s.counters] {
				o.calls = append(o.calls, c.n)
			}
			k.open[i] = append(k.open[i], o)
		}
	}
}

func (k *matcher) leave(w *walker, f *frame) {
	for _, i := range k.byMethod[f.method] {
		s := &k.sigs[i]
		if !k.onThread[i] {
			continue
		}
		var o opening
		if s.counts {
			list := k.open[i]
			o, k.open[i] = list[len(list)-1], list[:len(list)-1]
		}
		if k.holds(w, f, s, &o) && s.around(k.methods, w.stack) {
			k.add(w, f, i)
		}
	}
}

// holds reports whether all conditions hold.
func (k *matcher) holds(w *walker, f *frame, s *wanted, o *opening) bool {
	calls := 0
	var total Split
	haveTotal := false
	for i := range s.When {
		c := &s.When[i]
		var v float64
		switch c.metric {
		case metricTime:
			split := &f.self
			if !c.self {
				if !haveTotal {
					total, haveTotal = w.total(f), true
				}
				split = &total
			}
			ns := int64(0)
			for _, cause := range c.causes {
				ns += split[cause]
			}
			v = float64(ns)
			if c.share {
				v = 100 * v / float64(max(1, split.Wall()))
			}
		case metricCalls:
			n := k.counters[s.counter+calls].n - o.calls[calls]
			calls++
			v = float64(n)
		default:
			p := f.points
			if !c.self {
				p = w.points.sub(o.points)
			}
			v = p.value(c.metric)
		}
		if !c.holds(v) {
			return false
		}
	}
	return true
}

func (p *Points) sub(o Points) Points {
	return Points{p.Fsyncs - o.Fsyncs, p.FsyncNs - o.FsyncNs, p.Faults - o.Faults, p.Requests - o.Requests, p.Bytes - o.Bytes}
}

func (p *Points) value(m metric) float64 {
	switch m {
	case metricFsyncs:
		return float64(p.Fsyncs)
	case metricFaults:
		return float64(p.Faults)
	case metricRequests:
		return float64(p.Requests)
	}
	return float64(p.Bytes)
}

// around reports whether the open calls match the chain; the last of them is the call.
func (s *Signature) around(m *methods, stack []frame) bool {
	return chainMatches(s.Chain[:len(s.Chain)-1], m, stack[1:len(stack)-1])
}

// chainMatches matches a chain with the innermost calls of a stack. What is around the chain may be any; so where there is
// a gap, the nearest calls that match what stands before it are as good as any others.
func chainMatches(chain []pattern, m *methods, stack []frame) bool {
	for len(chain) > 0 {
		gap := chain[len(chain)-1] == nil
		if gap {
			chain = chain[:len(chain)-1]
		}
		run := chain // up to the next gap
		for i := len(chain) - 1; i >= 0; i-- {
			if chain[i] == nil {
				run = chain[i+1:]
				break
			}
		}
		for !runMatches(run, m, stack) {
			if !gap || len(stack) <= len(run) {
				return false
			}
			stack = stack[:len(stack)-1]
		}
		chain, stack = chain[:len(chain)-len(run)], stack[:len(stack)-len(run)]
	}
	return true
}

// runMatches matches patterns with as many of the innermost calls.
func runMatches(run []pattern, m *methods, stack []frame) bool {
	if len(stack) < len(run) {
		return false
	}
	stack = stack[len(stack)-len(run):]
	for i, p := range run {
		if !p.matches(m.names[stack[i].method].Name) {
			return false
		}
	}
	return true
}

// add counts a call.
func (k *matcher) add(w *walker, f *frame, sig int) {
	r := &k.found[sig]
	r.Calls++
	recursive := slices.ContainsFunc(w.stack[1:len(w.stack)-1], func(o frame) bool { return o.method == f.method })
	switch {
	case k.sigs[sig].own:
		r.sum.add(&f.self)
	case !recursive:
		total := w.total(f)
		r.sum.add(&total)
	}
	if !recursive {
		r.TotalNs += w.now - f.begin
	}
	th := k.trace.Threads[w.thread]
	r.Examples = append(r.Examples, Example{f.begin, w.now, th.Pid, th.Tid, th.Name, k.methods.names[f.method].Name})
	slices.SortStableFunc(r.Examples, func(a, b Example) int { return cmp.Compare(b.ToNs-b.FromNs, a.ToNs-a.FromNs) })
	r.Examples = r.Examples[:min(len(r.Examples), mostExamples)]
}

// results are the signatures that were found, those with the most time first.
func (k *matcher) results() []Match {
	all := []Match{}
	for i, r := range k.found {
		if r.Calls == 0 || r.Calls < k.sigs[i].AtLeast {
			continue
		}
		r.Causes = r.sum.byName()
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Match) int { return cmp.Compare(b.sum.Wall(), a.sum.Wall()) })
	return all
}
