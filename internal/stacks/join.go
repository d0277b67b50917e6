package stacks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"braid/inline"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// ErrNone says that a trace has no samples.
var ErrNone = errors.New("the trace has no samples")

// Frame is one line of a sample's stack.
type Frame struct {
	Func FuncID
	// Mapping is where Addr lies, an index in Join.Mappings; -1: not known.
	Mapping int32
	// Addr is the instruction that the thread was at in this function, at run time. Of a method that only the ring
	// knows, it is the method's own; 0 if that is not known as a whole.
	Addr uint64
	// RingOnly: the unwound stack lacks it.
	RingOnly bool
}

// Sample is one sample, with what was open and what was unwound in one stack.
type Sample struct {
	Time     uint64 // CLOCK_BOOTTIME ns
	Pid, Tid uint32
	CPU      uint16
	InKernel bool
	Way      tracefile.StackWay // how the user stack was taken
	End      tracefile.StackEnd // why it ends
	// Ns is the CPU time that the sample stands for.
	Ns uint64
	// Weight is the same in the event's unit: ns, or cycles.
	Weight uint64
	// Frames from the outermost to the innermost. They are good until the next sample.
	Frames []Frame
}

// Stats counts samples, over the last call of Each.
type Stats struct {
	Samples, InKernel uint64
	Ns                uint64 // of CPU time
	// Ends counts user stacks by why they end.
	Ends map[tracefile.StackEnd]uint64
	// WithRing are samples of a time that a ring of their thread covers.
	WithRing uint64
	// Supplied are the methods that the rings knew and the unwound stacks lacked, and SuppliedIn how many samples have
	// any.
	Supplied, SuppliedIn uint64
	// InStub samples are of a moment in which a method was being entered or left: its record is the ring's next, or was
	// the newest.
	InStub uint64
	// Shifted samples agree better with what the ring says a moment before or after: within the clock's error.
	Shifted uint64
	// Contradictions are samples in which ring and stack disagree all the same. They keep what both say.
	Contradictions uint64
}

// Cut is how many user stacks certainly lack outer frames.
func (s *Stats) Cut() (n uint64) {
	for end, count := range s.Ends {
		if Cut(end) {
			n += count
		}
	}
	return n
}

// Cut reports whether a user stack that ends so certainly lacks outer frames.
func Cut(end tracefile.StackEnd) bool {
	switch end {
	case tracefile.EndNone, tracefile.EndComplete, tracefile.EndChain:
		return false
	}
	return true
}

// Join is the samples of a trace joined with its rings.
type Join struct {
	// Functions by FuncID, and Mappings: both grow with the samples that Each has given. The first function is Unknown.
	Functions []Function
	Mappings  []tracefile.Mapping
	// Event and Frequency are what the samples are of. Way is how user stacks were asked for, and Kernel says whether
	// the kernel's were.
	Event     tracefile.SampleEvent
	Frequency uint64 // a second of CPU time
	Way       tracefile.StackWay
	Kernel    bool
	// Keep chooses the threads whose samples Each gives; nil: all.
	Keep  func(pid, tid uint32) bool
	Stats Stats

	trace        *timeline.Trace
	table        *tracefile.FrameTable
	mappingIndex map[*tracefile.Mapping]int32
	changes      map[uint32][]uint64 // of a process: when its mappings changed, in order
	ids          map[Function]FuncID
	places       map[placeKey]place
	spaces       []*space
	spaceIDs     map[*timeline.Space]*space
	threads      map[uint32][]*timeline.Thread // by process
	ownModules   map[uint32]bool               // processes that share none with the one they were forked from
	names        *threadNames

	nodes   []node
	nodeIDs map[node]uint32
	chains  []uint32
	states  []states // by sample, in the order of the file

	merger       merger
	ring, user   []line
	pairs, tried []pair
	stackPlaces  []place
	frames       []Frame
}

// New reads the samples of a trace and decodes its rings. It returns ErrNone if there are no samples.
func New(tr *timeline.Trace) (*Join, error) {
	f, err := tr.File.Frames()
	if err != nil {
		return nil, fmt.Errorf("read the samples' names: %w", err)
	}
	j := &Join{
		trace: tr, table: f.Table(), Mappings: f.Mappings, mappingIndex: map[*tracefile.Mapping]int32{}, changes: map[uint32][]uint64{},
		ids: map[Function]FuncID{}, places: map[placeKey]place{}, spaceIDs: map[*timeline.Space]*space{}, threads: map[uint32][]*timeline.Thread{},
		ownModules: map[uint32]bool{}, names: namesOf(tr), nodes: []node{{}}, nodeIDs: map[node]uint32{}, merger: merger{calls: map[call]struct{}{}},
	}
	j.function(Function{Name: timeline.UnknownName, Kind: Method})
	for i := range f.Mappings {
		m := &f.Mappings[i]
		j.mappingIndex[m] = int32(i)
		if m.Since != 0 && !slices.Contains(j.changes[m.Pid], m.Since) {
			j.changes[m.Pid] = append(j.changes[m.Pid], m.Since)
		}
	}
	for _, list := range j.changes {
		slices.Sort(list)
	}
	for _, m := range tr.Modules {
		j.ownModules[uint32(m.Pid)] = true
	}
	moments, losing, err := j.moments()
	if err != nil {
		return nil, err
	}
	if err := j.rings(moments); err != nil {
		return nil, err
	}
	for _, th := range tr.Threads {
		j.threads[th.Pid] = append(j.threads[th.Pid], th)
	}
	if err := j.learnMethods(); err != nil || !losing {
		return j, err
	}
	return j, j.learnCalls()
}

