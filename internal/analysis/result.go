package analysis

import "braid/internal/tracefile"

// Result is what an analysis found. Times are CLOCK_BOOTTIME ns, durations ns.
type Result struct {
	Trigger *tracefile.Trigger `json:"trigger,omitempty"` // as the trace has it
	// Explanation is what was found, in sentences for the user; the first one says it all.
	Explanation []string `json:"explanation"`
	Moment      *Moment  `json:"moment,omitempty"` // nil: no call was recorded
	// Findings are where the moment's time was spent that its peers do not spend, longest first.
	Findings []Finding `json:"findings"`
	// Chain leads from the outermost call through the moment down to where most of its time went.
	Chain []Level `json:"chain"`
	// Chains are the call chains of the moment with the most time in their last call itself.
	Chains []Chain `json:"chains"`
	// Methods are those with the most self time in the whole trace.
	Methods    []Method `json:"methods"`
	Signatures []Match  `json:"signatures,omitempty"`
	// SketchError bounds the relative error of medians and quantiles.
	SketchError float64 `json:"sketch_error"`
	// Notes say what limits the result.
	Notes []string `json:"limits,omitempty"`
}

// Moment is the call that was explained.
type Moment struct {
	Pid    uint32 `json:"pid"`
	Tid    uint32 `json:"tid"`
	Thread string `json:"thread"`
	Method string `json:"method"`
	Module string `json:"module"`
	FromNs int64  `json:"from_ns"`
	ToNs   int64  `json:"to_ns"`
	// Open says that the call had not ended when the recording did: it takes longer than this.
	Open   bool             `json:"open,omitempty"`
	Causes map[string]int64 `json:"causes"` // the whole time by cause
	Points Points           `json:"points"`
	Usual  *Usual           `json:"usual,omitempty"` // of all calls of the method; nil: fewer than MinPeers others
	// Unusual says that the call took longer than three times the distance that calls have from the median as a rule.
	Unusual bool `json:"unusual"`
}

// Usual is how long the calls of a method take.
type Usual struct {
	Calls    uint64 `json:"calls"`
	MedianNs int64  `json:"median_ns"`
	MADNs    int64  `json:"mad_ns"` // median distance from the median
	P90Ns    int64  `json:"p90_ns"`
	P99Ns    int64  `json:"p99_ns"`
}

// Finding is one method's own time in the moment that went into one cause.
type Finding struct {
	Method   string `json:"method"`
	Module   string `json:"module"`
	Cause    string `json:"cause"`
	Ns       int64  `json:"ns"`
	UsualNs  int64  `json:"usual_ns"`
	ExcessNs int64  `json:"excess_ns"`
	// Calls of the method in the moment, and what is usual.
	Calls      uint64 `json:"calls"`
	UsualCalls int64  `json:"usual_calls"`
	// Basis says what usual is of: "moment", the other calls of the moment's method; "method", as many calls of this
	// method anywhere; "none", there are too few of both, and usual is 0.
	Basis  string `json:"basis"`
	Peers  uint64 `json:"peers"` // calls that the median is of
	Points Points `json:"points"`
	// Who had the CPU, of those that are known; or who woke the thread up.
	Who []Who `json:"who,omitempty"`
	// Waits are the things that a sleep was for, if they are known, longest first.
	Waits []Waited `json:"waits,omitempty"`

	cause  Cause
	method uint32
}

// Level is one step of a chain of calls.
type Level struct {
	Method string `json:"method"`
	Module string `json:"module"`
	// Calls of the method under the step before; those that it made of itself, or that came back through others, are
	// in Recursive.
	Calls     uint64           `json:"calls"`
	Recursive uint64           `json:"recursive,omitempty"`
	Outside   bool             `json:"outside,omitempty"` // around the moment
	TotalNs   int64            `json:"total_ns"`          // 0 and Outside: its end was not seen
	SelfNs    int64            `json:"self_ns"`
	Causes    map[string]int64 `json:"causes"` // of the total
	Self      map[string]int64 `json:"self_causes"`
}

// Chain is a chain of calls from the moment's down.
type Chain struct {
	Methods []string         `json:"methods"`
	Calls   uint64           `json:"calls"` // of the last one
	SelfNs  int64            `json:"self_ns"`
	Self    map[string]int64 `json:"self_causes"`
}

// Method is what one method is like in the whole trace.
type Method struct {
	Method string           `json:"method"`
	Module string           `json:"module"`
	Calls  uint64           `json:"calls"`
	SelfNs int64            `json:"self_ns"`
	Self   map[string]int64 `json:"self_causes"`
	Usual  *Usual           `json:"usual,omitempty"` // of whole calls; nil: there is none
}
