package torture

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// checkThreads says what is wrong with a recording; nothing if it returns "".
func checkThreads(threads []thread, ends []end, program string, f functions) string {
	for i := range threads {
		t := &threads[i]
		if wrong := t.check(ends, program, f); wrong != "" {
			return fmt.Sprintf("thread %d of %d: %s", i+1, len(threads), wrong)
		}
	}
	return ""
}

func (t *thread) check(ends []end, program string, f functions) string {
	bias, found := uint64(0), false
	for _, m := range t.modules {
		if filepath.Base(m.Path) == filepath.Base(program) { // an emulator may see another path
			bias, found = m.Bias, true
		}
	}
	if !found {
		return "" // it has executed something else
	}
	names := func(list []uint32) string {
		var words []string
		for _, m := range list {
			words = append(words, strings.Join(append(f.at(bias, m), fmt.Sprintf("%#x", m))[:1], ""))
		}
		return strings.Join(words, " ")
	}
	s := t.stats
	switch {
	case s.Damaged > 0:
		return fmt.Sprintf("%d damaged records of %d", s.Damaged, s.Records)
	case t.complete && t.parent == 0 && s.Orphans > 0:
		return fmt.Sprintf("%d exits without an entry", s.Orphans)
	case t.complete && t.parent == 0 && s.LostResumes > 0:
		return fmt.Sprintf("%d resumed records without an entry", s.LostResumes)
	}
	if len(t.modules) == 1 && t.complete {
		for _, m := range t.methods {
			if len(f.at(bias, m)) == 0 {
				return fmt.Sprintf("method %#x is no function of the program", m)
			}
		}
	}
	if !t.complete {
		return ""
	}
	for _, e := range slices.Backward(ends) {
		if int(e.Tid) != t.tid || int(e.Pid) != t.pid {
			continue
		}
		if t.parent != 0 {
			return "" // what it was forked in is not its own
		}
		switch e.Kind {
		case endReturned:
			if len(t.open) > 0 {
				return "main has returned, open is: " + names(t.open)
			}
		case endExit:
			callers := f.around(e.Caller - 1 - bias)
			innermost := []string(nil)
			if n := len(t.open); n > 0 {
				innermost = f.at(bias, t.open[n-1])
			}
			if !slices.ContainsFunc(callers, func(c string) bool { return slices.Contains(innermost, c) }) && !f.untraced(callers, bias, t.methods) {
				return fmt.Sprintf("%s called exit, open is: %s", strings.Join(callers, "="), names(t.open))
			}
		}
		return ""
	}
	return ""
}

// untraced reports whether none of some functions has recorded anything: they have no stubs.
func (f functions) untraced(names []string, bias uint64, methods []uint32) bool {
	for _, m := range methods {
		for _, n := range f.at(bias, m) {
			if slices.Contains(names, n) {
				return false
			}
		}
	}
	return true
}
