package watch

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"braid/control"
	"braid/internal/capture"
	"braid/internal/counter"
	"braid/internal/cpus"
	"braid/internal/ctl"
	"braid/internal/retain"
	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// patience is how long threads may take to change rings, or to stop, before their rings are read without an answer.
const patience = 20 * time.Millisecond

// job is all that a trace will hold, copied: while it is written, the threads go on in their second rings.
type job struct {
	target   ctl.Flushed
	uid      int
	proc     *capture.Process
	files    *capture.Files
	tids     []int
	rings    []*tracefile.Ring
	events   [][]byte
	dropped  uint64
	clock    []tracefile.ClockSample
	snapshot *tracefile.Snapshot
	trigger  tracefile.Trigger
	severity int
	lost     map[string]uint64
	hooks    []string
	start    tracefile.Instant
	end      tracefile.Instant
	entry    *retain.Entry
	summary  any
	swapped  time.Duration // from the request until all threads were in their second rings
	copied   time.Duration // and until everything was copied
}

// copyRings takes what the target's threads have recorded. Threads that run change to their second rings and miss no
// trace point; the first ones are read then. A thread that rests is read where it is, and changes when it wakes.
func (t *target) copyRings(j *job) {
	began := time.Now()
	t.find() // one may have started since the last look
	var threads []*control.Thread
	for _, r := range t.rings {
		if r.t.Swapped() { // it rested at the last flush, and has changed since
			t.takeOld(j, r)
		}
		threads = append(threads, r.t)
	}
	control.SwapAll(threads, patience)
	j.swapped = time.Since(began)
	for _, r := range t.rings {
		if r.t.Swapped() {
			t.takeOld(j, r)
			continue
		}
		if !r.t.Recorded() { // it has a ring, and has reached no trace point since
			continue
		}
		s, err := r.t.Snapshot(nil)
		t.keep(j, r, s, err)
	}
	for _, r := range t.ended {
		s, err := r.t.Collect(nil)
		t.keep(j, r, s, err)
	}
	j.copied = time.Since(began)
}

// takeOld takes the ring that a thread has left.
func (t *target) takeOld(j *job, r *ring) {
	r.swaps++
	r.old = time.Time{}
	s, err := r.t.CollectOld(nil)
	t.keep(j, r, s, err)
	r.t.ReleaseOld()
}

func (t *target) keep(j *job, r *ring, s control.Segment, err error) {
	switch {
	case errors.Is(err, control.ErrLapped):
		j.lost["rings_overtaken"]++
	case err != nil:
		j.lost["rings_damaged"]++
	case len(s.Slots) > 0 || r.segments == 0:
		j.proc.Scan(s.Slots)
		j.rings = append(j.rings, t.proc.Ring(r.t, &s, r.segments))
		j.target.Records += uint64(len(s.Slots))
		r.segments++
	}
	j.tids = append(j.tids, r.t.Tid)
}

// write writes the trace where the store wants it, and reports what became of it. It runs on a goroutine of its own.
func (j *job) write(store *retain.Store, version, campaign string, summaryOnly bool) ctl.Flushed {
	out := j.target
	events, kernelEvents, err := newFilter(j.target.PID, j.tids).copy(j.events, nil)
	if err != nil {
		j.lost["kernel_events_damaged"]++
	}
	j.events = nil
	slot, err := store.Admit(retain.Candidate{Program: j.target.Name, UID: j.uid, Trigger: j.trigger.Name, Campaign: campaign, Severity: j.severity,
		Score: j.trigger.Values["score"], Time: time.Unix(0, j.end.WallNs), Bytes: j.bound(len(events))})
	if err != nil {
		out.Error = err.Error()
		return out
	}
	path := slot.Path
	if err := j.writeTo(path, version, events, kernelEvents); err != nil {
		slot.Abort()
		out.Error = err.Error()
		return out
	}
	if summaryOnly { // the trace will be gone
		j.summary = summarise(path)
	}
	entry, err := slot.Commit(j.summary)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Path, out.Bytes, j.entry = entry.Trace, entry.Bytes, entry
	if out.Path == "" {
		out.Path = entry.Summary
	}
	return out
}

// bound is how large the trace can be at most: rings and events as they are, and names.
func (j *job) bound(events int) int64 {
	n := int64(events) + 4<<20
	for _, r := range j.rings {
		n += int64(len(r.Slots))*8 + int64(len(r.Anchors))*40 + 4096
	}
	return n
}

func (j *job) writeTo(path, version string, events []byte, kernelEvents uint64) error {
	w, err := tracefile.Create(path)
	if err != nil {
		return err
	}
	out := capture.NewOutput(w)
	for _, r := range j.rings {
		out.Do(func(w *tracefile.Writer) error { return w.WriteRing(r) })
		r.Slots = nil
	}
	if len(events) > 0 {
		out.Do(func(w *tracefile.Writer) error { return w.WriteEvents(events) })
	}
	names := capture.Names{Files: j.files, Procs: []*capture.Process{j.proc}}
	names.Write(out)
	if j.dropped > 0 {
		j.lost["kernel_past_full"] += j.dropped
	}
	out.Do(func(w *tracefile.Writer) error { return j.writeRest(w, version, names.Ambiguous, kernelEvents) })
	if err := out.Failed(); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

func (j *job) writeRest(w *tracefile.Writer, version string, notes []string, kernelEvents uint64) error {
	kind := tracefile.CounterTSC
	if counter.Name == "cntvct_el0" {
		kind = tracefile.CounterCNTVCT
	}
	var u unix.Utsname
	unix.Uname(&u)
	host, _ := os.Hostname()
	meta := &tracefile.Meta{Braid: version, Kernel: unix.ByteSliceToString(u.Release[:]), Machine: unix.ByteSliceToString(u.Machine[:]),
		Arch: goruntime.GOARCH, Host: host, CPUs: goruntime.NumCPU(), Start: j.start, End: j.end, Pid: j.target.PID, Notes: notes, Trigger: &j.trigger,
		Processors: cpus.Read(os.DirFS("/"))}
	for i := range meta.Processors {
		meta.Processors[i].KHz = 0 // what was read is that of the end
	}
	if kernelEvents == 0 && len(j.hooks) == 0 {
		meta.Notes = append(meta.Notes, "no kernel events: braid watch ran without its kernel side, or nothing happened")
	}
	for _, step := range []func() error{
		func() error {
			return w.WriteClock(&tracefile.Clock{Counter: kind, Frequency: counter.Hz(), Samples: j.clock})
		},
		func() error {
			return w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{j.proc.Info}})
		},
		func() error { return w.WriteLost(&tracefile.Lost{Counts: j.lost, Hooks: j.hooks}) },
		func() error {
			if j.snapshot == nil {
				return nil
			}
			return w.WriteSnapshot(j.snapshot)
		},
		func() error { return w.WriteMeta(meta) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("writing the trace: %w", err)
		}
	}
	return nil
}
