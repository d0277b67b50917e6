package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"braid/control"
	"braid/inline"
	"braid/internal/trigger"
	"braid/symbols"
)

// Source is a thread that records. *control.Thread is one.
type Source interface {
	// Tail returns the slots since the last call, at most the newest of them, how many were left out, and when they were
	// written.
	Tail(most int, buf []uint64) (slots []uint64, skipped uint64, span control.Span, err error)
}

// Thread is a thread to follow.
type Thread struct {
	Source Source // the same value at each poll
	Tid    int
	Main   bool // the process's first thread
}

// Stats counts what was done for a process. All numbers only grow.
type Stats struct {
	Slots     uint64 // decoded
	Skipped   uint64 // left out: more than the budget, or overwritten before they were read
	Resyncs   uint64 // times that a thread's open calls were not known any more
	Ambiguous uint64 // methods that fit a pattern and can not be told apart from others, and are not watched
	Decoding  inline.Stats
}

// Process decides the conditions of one process. It is not for use by several goroutines at a time, nor while another one
// uses its threads' Area.
type Process struct {
	// Name renders a method that only the pattern * fits, from the low half of its address; nil: in hexadecimal.
	Name func(low uint32) string
	// Ended is called for each call of a method that a Method or Frame condition names, when its end is seen, in the order of
	// the thread's calls; nil: nobody counts them. Calls that were skipped are not among them.
	Ended func(method string, took time.Duration)

	pid       int
	clock     *Clock
	automaton automaton
	watches   []*watch
	methods   *inline.Methods
	masks     []uint64 // by method index
	names     map[uint32]string
	threads   map[Source]*thread
	marks     []mark
	out       []trigger.Observation
	buf       []uint64
	stats     Stats
}

// mark is a beginning or an end of a Response.
type mark struct {
	w      *watch
	at     uint64
	answer bool
	method uint32
	tid    int
}

// New watches a process for the conditions of Needs.Ring. Nothing is found before SetModules.
func New(pid int, conditions []*trigger.Condition, clock *Clock) *Process {
	p := &Process{pid: pid, clock: clock, methods: inline.NewMethods(64), names: map[uint32]string{}, threads: map[Source]*thread{}}
	p.automaton, p.watches = newAutomaton(conditions)
	return p
}

// SetModules says which modules the process has now, as symbols.Registered describes them. Call it when they have changed.
func (p *Process) SetModules(mods []symbols.Module) {
	for i := range p.masks {
		p.masks[i] = p.automaton.any
	}
	table := symbols.NewTable(mods, symbols.Options{})
	for s := range table.Functions() {
		m := p.automaton.mask(s.Name)
		if m == p.automaton.any {
			continue
		}
		if len(table.Candidates32(uint32(s.Addr))) > 1 {
			p.stats.Ambiguous++
			continue
		}
		known, low := p.methods.Add(s.Addr), p.methods.Low(uint32(s.Addr)) // not the same if a record was there first
		p.widen()
		for _, i := range []uint32{known, low} {
			p.masks[i], p.names[i] = m, s.Name
		}
	}
}

// widen gives methods that the decoder has met a mask.
func (p *Process) widen() {
	for len(p.masks) < p.methods.Len() {
		p.masks = append(p.masks, p.automaton.any)
	}
}

// Poll follows all threads and returns what passed a limit, in the order of time. It decodes at most budget slots, the
// newest of each thread. now is the counter's value. Errors of single threads are joined; the others are followed all the same.
func (p *Process) Poll(threads []Thread, now uint64, budget int) ([]trigger.Observation, error) {
	p.out, p.marks = nil, p.marks[:0]
	for _, w := range p.watches {
		w.limit, w.frozen = p.clock.Ticks(w.c.Longer), p.clock.Ticks(w.c.Frozen)
		if w.c.Kind == trigger.Frame {
			w.limit = p.clock.Ticks(w.c.Slow)
		}
	}
	var errs []error
	here := make(map[Source]bool, len(threads))
	for i, th := range threads {
		here[th.Source] = true
		t := p.threads[th.Source]
		if t == nil {
			t = &thread{p: p, tid: th.Tid, main: th.Main, decoder: inline.Decoder{Methods: p.methods}}
			p.threads[th.Source] = t
		}
		used, err := p.follow(t, th.Source, max(budget, 0)/(len(threads)-i))
		if err != nil {
			errs = append(errs, fmt.Errorf("following thread %d: %w", th.Tid, err))
		}
		budget -= used
		t.look(now)
	}
	for s := range p.threads {
		if !here[s] {
			delete(p.threads, s)
		}
	}
	p.answer(now)
	slices.SortStableFunc(p.out, func(a, b trigger.Observation) int { return cmp.Compare(a.Time, b.Time) })
	return p.out, errors.Join(errs...)
}

