// Package estimate computes what is shown from the samples of a study: costs, intervals, tests. It is pure and deterministic:
// the same result gives the same figures, also on another machine.
//
// # Method
//
// A study starts its programs many times. In each launch it measures all arms in several rounds, at one or more alignments of
// the measured function, in random order. From each arm's sample the sample of its baseline in the same launch, round and
// alignment is subtracted, per call. The median over a launch's rounds, averaged over its alignments, is one observation: a
// launch is the unit, because two rounds in the same process share what chance gave that process. A figure is the median over
// launches. Its interval is a percentile bootstrap over launches, with the tails widened for few of them. The tests are paired
// over launches too.
package estimate

// Study is everything that can be said about a result.
type Study struct {
	Rows       []Row // of each series, in the result's order
	Confidence float64
	Margin     float64
}

// Value is a figure with its interval. Without OK it is not known, and the numbers are 0.
type Value struct {
	Median, Low, High float64
	OK                bool
}

// Row is an arm on a workload with a parameter on a cluster. Shares are of 1: 0.03 is 3 %.
type Row struct {
	Arm       string
	Title     string
	Group     string
	Class     string // of the probed instruction
	Workload  string
	Parameter int64
	Cluster   string

	Failure  string // why there are no figures; everything below is empty then
	Wall     bool   // times are wall time (workloads with several threads or processes); otherwise of the thread's CPU time
	Launches int    // observations
	Samples  int    // that were used
	Dropped  int    // discarded, or without a partner

	Call     Value // ns that a call takes in this arm, with everything
	Point    Value // ns that a trace point costs; not OK for arms without trace points
	Added    Value // ns that a call takes longer than in the baseline; not OK for the baseline
	Overhead Value // Added as a share of the baseline's call
	ToClock  Value // Point in bare clock reads; not OK for the clock itself and where there is none
	ToStub   Value // Point in trace points of the stub that is on
	WallCall Value // Call in wall time
	WallOver Value // Overhead in wall time

	SD, Q1, Q3    float64 // spread of Point over launches (of Added, without trace points)
	Aligns        []Align // by Align
	Slower        Test    // small P: it is slower than the baseline
	NotInferior   Test    // small P: it is less than the margin slower than the baseline
	IsSlower      bool    // Slower.P < 1 - Confidence
	IsNotInferior bool    // NotInferior.P < 1 - Confidence
	Effect        float64 // standardised mean difference of the pairs (Hedges' g); 0.2 is small, 0.8 large
	Noise         Value   // baseline2 against baseline, in ns for each of this arm's trace points (each call, without)
	AboveNoise    bool    // Added is above all of the noise's interval

	Box         Box     // of ns for a whole sample divided by its calls, over all used samples
	CacheMisses float64 // a call, median; 0 where they were not counted
	BytesPerNS  float64 // GB/s, median; 0 where memory is not what is measured
}

// Align is a figure at one alignment.
type Align struct {
	Align  int
	Median float64 // as Row.Point (as Row.Added, without trace points)
	Count  int     // launches
}

// Test is a paired one-sided t test.
type Test struct {
	T, DF, P float64
	OK       bool // false with fewer than two pairs
}

// Box is what a box plot shows: quartiles, the furthest samples within 1.5 times the middle half from it, and those beyond.
type Box struct {
	Low, Q1, Median, Q3, High float64
	Outliers                  []float64
	N                         int
}

// Find returns the row of an arm, or nil.
func (s *Study) Find(arm, workload string, parameter int64, cluster string) *Row {
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Arm == arm && r.Workload == workload && r.Parameter == parameter && r.Cluster == cluster {
			return r
		}
	}
	return nil
}
