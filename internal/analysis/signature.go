package analysis

// Signature is a pattern of a call: of its method and those around it, and of what it spent its time on.
type Signature struct {
	Name        string
	Description string
	// Chain is the patterns of methods from the outside in; the last one is the call's own. An empty pattern stands for
	// any number of calls between.
	Chain []pattern
	// Thread is "" for all threads, "main" for the first thread of a process, or a pattern of names (path.Match).
	Thread string
	// When are conditions that must all hold for the call.
	When []Condition
	// AtLeast is how many calls there must be before it counts as found.
	AtLeast uint64
}

// metric says what of a call a Condition is about.
type metric uint8

const (
	metricTime  metric = iota // a time, of the causes in the condition
	metricCalls               // calls of other methods within it
	metricFsyncs
	metricFaults
	metricRequests
	metricBytes
)

// Condition compares one number of a call with a limit.
type Condition struct {
	text   string
	metric metric
	self   bool // of the call itself, without its callees
	causes []Cause
	calls  pattern // metricCalls: of which methods
	share  bool    // limit is in percent of the call's time
	limit  float64 // ns, %, calls, bytes
	less   bool    // it must be less than the limit, or equal; else more
	equal  bool    // equal is enough
}

func (c *Condition) holds(v float64) bool {
	switch {
	case v == c.limit:
		return c.equal
	case c.less:
		return v < c.limit
	}
	return v > c.limit
}

// Match is what was found of one signature.
type Match struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Calls       uint64 `json:"calls"`    // that match
	TotalNs     int64  `json:"total_ns"` // of those calls; recursion counts once
	// Causes divides their time: the calls' own, if a condition is about that, or else all of it.
	Causes map[string]int64 `json:"causes"`
	// Examples are the longest of them.
	Examples []Example `json:"examples"`

	sum Split
}

// Example is one call.
type Example struct {
	FromNs int64  `json:"from_ns"`
	ToNs   int64  `json:"to_ns"`
	Pid    uint32 `json:"pid"`
	Tid    uint32 `json:"tid"`
	Thread string `json:"thread"`
	Method string `json:"method"`
}

const mostExamples = 3
