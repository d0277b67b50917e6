package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/wording"
)

// Samples sums the trace's samples up: what CPU time was spent in. They say nothing of other time.
type Samples struct {
	Count       uint64 `json:"count"`
	CPUNs       uint64 `json:"cpu_ns"` // that they stand for
	Event       string `json:"event"`
	FrequencyHz uint64 `json:"frequency_hz"`
	InKernel    uint64 `json:"in_kernel"`
	// Stacks counts user stacks by why they end, as the trace file's format calls it. Cut ones certainly lack outer
	// frames.
	Stacks map[string]uint64 `json:"stacks"`
	Cut    uint64            `json:"cut"`
	// WithRing are samples of a time that the method records of their thread cover.
	WithRing uint64 `json:"with_ring"`
	// RingMethods are methods that only the records knew, in RingSamples samples.
	RingMethods uint64 `json:"ring_methods"`
	RingSamples uint64 `json:"ring_samples"`
	// InStub samples are of a moment in which a method was being entered or left.
	InStub uint64 `json:"in_stub"`
	// Shifted samples agree with the records of a moment before or after, within the clock's error; Contradictions with
	// none.
	Shifted        uint64 `json:"shifted"`
	Contradictions uint64 `json:"contradictions"`
	// Functions by their own samples, the most first.
	Functions []SampledFunction `json:"functions"`
	// Methods by the samples in which they are the innermost method.
	Methods []SampledMethod `json:"methods"`

	hiddenFunctions, hiddenMethods int
}

// SampledFunction is a function with the samples that were taken in it.
type SampledFunction struct {
	Name   string `json:"name"`
	Module string `json:"module,omitempty"`
	Kind   string `json:"kind"`  // method, native or kernel
	Self   uint64 `json:"self"`  // samples in the function itself
	Total  uint64 `json:"total"` // and in what it called; recursion counts once
	SelfNs uint64 `json:"self_ns"`
	// TotalNs is the CPU time that Total stands for.
	TotalNs uint64 `json:"total_ns"`
}

// SampledMethod is what a method's CPU time is made of, without that of the methods it called.
type SampledMethod struct {
	Name    string `json:"name"`
	Module  string `json:"module,omitempty"`
	Samples uint64 `json:"samples"`
	CPUNs   uint64 `json:"cpu_ns"`
	// Itself, Native and Kernel divide Samples by where the thread was: in the method's own code, in native functions
	// that it called, in the kernel.
	Itself uint64 `json:"itself"`
	Native uint64 `json:"native"`
	Kernel uint64 `json:"kernel"`
	// Cut is how many of them have a stack that is cut.
	Cut uint64 `json:"cut"`
	// Within are the native and kernel functions that the thread was in, the most frequent first.
	Within []SampledWithin `json:"within"`
}

// SampledWithin is a function in which a method's CPU time was spent.
type SampledWithin struct {
	Name    string `json:"name"`
	Module  string `json:"module,omitempty"`
	Kind    string `json:"kind"`
	Samples uint64 `json:"samples"`
	CPUNs   uint64 `json:"cpu_ns"`
}

// tally adds samples up by function.
type tally struct {
	join      *stacks.Join
	functions map[stacks.FuncID]*SampledFunction
	methods   map[stacks.FuncID]*SampledMethod
	within    map[[2]stacks.FuncID]*SampledWithin
	seen      map[stacks.FuncID]uint64 // in which sample last
}

// samples sums the samples of the chosen threads up, if the trace has any.
func (r *Report) samples(t *timeline.Trace, o Options) error {
	j, err := stacks.New(t)
	if errors.Is(err, stacks.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	j.Keep = func(pid, tid uint32) bool { return o.shows(pid, tid, j.Thread(pid, tid)) }
	a := &tally{join: j, functions: map[stacks.FuncID]*SampledFunction{}, methods: map[stacks.FuncID]*SampledMethod{},
		within: map[[2]stacks.FuncID]*SampledWithin{}, seen: map[stacks.FuncID]uint64{}}
	if err := j.Each(a.add); err != nil {
		return err
	}
	st := &j.Stats
	s := &Samples{Count: st.Samples, CPUNs: st.Ns, Event: j.Event.String(), FrequencyHz: j.Frequency, InKernel: st.InKernel,
		Stacks: map[string]uint64{}, Cut: st.Cut(), WithRing: st.WithRing, RingMethods: st.Supplied, RingSamples: st.SuppliedIn,
		InStub: st.InStub, Shifted: st.Shifted, Contradictions: st.Contradictions, Functions: []SampledFunction{}, Methods: []SampledMethod{}}
	for end, n := range st.Ends {
		s.Stacks[end.String()] = n
	}
	for k, w := range a.within {
		m := a.methods[k[0]]
		m.Within = append(m.Within, *w)
	}
	for _, f := range a.functions {
		s.Functions = append(s.Functions, *f)
	}
	for _, m := range a.methods {
		slices.SortFunc(m.Within, func(a, b SampledWithin) int {
			return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Kind, b.Kind))
		})
		s.Methods = append(s.Methods, *m)
	}
	slices.SortFunc(s.Functions, func(a, b SampledFunction) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module),
			cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(s.Methods, func(a, b SampledMethod) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
	if n := o.Top; n > 0 {
		s.hiddenFunctions, s.hiddenMethods = max(len(s.Functions)-n, 0), max(len(s.Methods)-n, 0)
		s.Functions, s.Methods = s.Functions[:len(s.Functions)-s.hiddenFunctions], s.Methods[:len(s.Methods)-s.hiddenMethods]
	}
	r.Samples = s
	return nil
}

