// Package result is what a study found: its JSON form, with every sample that was taken. Everything that is shown (tables,
// figures, sentences, comparisons) is computed from it, so that the same file always gives the same page.
//
// Times are nanoseconds unless a name says otherwise. Values are plain data: nothing here is safe for concurrent change.
package result

import "time"

// Schema is the version of the JSON form. It changes when a reader of the old one would misread the new one.
const Schema = 1

// Study is one run of a study on one machine.
type Study struct {
	Schema   int       `json:"schema"`
	Version  string    `json:"version"` // of braid
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Complete bool      `json:"complete"` // every figure has an interval; Why says what ended it otherwise, or before all intervals were narrow
	Why      string    `json:"why,omitempty"`
	Machine  Machine   `json:"machine"`
	Method   Method    `json:"method"`
	Arms     []Arm     `json:"arms"`   // in the order in which they are shown; also those that could not run
	Series   []Series  `json:"series"` // sorted by Workload, Parameter, Cluster, and by the order of Arms
	Discards []Discard `json:"discards"`
	Warnings []Warning `json:"warnings"` // why the figures may not be trusted
}

// Machine is where a study ran. Empty strings and zeroes mean that it could not be found out.
type Machine struct {
	Name           string    `json:"name"` // model, as the vendor calls it
	Arch           string    `json:"arch"` // Go's name
	OS             string    `json:"os"`
	Kernel         string    `json:"kernel"`
	Virtual        string    `json:"virtual,omitempty"` // the hypervisor, or "" on bare metal
	CPUs           int       `json:"cpus"`
	MemoryBytes    uint64    `json:"memory_bytes"`
	Counter        string    `json:"counter"` // "tsc", "cntvct"
	CounterHz      uint64    `json:"counter_hz"`
	CounterSteady  bool      `json:"counter_steady"` // constant rate, goes on in idle
	ClockSource    string    `json:"clock_source"`   // of the kernel
	Root           bool      `json:"root"`
	PMU            bool      `json:"pmu"`
	Emulated       bool      `json:"emulated,omitempty"` // by software: times mean nothing
	MitigationNote string    `json:"mitigations,omitempty"`
	Clusters       []Cluster `json:"clusters"`
}

// Cluster is a set of CPUs of the same kind.
type Cluster struct {
	Name     string `json:"name"` // "all", "little", "middle", "big"
	CPUs     []int  `json:"cpus"`
	Capacity int    `json:"capacity"` // of 1024
	Model    string `json:"model"`
	MaxKHz   uint64 `json:"max_khz"`
	PinnedTo int    `json:"pinned_to"` // the CPU that was measured, if there are series of the cluster
	// What a system call that does nothing cost there: the median of batches, before the study and after it. 0: not measured.
	SyscallNS      float64 `json:"syscall_ns,omitempty"`
	SyscallAfterNS float64 `json:"syscall_after_ns,omitempty"`
}

// Method is how a study was made.
type Method struct {
	Seed        uint64   `json:"seed"` // of the order of arms
	Quick       bool     `json:"quick"`
	Seconds     float64  `json:"seconds"`    // the limit
	Margin      float64  `json:"margin"`     // of non-inferiority, as a share: 0.03
	Confidence  float64  `json:"confidence"` // of intervals: 0.95
	StableShare float64  `json:"stable_share"`
	Aligns      []int    `json:"aligns"`              // bytes by which the measured functions' starts were moved
	Command     []string `json:"command,omitempty"`   // the user's own program
	Functions   []string `json:"functions,omitempty"` // of it that probes were put on, as patterns
	Width       float64  `json:"width"`               // half an interval's width at which a figure is good enough, as a share of the figure
	SampleNS    int64    `json:"sample_ns"`           // how long a sample should take: calls were calibrated to that
	Launches    int      `json:"launches"`            // how often programs were started, over all workloads and clusters
	WarmUps     int      `json:"warm_ups"`            // measurements that were only made to warm up
	Unsteady    int      `json:"unsteady"`            // warm-ups that were given up before times were stable
}

// Arm is a way to trace, or not to.
type Arm struct {
	Name      string            `json:"name"`  // stable, for programs: "stub-on"
	Title     string            `json:"title"` // for people: "stub, on"
	Group     string            `json:"group"` // one of the Group constants
	Baseline  string            `json:"baseline,omitempty"`
	Points    float64           `json:"points"` // trace points for each call: 2 for entry and return, 1 for an entry alone
	Class     string            `json:"class,omitempty"`
	Site      string            `json:"site,omitempty"` // the probed instruction, as text: "push %rbp"
	Facts     map[string]string `json:"facts,omitempty"`
	Ran       bool              `json:"ran"`
	WhyNot    string            `json:"why_not,omitempty"`
	NextStep  string            `json:"next_step,omitempty"` // what the user can do so that it runs
	Estimated bool              `json:"estimated,omitempty"` // its events can't be counted exactly; Facts say why
}

// Groups of arms.
const (
	GroupFloor    = "floor"    // baseline and the bare clock read
	GroupInline   = "inline"   // stubs
	GroupCompiled = "compiled" // what a compiler calls: -finstrument-functions
	GroupProbe    = "probe"    // the kernel's probes
	GroupExternal = "external" // other tracers
)

// Series are the samples of an arm on a workload with a parameter on a cluster. One with a Failure has no figure.
type Series struct {
	Arm       string   `json:"arm"`
	Workload  string   `json:"workload"`
	Parameter int64    `json:"parameter"` // work of a call, side of a tile; 0 where there is none
	Cluster   string   `json:"cluster"`
	Expected  uint64   `json:"expected"` // events over all samples, as far as the arm counts them
	Recorded  uint64   `json:"recorded"`
	Failure   string   `json:"failure,omitempty"` // why the samples are no figures: events were lost, the program died
	Samples   []Sample `json:"samples"`
}

// Sample is one measurement. Samples of all arms with the same launch, round and align belong together: they were taken one
// after the other, in random order. All programs are started anew for each launch, because where the loader and the kernel
// happen to put memory makes a difference that more rounds in the same process would not show.
type Sample struct {
	Launch      int     `json:"launch"` // from 0, of this workload on this cluster
	Round       int     `json:"round"`  // from 0, within the launch
	Align       int     `json:"align"`
	Calls       int64   `json:"calls"` // of the traced function
	WallNS      int64   `json:"wall_ns"`
	CPUNS       int64   `json:"cpu_ns"`   // of the measured thread
	Expected    uint64  `json:"expected"` // events that the arm had to record
	Recorded    uint64  `json:"recorded"` // events that it recorded; a sample where they differ is a failure, not a figure
	StolenNS    int64   `json:"stolen_ns,omitempty"`
	KHz         uint64  `json:"khz,omitempty"`
	Celsius     float64 `json:"celsius,omitempty"`
	CacheMisses uint64  `json:"cache_misses,omitempty"`
	Bytes       uint64  `json:"bytes,omitempty"` // memory that the workload moved, where that is what is measured
	Discarded   string  `json:"discarded,omitempty"`
}

// Discard counts what was thrown away, and says why.
type Discard struct {
	Arm      string `json:"arm,omitempty"` // "" if whole rounds
	Workload string `json:"workload,omitempty"`
	Why      string `json:"why"`
	Samples  int    `json:"samples"`
}

// Warning says why figures can't be trusted, and what to do.
type Warning struct {
	Code string `json:"code"` // stable: "virtual-machine", "one-cpu", "throttled", "counter", "emulated", "noisy", "not-root", "busy", "unsteady", "failed"
	Text string `json:"text"`
}
