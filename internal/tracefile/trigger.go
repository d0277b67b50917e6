package tracefile

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// Trigger is why a recording was written out: what `braid watch` saw. It is part of Meta.
type Trigger struct {
	Name     string `json:"name"`               // of the rule, as the user called it
	Kind     string `json:"kind"`               // of the rule: "method", "fsync", "pressure", ...
	Severity string `json:"severity,omitempty"` // as the rule says
	// TimeNs is when the condition was met, CLOCK_BOOTTIME ns. What made it true lies before it.
	TimeNs uint64 `json:"time_ns"`
	Pid    int    `json:"pid,omitempty"`    // of the process that it is about; 0: the system
	Tid    int    `json:"tid,omitempty"`    // of the thread; 0: not one thread
	Method string `json:"method,omitempty"` // demangled name; empty: not one method
	Reason string `json:"reason,omitempty"` // one sentence for the user
	// Values are the measured values and their limits, names with units: "latency_ns", "limit_ns". A value that is no
	// finite number is not written.
	Values map[string]float64 `json:"values,omitempty"`
}

// MarshalJSON leaves out what JSON can not say: a value that is infinite or no number must not cost a trace.
func (t *Trigger) MarshalJSON() ([]byte, error) {
	type plain Trigger
	p := plain(*t)
	p.Values = nil
	for name, v := range t.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if p.Values == nil {
			p.Values = make(map[string]float64, len(t.Values))
		}
		p.Values[name] = v
	}
	return json.Marshal(&p)
}

// Snapshot is the snapshot section: the state of the system at one moment. A file may have several.
type Snapshot struct {
	TimeNs uint64 `json:"time_ns"` // CLOCK_BOOTTIME ns
	// Texts are files of /proc and /sys as they were read, by path: "/proc/pressure/io". Readers show those that they
	// know and ignore others.
	Texts map[string]string `json:"texts,omitempty"`
	// Threads are those of the traced processes, as far as reading them was permitted.
	Threads []SnapshotThread `json:"threads,omitempty"`
	// Missing says what could not be read, and why, for the user.
	Missing []string `json:"missing,omitempty"`
}

// SnapshotThread is one thread of a Snapshot.
type SnapshotThread struct {
	Pid   int    `json:"pid"`
	Tid   int    `json:"tid"`
	Name  string `json:"name,omitempty"`  // comm
	State string `json:"state,omitempty"` // letter of /proc/PID/task/TID/stat
	// Wait is the kernel function that it waits in (/proc/PID/task/TID/wchan); empty if it runs or that is not known.
	Wait string `json:"wait,omitempty"`
	// Stack is its kernel stack, innermost function first; empty if reading it was not permitted.
	Stack []string `json:"stack,omitempty"`
}

// WriteSnapshot appends a snapshot section.
func (w *Writer) WriteSnapshot(s *Snapshot) error {
	return w.WriteSection(KindSnapshot, encodeJSON(s))
}

// Snapshots returns all snapshots, in order of time.
func (r *Reader) Snapshots() ([]Snapshot, error) {
	var all []Snapshot
	err := r.each(KindSnapshot, func(b []byte) error {
		var s Snapshot
		if err := decodeJSON(b, &s); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	slices.SortStableFunc(all, func(a, b Snapshot) int { return cmp.Compare(a.TimeNs, b.TimeNs) })
	return all, err
}
