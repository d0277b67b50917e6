// Package report sums a trace up: where the time of its threads and methods went, as text of 80 columns or as JSON.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"braid/inline"
	"braid/internal/analysis"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// Options chooses what a report shows. The zero value shows everything, by self time.
type Options struct {
	// Sort orders the methods: one of SortKeys, "" is "self". Times sort from long to short.
	Sort string
	// Top limits the methods to the first N, and the threads of the text form; 0 shows all.
	Top int
	// Thread shows only the threads with this number or whose name matches this pattern (path.Match); "" shows all.
	Thread string
	// Why says what to explain; nil: nothing is analysed.
	Why *analysis.Options
}

// SortKeys are the values of Options.Sort. The states are those of a method's self time.
var SortKeys = []string{"self", "total", "calls", "running", "runnable", "sleeping", "blocked", "name"}

// ErrOption is returned for an option that makes no sense.
var ErrOption = errors.New("invalid option")

// Times is a time by what the thread did in it, in ns.
type Times struct {
	WallNs     int64 `json:"wall_ns"`
	RunningNs  int64 `json:"running_ns"`
	RunnableNs int64 `json:"runnable_ns"`
	SleepingNs int64 `json:"sleeping_ns"`
	BlockedNs  int64 `json:"blocked_ns"`
	// UnknownNs is the part of WallNs of which the kernel events say nothing: all of it without them.
	UnknownNs int64 `json:"unknown_ns"`
	// IOWaitNs is the part of sleeping and blocked in which the thread waited for I/O.
	IOWaitNs int64 `json:"io_wait_ns"`
	IOBytes  int64 `json:"io_bytes"`
}

func timesOf(s *timeline.Split) Times {
	return Times{
		WallNs: s.WallNs(), RunningNs: s.Ns[timeline.Running], RunnableNs: s.Ns[timeline.Runnable],
		SleepingNs: s.Ns[timeline.Sleeping], BlockedNs: s.Ns[timeline.Blocked], UnknownNs: s.Ns[timeline.Unknown],
		IOWaitNs: s.IOWaitNs, IOBytes: s.IOBytes,
	}
}

// Method is one method, over all threads shown.
type Method struct {
	Name   string `json:"name"`
	Module string `json:"module"`
	Calls  uint64 `json:"calls"`
	Cut    uint64 `json:"cut,omitempty"` // calls of which one end was not recorded
	// Unwound calls ended without an exit: by an exception or longjmp, or because control left their stack for good.
	Unwound uint64 `json:"unwound,omitempty"`
	// Self is the time in the method itself; Total with what it called, recursion counted once.
	Self  Times `json:"self"`
	Total Times `json:"total"`
}

// Thread is one thread.
type Thread struct {
	Pid        uint32 `json:"pid"`
	Tid        uint32 `json:"tid"`
	Name       string `json:"name"`
	Role       string `json:"role,omitempty"` // "main", "render" (RenderThread), "binder" (of the process's binder pool)
	Records    uint64 `json:"records"`        // of methods
	WallNs     int64  `json:"wall_ns"`        // that the recording knows of
	RunningNs  int64  `json:"running_ns"`
	RunnableNs int64  `json:"runnable_ns"`
	SleepingNs int64  `json:"sleeping_ns"`
	BlockedNs  int64  `json:"blocked_ns"`
	UnknownNs  int64  `json:"unknown_ns"`
	IOBytes    uint64 `json:"io_bytes"` // of block requests
	Fsyncs     uint64 `json:"fsyncs"`
	FsyncNs    int64  `json:"fsync_ns"`
	Faults     uint64 `json:"major_faults"`
}

// Clock says how well both recordings are tied together.
type Clock struct {
	Source        string `json:"source"`
	FrequencyHz   uint64 `json:"frequency_hz"`
	MaxResidualNs int64  `json:"max_residual_ns"`
}

// Device sums the block requests to a device by what they asked for.
type Device struct {
	Device   string `json:"device"` // major:minor
	Op       string `json:"op"`
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"`
	Failed   uint64 `json:"failed,omitempty"`
	MeanNs   int64  `json:"mean_ns"` // from issue to completion
	MaxNs    int64  `json:"max_ns"`
}

// Unresolved is the share of calls that went to methods without a name.
type Unresolved struct {
	Methods int    `json:"methods"`
	Calls   uint64 `json:"calls"`
	All     uint64 `json:"all_calls"`
}

// Unwound sums the calls that ended without an exit.
type Unwound struct {
	Calls   uint64 `json:"calls"`
	Resumes uint64 `json:"resumes"` // how often control came back into a method
	// Most lists the methods that most of them were of, at most unwoundMost.
	Most []string `json:"most,omitempty"`
}

const unwoundMost = 3

