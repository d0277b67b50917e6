package export

import (
	"maps"

	"braid/internal/timeline"
)

// records adds up what decoding the method records finds lost, by name.
type records map[string]uint64

func (l records) add(j *timeline.Joiner) {
	for name, n := range j.Lost() {
		if n > 0 {
			l[name] += n
		}
	}
}

// lost is all that is lost, by name: what the trace says after everything was read, and what was found in the records.
func (l records) lost(tr *timeline.Trace) map[string]uint64 {
	all := maps.Clone(map[string]uint64(l))
	for name, n := range tr.Lost {
		if n > 0 {
			all[name] += n
		}
	}
	return all
}
