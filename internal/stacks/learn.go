package stacks

import (
	"slices"

	"braid/internal/tracefile"
)

// learnMethods finds methods of which the rings have only the exit, because their entry was overwritten: the method that has
// no name in the ring is the function that the whole stack has in its place, in a file that carries stubs.
func (j *Join) learnMethods() error {
	found := false
	err := j.each(func(index int, s *tracefile.Sample, _ uint64) error {
		st := &j.states[index]
		if st.n == 0 || !complete(s) {
			return nil
		}
		j.ring = j.lines(j.ring[:0], j.chains[st.first])
		nameless := 0
		for nameless < len(j.ring) && j.ring[nameless].any {
			nameless++
		}
		if nameless == 0 {
			return nil
		}
		places := j.userLines(index, s)
		m := &j.merger
		m.match(j.ring[nameless:], j.user)
		limit := len(j.user)
		switch n := len(m.pairs); {
		case n > 0:
			limit = m.pairs[n-1].frame
		case nameless < len(j.ring):
			return nil
		}
		sp := j.spaces[st.space]
		for f := limit - 1; f >= 0 && nameless > 0; f-- {
			switch p := &places[len(places)-1-f]; {
			case p.method:
				nameless--
			case p.mayBe:
				nameless--
				sp.learned[p.start] = true
				found = true
			}
		}
		return nil
	})
	if found {
		clear(j.places)
	}
	return err
}

// learnCalls notes which native functions call methods.
func (j *Join) learnCalls() error {
	return j.each(func(index int, s *tracefile.Sample, _ uint64) error {
		places := j.userLines(index, s)
		for i := 1; i < len(places); i++ {
			if inner, outer := &places[i-1], &places[i]; inner.method && !outer.method {
				j.merger.calls[call{outer.fn, inner.fn}] = struct{}{}
			}
		}
		return nil
	})
}

// instrumented reports whether an address of a process lies in a file that carries stubs.
func (j *Join) instrumented(pid uint32, addr uint64) bool {
	return slices.ContainsFunc(j.trace.Modules, func(m tracefile.Module) bool {
		return m.Instrumented && m.Start <= addr && addr < m.End && (m.Pid == 0 || m.Pid == int(pid) || !j.ownModules[pid])
	})
}