// Report is a trace summed up. Its order does not depend on anything but the trace and the options.
type Report struct {
	Methods    []Method          `json:"methods"`
	Threads    []Thread          `json:"threads"`
	Clock      Clock             `json:"clock"`
	Lost       map[string]uint64 `json:"lost"`
	IO         []Device          `json:"io"`
	Unresolved Unresolved        `json:"unresolved"`
	CutCalls   uint64            `json:"cut_calls"`
	Unwound    Unwound           `json:"unwound"`
	Hooks      []string          `json:"missing_hooks,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	// Samples sums the samples up; nil if there are none.
	Samples *Samples `json:"samples,omitempty"`
	// Waits are what threads slept for; nil if no waits were recorded.
	Waits *Waits `json:"waits,omitempty"`
	// Trigger is why the trace was written; nil if somebody asked for a recording.
	Trigger *tracefile.Trigger `json:"trigger,omitempty"`
	// Analysis is what made a moment slow; nil if nobody asked.
	Analysis  *analysis.Result     `json:"analysis,omitempty"`
	Snapshots []tracefile.Snapshot `json:"snapshots,omitempty"`
	// Processors is where the time was spent; nil if all processors are alike, and nothing waited while one was idle.
	Processors *Processors `json:"processors,omitempty"`

	hiddenMethods, top int
}

// Build decodes all rings of the threads that are chosen, and sums them up.
func Build(t *timeline.Trace, o Options) (*Report, error) {
	if o.Sort == "" {
		o.Sort = "self"
	}
	if !slices.Contains(SortKeys, o.Sort) {
		return nil, fmt.Errorf("sort by %q: %w; choose one of %s", o.Sort, ErrOption, strings.Join(SortKeys, ", "))
	}
	if _, err := path.Match(o.Thread, ""); err != nil {
		return nil, fmt.Errorf("thread pattern %q: %w: %v", o.Thread, ErrOption, err)
	}
	if o.Top < 0 {
		return nil, fmt.Errorf("top %d: %w; give a number of methods, or 0 for all", o.Top, ErrOption)
	}
	r := &Report{Lost: make(map[string]uint64), Methods: []Method{}, Threads: []Thread{}, IO: []Device{}, top: o.Top}
	records, err := r.methods(t, o)
	if err != nil {
		return nil, err
	}
	r.threads(t, o, records)
	r.devices(t)
	if err := errors.Join(r.waits(t, o), r.processors(t, o)); err != nil {
		return nil, err
	}
	for name, n := range t.Lost {
		if n > 0 {
			r.Lost[name] += n
		}
	}
	// From here on rings are read again, which must not count their losses again.
	if err := errors.Join(r.samples(t, o), r.why(t, o)); err != nil {
		return nil, err
	}
	r.Clock.Source = t.Counter.String()
	if t.Clock != nil {
		r.Clock.FrequencyHz, r.Clock.MaxResidualNs = t.Clock.FrequencyHz(), t.Clock.MaxResidualNs()
	}
	r.Hooks = t.Hooks
	r.Notes = append(r.Notes, t.Meta.Notes...)
	for _, err := range slices.Concat(t.Problems, t.File.Problems()) {
		r.Notes = append(r.Notes, err.Error())
	}
	return r, nil
}

// shows reports whether a thread is chosen.
func (o *Options) shows(pid, tid uint32, name string) bool {
	if o.Thread == "" || o.Thread == roleOf(pid, tid, name) || o.Thread == strconv.FormatUint(uint64(tid), 10) {
		return true
	}
	ok, _ := path.Match(o.Thread, name) // Build has checked the pattern
	return ok
}

type threadKey struct{ pid, tid uint32 }

// recorded is what the rings say of a thread.
type recorded struct {
	name    string
	records uint64
	wall    int64
}

// methods sums the method records of the chosen threads.
func (r *Report) methods(t *timeline.Trace, o Options) (map[threadKey]recorded, error) {
	records := make(map[threadKey]recorded)
	tables := make(map[*timeline.Space]*timeline.MethodTable)
	var spaces []*timeline.Space
	joiners := make(map[*timeline.Space]*timeline.Joiner)
	for _, th := range t.Threads {
		if !o.shows(th.Pid, th.Tid, th.Name) {
			continue
		}
		j := joiners[th.Space]
		if j == nil {
			j = t.Joiner(th)
			joiners[th.Space] = j
			tables[th.Space] = new(timeline.MethodTable)
			spaces = append(spaces, th.Space)
		}
		j.Stats = inline.Stats{}
		if err := j.Sum(t.Segments(th), t.Activity(th), tables[th.Space]); err != nil {
			return nil, fmt.Errorf("sum up thread %d: %w", th.Tid, err)
		}
		r.Unwound.Resumes += j.Stats.Resumes
		k := threadKey{th.Pid, th.Tid}
		records[k] = recorded{th.Name, records[k].records + j.Stats.Records, records[k].wall + th.End - th.Begin}
		for name, n := range j.Lost() {
			if n > 0 {
				r.Lost[name] += n
			}
		}
	}

	byName := make(map[[2]string]*Method)
	for _, sp := range spaces {
		for i := range tables[sp].Rows {
			row := &tables[sp].Rows[i]
			if row.Calls == 0 && row.Cut == 0 {
				continue
			}
			name := sp.Name(uint32(i))
			r.Unresolved.All += row.Calls
			r.CutCalls += row.Cut
			r.Unwound.Calls += row.Unwound
			if !name.Resolved && uint32(i) != inline.Unknown {
				r.Unresolved.Methods++
				r.Unresolved.Calls += row.Calls
			}
			k := [2]string{name.Name, name.Module}
			m := byName[k]
			if m == nil {
				m = &Method{Name: name.Name, Module: name.Module}
				byName[k] = m
			}
			m.Calls += row.Calls
			m.Cut += row.Cut
			m.Unwound += row.Unwound
			m.Self.add(timesOf(&row.Self))
			m.Total.add(timesOf(&row.Total))
		}
	}
	for _, m := range byName {
		r.Methods = append(r.Methods, *m)
	}
	r.Unwound.Most = mostUnwound(r.Methods)
	sortMethods(r.Methods, o.Sort)
	if o.Top > 0 && len(r.Methods) > o.Top {
		r.hiddenMethods = len(r.Methods) - o.Top
		r.Methods = r.Methods[:o.Top]
	}
	return records, nil
}

// mostUnwound names the methods with the most calls that ended without an exit. It reorders methods.
func mostUnwound(methods []Method) (names []string) {
	slices.SortFunc(methods, func(a, b Method) int {
		return cmp.Or(cmp.Compare(b.Unwound, a.Unwound), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
	for i := range methods[:min(unwoundMost, len(methods))] {
		if methods[i].Unwound > 0 {
			names = append(names, methods[i].Name)
		}
	}
	return names
}

func (t *Times) add(o Times) {
	t.WallNs += o.WallNs
	t.RunningNs += o.RunningNs
	t.RunnableNs += o.RunnableNs
	t.SleepingNs += o.SleepingNs
	t.BlockedNs += o.BlockedNs
	t.UnknownNs += o.UnknownNs
	t.IOWaitNs += o.IOWaitNs
	t.IOBytes += o.IOBytes
}

func sortMethods(methods []Method, key string) {
	value := func(m *Method) int64 {
		switch key {
		case "total":
			return m.Total.WallNs
		case "calls":
			return int64(m.Calls)
		case "running":
			return m.Self.RunningNs
		case "runnable":
			return m.Self.RunnableNs
		case "sleeping":
			return m.Self.SleepingNs
		case "blocked":
			return m.Self.BlockedNs
		case "name":
			return 0
		}
		return m.Self.WallNs
	}
	slices.SortFunc(methods, func(a, b Method) int {
		return cmp.Or(cmp.Compare(value(&b), value(&a)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
}

// threads lists the chosen threads that have records or kernel events, in order of their process, the ones that ran
// longest first.
func (r *Report) threads(t *timeline.Trace, o Options, records map[threadKey]recorded) {
	seen := make(map[threadKey]bool)
	for _, a := range t.Kernel.Threads() {
		if a.Serves { // what it did is told of the binder calls that it worked on
			continue
		}
		var known int64
		for _, ns := range a.States {
			known += ns
		}
		k := threadKey{a.Tgid, a.Tid}
		rec, ok := records[k]
		name := a.Name
		if name == "" {
			name = rec.name
		}
		if known == 0 && !ok || !ok && !o.shows(a.Tgid, a.Tid, name) {
			continue
		}
		seen[k] = true
		if known == 0 {
			a.States[timeline.Unknown], known = rec.wall, rec.wall
		}
		r.Threads = append(r.Threads, Thread{
			Pid: a.Tgid, Tid: a.Tid, Name: name, Role: roleOf(a.Tgid, a.Tid, name), Records: rec.records, WallNs: known,
			RunningNs: a.States[timeline.Running], RunnableNs: a.States[timeline.Runnable],
			SleepingNs: a.States[timeline.Sleeping], BlockedNs: a.States[timeline.Blocked],
			UnknownNs: a.States[timeline.Unknown], IOBytes: a.Bytes,
			Fsyncs: a.SpanCount[timeline.SpanFsync], FsyncNs: a.SpanNs[timeline.SpanFsync],
			Faults: a.SpanCount[timeline.SpanMajorFault],
		})
	}
	for k, rec := range records {
		if !seen[k] {
			r.Threads = append(r.Threads, Thread{Pid: k.pid, Tid: k.tid, Name: rec.name, Role: roleOf(k.pid, k.tid, rec.name), Records: rec.records, WallNs: rec.wall, UnknownNs: rec.wall})
		}
	}
	slices.SortFunc(r.Threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(b.RunningNs, a.RunningNs), cmp.Compare(b.Records, a.Records), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Tid, b.Tid))
	})
}

func (r *Report) devices(t *timeline.Trace) {
	for k, d := range t.Kernel.Devices() {
		r.IO = append(r.IO, Device{
			Device: fmt.Sprintf("%d:%d", k.Dev>>20, k.Dev&(1<<20-1)), Op: k.Kind.String(), Requests: d.Requests,
			Bytes: d.Bytes, Failed: d.Failed, MeanNs: d.TotalNs / int64(d.Requests), MaxNs: d.MaxNs,
		})
	}
	slices.SortFunc(r.IO, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Op, b.Op))
	})
}