// follow takes what one thread has written.
func (p *Process) follow(t *thread, from Source, most int) (used int, err error) {
	slots, skipped, span, err := from.Tail(most, p.buf)
	if err != nil {
		t.forget()
		return 0, err
	}
	if cap(slots) > cap(p.buf) {
		p.buf = slots[:0]
	}
	if skipped > 0 {
		p.stats.Skipped += skipped
		p.stats.Resyncs++
		t.forget()
	}
	if len(slots) == 0 {
		return 0, nil
	}
	p.stats.Slots += uint64(len(slots))
	err = t.take(&inline.Segment{Slots: slots, Complete: skipped == 0, Begin: span.Begin, End: max(span.Begin, span.End)})
	if err == nil {
		p.stats.Decoding.Add(t.last.Stats)
	}
	return len(slots), err
}

// Restarted says that a thread was off for a while: its open calls are not known.
func (p *Process) Restarted(s Source) {
	if t := p.threads[s]; t != nil {
		t.forget()
	}
}

// Stats returns what was done so far.
func (p *Process) Stats() Stats { return p.stats }

// report makes an observation of something that lasted from one counter value to another.
func (p *Process) report(w *watch, tid int, subject string, from, to uint64) {
	p.observe(w, tid, subject, p.clock.since(from, to), to)
}

func (p *Process) observe(w *watch, tid int, subject string, value float64, at uint64) {
	limit, _ := w.c.Limit()
	p.out = append(p.out, trigger.Observation{Time: p.clock.Boottime(at), Target: p.pid, Tid: tid, Kind: w.c.Kind,
		Condition: w.c.ID, Subject: subject, Value: max(value, limit)}) // ticks are rounded
}

func (p *Process) name(method uint32) string {
	if n, ok := p.names[method]; ok {
		return n
	}
	low := uint32(p.methods.Row(method).Addr)
	if p.Name != nil {
		return p.Name(low)
	}
	return fmt.Sprintf("%#x", low)
}

// begun is called when a call begins whose beginning is of interest.
func (p *Process) begun(t *thread, f *frame) {
	p.automaton.each(f.state&p.automaton.entry, func(_ uint64, w *watch) {
		p.marks = append(p.marks, mark{w: w, at: f.start, method: f.method, tid: t.tid})
	})
}

// ended is called when a call has ended whose end is of interest.
func (p *Process) ended(t *thread, f *frame, at uint64) {
	took := at - f.start
	counted := p.Ended == nil || f.told == ^uint64(0)
	p.automaton.each(f.state&p.automaton.exit, func(bit uint64, w *watch) {
		if !counted && (w.c.Kind == trigger.Method || w.c.Kind == trigger.Frame) {
			counted = true // once, however many conditions name it
			p.Ended(p.name(f.method), p.clock.Duration(took))
		}
		if w.c.Kind == trigger.Response { // its answer, whenever it began
			p.marks = append(p.marks, mark{w: w, at: at, answer: true, method: f.method, tid: t.tid})
			return
		}
		if f.told == ^uint64(0) {
			return
		}
		switch w.c.Kind {
		case trigger.Method:
			if f.told&bit == 0 && took >= w.limit {
				p.report(w, t.tid, p.name(f.method), f.start, at)
			}
		case trigger.Frame:
			p.frame(t, w, f, f.told&bit != 0, at)
		case trigger.Stack:
			p.mean(t, w, f, took, at)
		}
	})
}

// frame counts slow calls in a row.
func (p *Process) frame(t *thread, w *watch, f *frame, told bool, at uint64) {
	took := at - f.start
	frozen := w.frozen != 0 && took >= w.frozen
	slow := w.limit != 0 && took >= w.limit
	if !slow {
		w.row = 0
	} else if w.row++; w.row >= w.c.Count {
		w.row = 0
		frozen = true // it is to be reported
	}
	if frozen && !told {
		p.report(w, t.tid, p.name(f.method), f.start, at)
	}
}

// mean keeps the newest calls' time, and begins anew when the mean was reported.
func (p *Process) mean(t *thread, w *watch, f *frame, took, at uint64) {
	if len(w.newest) < w.c.Count {
		w.newest = append(w.newest, took)
	} else {
		w.sum -= w.newest[w.at]
		w.newest[w.at] = took
		w.at = (w.at + 1) % len(w.newest)
	}
	w.sum += took
	if n := uint64(len(w.newest)); int(n) == w.c.Count && w.sum/n >= w.limit {
		p.observe(w, t.tid, p.name(f.method), p.clock.since(0, w.sum/n), at)
		w.newest, w.at, w.sum = w.newest[:0], 0, 0
	}
}

// answer matches inputs and answers of all threads, in the order of time.
func (p *Process) answer(now uint64) {
	slices.SortStableFunc(p.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	late := func(w *watch, at uint64) {
		if w.since != 0 && !w.told && int64(at-w.since) >= int64(w.limit) {
			w.told = true
			p.report(w, w.tid, p.name(w.method), w.since, at)
		}
	}
	for _, m := range p.marks {
		switch {
		case m.answer:
			late(m.w, m.at)
			m.w.since, m.w.told = 0, false
		case m.w.since == 0:
			m.w.since, m.w.method, m.w.tid = m.at, m.method, m.tid
		}
	}
	for _, w := range p.watches {
		if w.c.Kind == trigger.Response {
			late(w, now)
		}
	}
}