// each hands over every sample, with its number and its CPU time.
func (j *Join) each(visit func(index int, s *tracefile.Sample, ns uint64) error) error {
	index := 0
	for section, err := range j.trace.File.Samples() {
		if err != nil {
			return fmt.Errorf("read samples: %w", err)
		}
		period := uint64(0)
		if section.Frequency > 0 {
			period = 1e9 / section.Frequency
		}
		j.Event, j.Frequency, j.Way, j.Kernel = section.Event, section.Frequency, section.Stacks, section.Kernel
		for i := range section.Samples {
			s := &section.Samples[i]
			ns := period
			if section.Event == tracefile.SampleCPUClock && s.Weight > 0 {
				ns = s.Weight
			}
			if err := visit(index, s, ns); err != nil {
				return err
			}
			index++
		}
	}
	return nil
}

// moments lists when each thread was sampled. losing: there are stacks that may lack frames.
func (j *Join) moments() (all map[threadKey][]moment, losing bool, err error) {
	all = map[threadKey][]moment{}
	n := 0
	err = j.each(func(index int, s *tracefile.Sample, _ uint64) error {
		k := threadKey{s.Tgid, s.Tid}
		all[k] = append(all[k], moment{int64(min(s.Time, 1<<62)), uint32(index)})
		losing = losing || !complete(s)
		n++
		return nil
	})
	if err == nil && n == 0 {
		err = ErrNone
	}
	j.states = make([]states, n)
	return all, losing, err
}

// complete reports whether a user stack lacks nothing.
func complete(s *tracefile.Sample) bool {
	return s.Way == tracefile.StackDWARF && s.End == tracefile.EndComplete
}

// noProcess stands for process 0 in a damaged sample: for places that is the kernel.
const noProcess = ^uint32(0)

// userLines finds the places of a sample's user frames, innermost first, and makes j.user of them.
func (j *Join) userLines(index int, s *tracefile.Sample) []place {
	sp := j.spaceAt(index, s)
	j.stackPlaces = j.stackPlaces[:0]
	for _, addr := range s.User {
		j.stackPlaces = append(j.stackPlaces, j.place(sp, cmp.Or(s.Tgid, noProcess), addr, s.Time))
	}
	j.user = j.user[:0]
	for _, p := range slices.Backward(j.stackPlaces) {
		j.user = append(j.user, line{fn: p.fn, key: p.key, method: p.method, entry: p.entry})
	}
	return j.stackPlaces
}

func (j *Join) spaceOf(t *timeline.Space) *space {
	s := j.spaceIDs[t]
	if s == nil {
		s = &space{Space: t, id: uint32(len(j.spaces))}
		j.spaceIDs[t] = s
		j.spaces = append(j.spaces, s)
	}
	return s
}

// spaceAt is the address space of a sample: that of its ring, or of the process's nearest one in time.
func (j *Join) spaceAt(index int, s *tracefile.Sample) *space {
	if st := j.states[index]; st.n > 0 {
		return j.spaces[st.space]
	}
	var best *timeline.Thread
	far := int64(0)
	for _, th := range j.threads[s.Tgid] {
		d := max(th.Begin-int64(s.Time), int64(s.Time)-th.End, 0)
		if best == nil || d < far {
			best, far = th, d
		}
	}
	if best == nil {
		return nil
	}
	return j.spaceOf(best.Space)
}

// Each gives the samples in the order of the file, and counts them in Stats. An error of visit ends it and comes back.
func (j *Join) Each(visit func(s *Sample) error) error {
	j.Stats = Stats{Ends: map[tracefile.StackEnd]uint64{}}
	var out Sample
	return j.each(func(index int, s *tracefile.Sample, ns uint64) error {
		if j.Keep != nil && !j.Keep(s.Tgid, s.Tid) {
			return nil
		}
		out = Sample{Time: s.Time, Pid: s.Tgid, Tid: s.Tid, CPU: s.CPU, InKernel: s.Flags&tracefile.SampleKernel != 0, Way: s.Way,
			End: s.End, Ns: ns, Weight: s.Weight, Frames: j.stack(index, s)}
		st := &j.Stats
		st.Samples++
		st.Ns += ns
		st.Ends[s.End]++
		if out.InKernel {
			st.InKernel++
		}
		return visit(&out)
	})
}