// add counts one sample.
func (a *tally) add(s *stacks.Sample) error {
	number := a.join.Stats.Samples // from 1
	innermost := -1
	for i, f := range s.Frames {
		fn := &a.join.Functions[f.Func]
		if fn.Kind == stacks.Method {
			innermost = i
		}
		e := a.functions[f.Func]
		if e == nil {
			e = &SampledFunction{Name: fn.Name, Module: fn.Module, Kind: fn.Kind.String()}
			a.functions[f.Func] = e
		}
		if a.seen[f.Func] != number {
			a.seen[f.Func] = number
			e.Total++
			e.TotalNs += s.Ns
		}
		if i == len(s.Frames)-1 {
			e.Self++
			e.SelfNs += s.Ns
		}
	}
	if innermost < 0 {
		return nil
	}
	method, leaf := s.Frames[innermost].Func, s.Frames[len(s.Frames)-1].Func
	m := a.methods[method]
	if m == nil {
		fn := &a.join.Functions[method]
		m = &SampledMethod{Name: fn.Name, Module: fn.Module, Within: []SampledWithin{}}
		a.methods[method] = m
	}
	m.Samples++
	m.CPUNs += s.Ns
	if stacks.Cut(s.End) {
		m.Cut++
	}
	fn := &a.join.Functions[leaf]
	switch {
	case innermost == len(s.Frames)-1:
		m.Itself++
		return nil
	case fn.Kind == stacks.Kernel:
		m.Kernel++
	default:
		m.Native++
	}
	w := a.within[[2]stacks.FuncID{method, leaf}]
	if w == nil {
		w = &SampledWithin{Name: fn.Name, Module: fn.Module, Kind: fn.Kind.String()}
		a.within[[2]stacks.FuncID{method, leaf}] = w
	}
	w.Samples++
	w.CPUNs += s.Ns
	return nil
}

// textSamples writes the functions and the methods with their samples.
func (r *Report) textSamples(w io.Writer) {
	s := r.Samples
	if s == nil {
		return
	}
	fmt.Fprintf(w, "\nsamples: %d of %s at %d Hz, %s of CPU time, %d%% in the kernel\n", s.Count, s.Event, s.FrequencyHz,
		wording.Duration(int64(s.CPUNs)), wording.Percent(int64(s.InKernel), int64(s.Count)))
	percent := func(n uint64) int64 { return wording.Percent(int64(n), int64(s.Count)) }
	fmt.Fprintf(w, "%6s %3s %6s %3s %-6s  %s\n", "SELF", "%", "TOTAL", "%", "KIND", "FUNCTION")
	for i := range s.Functions {
		f := &s.Functions[i]
		fmt.Fprintf(w, "%6s %3d %6s %3d %-6s  %s\n", wording.Count(f.Self), percent(f.Self), wording.Count(f.Total), percent(f.Total), f.Kind,
			wording.Shorten(wording.Printable(f.Name), Width-30))
	}
	if s.hiddenFunctions > 0 {
		fmt.Fprintf(w, "%6s %d more functions\n", "", s.hiddenFunctions)
	}
	if len(s.Methods) > 0 {
		fmt.Fprintf(w, "\n%7s %6s %6s %6s  %s\n", "SAMPLES", "ITSELF", "NATIVE", "KERNEL", "METHOD, AND WHERE IT WAS IN NATIVE CODE AND KERNEL")
	}
	for i := range s.Methods {
		m := &s.Methods[i]
		fmt.Fprintf(w, "%7s %6s %6s %6s  %s\n", wording.Count(m.Samples), wording.Count(m.Itself), wording.Count(m.Native), wording.Count(m.Kernel),
			wording.Shorten(wording.Printable(m.Name), Width-30))
		if text := m.most(Width - 32); text != "" {
			fmt.Fprintf(w, "%30s  %s\n", "", text)
		}
	}
	if s.hiddenMethods > 0 {
		fmt.Fprintf(w, "%7s %d more methods\n", "", s.hiddenMethods)
	}
	s.textStacks(w)
}

// most names the functions that most of a method's other samples are in, in n columns at most.
func (m *SampledMethod) most(n int) (text string) {
	for i := range m.Within {
		e := &m.Within[i]
		next := fmt.Sprintf("%s %s", wording.Shorten(wording.Printable(e.Name), 30), wording.Count(e.Samples))
		if i > 0 {
			next = text + ", " + next
		}
		if len([]rune(next)) > n {
			return text
		}
		text = next
	}
	return text
}

// textStacks says how good the stacks are.
func (s *Samples) textStacks(w io.Writer) {
	var parts []string
	part := func(n uint64, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	part(s.Stacks["complete"], "whole")
	part(s.Stacks["chain"], "by frame pointers, which may lack callers")
	part(s.Cut, "cut")
	part(s.Stacks["none"], "missing")
	wording.Wrap(w, "user stacks: "+strings.Join(parts, "; "), Width)
	if s.RingMethods > 0 {
		wording.Wrap(w, fmt.Sprintf("method records supplied %d methods that %d stacks lacked", s.RingMethods, s.RingSamples), Width)
	}
	if s.Contradictions > 0 {
		wording.Wrap(w, fmt.Sprintf("contradictions: in %d samples of %d stack and method records disagree", s.Contradictions, s.WithRing), Width)
	}
}
