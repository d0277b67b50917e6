package study

import (
	"slices"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
)

// Load is a workload with the parameters that are studied.
type Load struct {
	Name       string
	Parameters []int64 // the first is measured at all alignments in each launch, the others at one alignment after the other
	Aligns     []int
	Sample     time.Duration // how long a sample should take
	MinCalls   int64         // in a sample, also of dear arms
	Rounds     int           // in a launch
	Weight     float64       // of its share of the time
	Command    []string      // of workload.Command
	Functions  []string      // of Command, for probes; none: no probes
	// SameCalls says that what a call does depends on how many there were (memory that was touched), so that arms are measured
	// with the same number as the baseline, unless that takes very long.
	SameCalls bool
	// Without says which arms leave it to others, so that there is time for enough launches; nil: none does.
	Without func(*arm.Arm) bool
}

// whole says that a sample is a process from its start to its end: calls can't be chosen, and there is nothing to warm up in it.
func (l *Load) whole() bool { return l.Name == workload.Startup || l.Name == workload.Command }

// wall says that times are wall time.
func (l *Load) wall() bool { return estimate.OnWallTime(l.Name) }

// Has says whether an arm can run a workload.
func (l *Load) Has(a *arm.Arm) bool {
	if l.Without != nil && l.Without(a) {
		return false
	}
	if a.Workloads == nil {
		return l.Name != workload.Command || a.Name == estimate.Baseline || a.Name == estimate.Again
	}
	if l.Name == workload.Command && a.Group == result.GroupProbe && len(l.Functions) == 0 {
		return false
	}
	return slices.Contains(a.Workloads, l.Name)
}

// aligns are the alignments of the n-th parameter in a launch.
func (l *Load) aligns(n, launch int) []int {
	if n == 0 || len(l.Aligns) < 2 {
		return l.Aligns
	}
	i := (launch + n) % len(l.Aligns)
	return l.Aligns[i : i+1]
}

// Loads returns what a study runs by default: all workloads that need no command; with quick, only the listing.
func Loads(quick bool) []Load {
	listing := Load{Name: workload.Listing, Parameters: []int64{0, 1, 10, 100, 1000}, Aligns: workload.Aligns(),
		Sample: 4 * time.Millisecond, MinCalls: 500, Rounds: 2, Weight: 4, Without: external}
	if quick {
		return []Load{listing}
	}
	return []Load{
		listing,
		{Name: workload.Call, Parameters: []int64{0}, Aligns: workload.Aligns()[:1], Sample: 4 * time.Millisecond, MinCalls: 500, Rounds: 1, Weight: 3,
			Without: probesBut("uprobe-count-nop5", "uretprobe-count-nop5", "pair-count-nop5", "pair-count-push", "pair-count-other",
				"session-count-nop5", "usdt-count")},
		{Name: workload.Matrix, Parameters: []int64{16, 32, 64, 128, 256, 512, 1024, 2048}, Aligns: workload.Aligns()[:1],
			Sample: 10 * time.Millisecond, MinCalls: 500, Rounds: 1, Weight: 2, SameCalls: true, Without: external},
		{Name: workload.Startup, Parameters: []int64{0}, Aligns: []int{0}, Rounds: 1, Weight: 2, Without: probesBut("session-count-all")},
		{Name: workload.Schedule, Parameters: []int64{0}, Aligns: []int{0}, Sample: 20 * time.Millisecond, MinCalls: 500, Rounds: 2, Weight: 1},
		{Name: workload.IO, Parameters: []int64{0}, Aligns: []int{0}, Sample: 20 * time.Millisecond, MinCalls: 50, Rounds: 2, Weight: 1},
	}
}

// external are other tracers. A measurement is a session of theirs, with its files, so that they take minutes for a launch; the
// tight loop shows what they cost.
func external(a *arm.Arm) bool { return a.Group == result.GroupExternal }

// probesBut are the probes that are not named. Many cost much the same, which the listing shows.
func probesBut(names ...string) func(*arm.Arm) bool {
	return func(a *arm.Arm) bool { return a.Group == result.GroupProbe && !slices.Contains(names, a.Name) }
}

// CommandLoad is the user's own program, measured from its start to its end, with probes on those of its functions that match.
func CommandLoad(command, functions []string) Load {
	return Load{Name: workload.Command, Parameters: []int64{0}, Aligns: []int{0}, Rounds: 1, Weight: 1, Command: command, Functions: functions}
}