// stack makes a sample's stack.
func (j *Join) stack(index int, s *tracefile.Sample) []Frame {
	places := j.userLines(index, s)
	j.join(index, complete(s))
	j.frames = j.frames[:0]
	for _, p := range j.pairs {
		f := Frame{Mapping: -1}
		if p.frame >= 0 {
			f = Frame{Func: j.user[p.frame].fn, Addr: s.User[len(places)-1-p.frame], Mapping: places[len(places)-1-p.frame].mapping}
		}
		if p.ring >= 0 {
			r := &j.ring[p.ring]
			if !r.any || p.frame < 0 {
				f.Func = r.fn
			}
			if p.frame < 0 {
				if f.RingOnly, f.Addr = true, r.addr; r.addr != 0 {
					f.Mapping = j.place(j.spaceAt(index, s), s.Tgid, r.addr, s.Time).mapping
				}
			}
		}
		j.frames = append(j.frames, f)
	}
	for _, addr := range slices.Backward(s.Kernel) {
		p := j.place(nil, 0, addr, s.Time)
		j.frames = append(j.frames, Frame{Func: p.fn, Addr: addr, Mapping: p.mapping})
	}
	if s.Flags&tracefile.SampleKernel != 0 && len(s.Kernel) == 0 {
		j.frames = append(j.frames, Frame{Func: j.function(Function{Name: kernelName, Kind: Kernel}), Mapping: -1})
	}
	return j.frames
}

// join merges j.user with what the ring says, into j.pairs and j.ring. Where the two contradict, there are two
// explanations. The thread may have been in a stub: the innermost frame is a method's whose entry is the ring's next record,
// however long the interruption took, or whose exit was the newest one. Or the times are not exact: of the ring's states
// within the clock's error the one counts that contradicts the stack least, and of those the nearest. After a ring's newest
// record there is a third one: the thread no longer recorded.
func (j *Join) join(index int, complete bool) {
	st := &j.states[index]
	j.ring = j.ring[:0]
	if st.n == 0 {
		j.pairs, _ = j.merger.merge(j.pairs[:0], nil, j.user, false, false)
		return
	}
	chains := j.chains[st.first:][:st.n]
	best, at := j.try(&j.pairs, chains[0], nil, complete), 0
	if best.contradictions() > 0 {
		if leaf := j.inStub(st); leaf != nil {
			if v := j.try(&j.tried, chains[0], leaf, complete); v.contradictions() == 0 {
				j.pairs, j.tried = j.tried, j.pairs
				j.Stats.count(v)
				j.Stats.InStub++
				return
			}
		}
	}
	for i, chain := range chains[1:] {
		if best.contradictions() == 0 {
			break
		}
		if v := j.try(&j.tried, chain, nil, complete); v.contradictions() < best.contradictions() {
			best, at = v, i+1
			j.pairs, j.tried = j.tried, j.pairs
		}
	}
	if st.tail && best.contradictions() > 0 {
		j.ring = j.ring[:0]
		j.pairs, _ = j.merger.merge(j.pairs[:0], nil, j.user, false, false)
		return
	}
	j.ring = j.lines(j.ring[:0], chains[at])
	j.Stats.count(best)
	if at > 0 {
		j.Stats.Shifted++
	}
}

// try merges a chain of open methods, and one more within them if there is one.
func (j *Join) try(pairs *[]pair, chain uint32, inner *line, complete bool) (v verdict) {
	j.ring = j.lines(j.ring[:0], chain)
	if inner != nil {
		j.ring = append(j.ring, *inner)
	}
	*pairs, v = j.merger.merge((*pairs)[:0], j.ring, j.user, complete, len(j.user) > 0)
	return v
}

// inStub is the method of the innermost frame, if the thread may have been in its stub.
func (j *Join) inStub(st *states) *line {
	if len(j.user) == 0 {
		return nil
	}
	leaf, s := &j.user[len(j.user)-1], j.spaces[st.space]
	for _, m := range []uint32{st.entered, st.left} {
		if leaf.method && m != inline.Unknown && s.key(m) == leaf.key {
			return leaf
		}
	}
	return nil
}

// count counts a sample whose time a ring covers.
func (s *Stats) count(v verdict) {
	s.WithRing++
	if v.supplied > 0 {
		s.Supplied += uint64(v.supplied)
		s.SuppliedIn++
	}
	if v.contradictions() > 0 {
		s.Contradictions++
	}
}
