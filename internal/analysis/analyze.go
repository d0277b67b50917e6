package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"braid/internal/timeline"
)

// Options says what to analyse. The zero value explains the trace's trigger, or else its slowest call.
type Options struct {
	Around Around
	// Signatures are looked for in all calls of the trace.
	Signatures []*Signature
	// Top limits findings, chains and methods; 0 is 10.
	Top int
}

// Analyze goes through all method records of a trace, twice. It fails only if the file can not be read.
func Analyze(t *timeline.Trace, o Options) (*Result, error) {
	a := &analyzer{trace: t, options: o, methods: newMethods(), joiners: make(map[*timeline.Space]*timeline.Joiner)}
	if a.options.Top <= 0 {
		a.options.Top = 10
	}
	a.result = &Result{
		Trigger: t.Meta.Trigger, SketchError: SketchError,
		Explanation: []string{}, Findings: []Finding{}, Chain: []Level{}, Chains: []Chain{}, Methods: []Method{},
	}
	method, ok, err := a.find()
	if err != nil {
		return nil, err
	}
	a.list()
	if !ok {
		a.say("No call was recorded that could be explained.")
		return a.result, nil
	}
	if err := a.explain(method); err != nil {
		return nil, err
	}
	return a.result, nil
}

type analyzer struct {
	trace   *timeline.Trace
	options Options
	methods *methods
	joiners map[*timeline.Space]*timeline.Joiner
	walker  walker
	normals normals
	detail  detail
	result  *Result
}

func (a *analyzer) say(format string, args ...any) {
	a.result.Explanation = append(a.result.Explanation, fmt.Sprintf(format, args...))
}

func (a *analyzer) note(format string, args ...any) {
	a.result.Notes = append(a.result.Notes, fmt.Sprintf(format, args...))
}

// pass goes over all threads.
func (a *analyzer) pass(v visitor) error {
	for i := range a.trace.Threads {
		if err := a.walk(i, v); err != nil {
			return err
		}
	}
	return nil
}

// walk goes over one thread. What is lost was counted when the trace was loaded, or will be by others.
func (a *analyzer) walk(thread int, v visitor) error {
	lost := maps.Clone(a.trace.Lost)
	defer func() { a.trace.Lost = lost }()
	th := a.trace.Threads[thread]
	j := a.joiners[th.Space]
	if j == nil {
		j = a.trace.Joiner(th)
		a.joiners[th.Space] = j
	}
	a.walker.methods, a.walker.visit = a.methods, v
	return a.walker.run(a.trace, thread, j)
}

// find makes the first pass, and others if no call is found where it was looked for.
func (a *analyzer) find() (method uint32, ok bool, err error) {
	at := a.search()
	if len(a.options.Signatures) > 0 {
		a.normals.sigs = newMatcher(a.trace, a.methods, a.options.Signatures)
	}
	for a.normals.counts = true; ; a.normals.counts = false {
		a.normals.want = at.wants(a.trace, a.methods)
		if err := a.pass(&a.normals); err != nil {
			return 0, false, err
		}
		if a.normals.sigs != nil {
			a.result.Signatures = a.normals.sigs.results()
			a.normals.sigs = nil
		}
		if method, ok = a.normals.choose(); ok {
			return method, true, nil
		}
		note, more := at.wider()
		if !more {
			return 0, false, nil
		}
		a.note("%s", note)
	}
}

// list fills in the methods with the most self time.
func (a *analyzer) list() {
	order := make([]int, 0, len(a.normals.rows))
	for i := range a.normals.rows {
		order = append(order, i)
	}
	self := func(i int) int64 { return a.normals.rows[i].selfSplit.Wall() }
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(self(y), self(x)), cmp.Compare(a.methods.names[x].Name, a.methods.names[y].Name))
	})
	for _, i := range order[:min(len(order), a.options.Top)] {
		row, name := &a.normals.rows[i], a.methods.names[i]
		a.result.Methods = append(a.result.Methods, Method{
			Method: name.Name, Module: name.Module, Calls: row.calls + row.partial, SelfNs: self(i),
			Self: row.selfSplit.byName(), Usual: usualOf(&row.total),
		})
	}
}

// usualOf is nil if there are no values.
func usualOf(s *Sketch) *Usual {
	if s.N() == 0 {
		return nil
	}
	median := s.Quantile(0.5)
	return &Usual{Calls: s.N(), MedianNs: median, MADNs: s.MAD(median), P90Ns: s.Quantile(0.9), P99Ns: s.Quantile(0.99)}
}

// explain makes the second pass, and says what it found about the worst call of a method.
func (a *analyzer) explain(method uint32) error {
	a.detail = detail{methods: a.methods, method: method, moment: a.normals.rows[method].worst}
	if err := a.pass(&a.detail); err != nil {
		return err
	}
	if a.detail.root == nil {
		a.say("The file changed while it was read: the call that was found is gone.")
		return nil
	}
	cpus, err := loadCPUs(a.trace, a.detail.moment.begin, a.detail.moment.end)
	if err != nil {
		return err
	}
	a.moment()
	if err := a.findings(cpus); err != nil {
		return err
	}
	a.chain()
	a.chains()
	a.limits(cpus)
	a.sentences()
	a.placed()
	return nil
}
