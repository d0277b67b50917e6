package export

import (
	"bytes"
	"fmt"

	"braid/internal/kevent"
	"braid/internal/perfetto"
	"braid/internal/timeline"
)

// kernelTracks holds the tracks that appear with their first event.
type kernelTracks struct {
	devices map[uint32]*device
	perTid  map[laneKey]*perfetto.Lanes
	sector  perfetto.KeyID
	bytes   perfetto.KeyID
	owner   perfetto.KeyID
	result  perfetto.KeyID
}

type laneKey struct {
	pid, tid uint32
	kind     kevent.Kind
}

// device puts a device's requests into the order of their starts, although they complete in another.
type device struct {
	lanes *perfetto.Lanes
	queue []request
}

type request struct {
	key        rqKey
	start, end uint64
	rq         kevent.Rq
	tid        uint32
	indirect   bool
}

type rqKey struct {
	dev    uint32
	id     uint64
	sector uint64
	op     kevent.Op
}

// maxQueue bounds the requests of one device that wait for an earlier one to complete.
const maxQueue = 8192

func (e *exporter) kernel() error {
	t := &kernelTracks{devices: map[uint32]*device{}, perTid: map[laneKey]*perfetto.Lanes{}, sector: e.w.Key("sector"),
		bytes: e.w.Key("bytes"), owner: e.w.Key("thread"), result: e.w.Key("result")}
	s := timeline.Sorter{Deliver: func(h kevent.Header, body []byte) { e.event(t, h, body) }}
	if e.end > 0 {
		s.MaxTime = e.end + 1e9
	}
	for chunk, err := range e.tr.File.Events() {
		if err != nil {
			return fmt.Errorf("reading kernel events: %w", err)
		}
		if err := s.Push(chunk); err != nil {
			continue // counted when the trace was loaded
		}
		if err := e.w.Err(); err != nil {
			return err
		}
	}
	s.Flush()
	for _, d := range t.devices {
		e.drain(t, d, true)
	}
	return nil
}

func (e *exporter) event(t *kernelTracks, h kevent.Header, body []byte) {
	switch h.Kind {
	case kevent.KindSwitch:
		b := kevent.DecodeSwitch(body)
		e.counts.Switches++
		state := perfetto.TaskState(b.PrevState, h.Flags&kevent.FlagPreempted != 0)
		if b.NextTid == 0 && h.Flags&(kevent.FlagNextTarget|kevent.FlagNextServer) == 0 && b.NextComm[0] == 0 {
			e.w.Gap(int(h.CPU), h.Time) // who runs next was not recorded
			return
		}
		e.w.Switch(int(h.CPU), h.Time, int(h.Tid), state, int(b.NextTid), int(b.NextPrio), b.NextComm)
		if state == perfetto.Blocked {
			e.w.BlockedReason(int(h.CPU), h.Time, int(h.Tid), h.Flags&kevent.FlagIOWait != 0)
		}
	case kevent.KindWaking:
		b := kevent.DecodeWaking(body)
		e.w.Waking(int(h.CPU), h.Time, int(b.WakerTid), int(h.Tid), int(b.TargetCPU), int(b.Prio), b.Comm)
	case kevent.KindFreq:
		b := kevent.DecodeFreq(body)
		e.w.Frequency(int(b.CPU), h.Time, b.KHz)
	case kevent.KindRqIssue, kevent.KindRqComplete:
		e.request(t, h, kevent.DecodeRq(body))
	case kevent.KindFsync:
		b := kevent.DecodeFsync(body)
		e.lane(t, b.Tgid, h, "fsync", callName(b.Call), b.StartNs, perfetto.Int(t.result, b.Ret))
	case kevent.KindMajorFault:
		b := kevent.DecodeMajorFault(body)
		e.lane(t, b.Tgid, h, "major faults", "major fault", b.StartNs, perfetto.Pointer(e.w.Key("address"), b.Address))
	case kevent.KindLost:
		b := kevent.DecodeLost(body)
		if e.main != nil {
			name := string(bytes.TrimRight(b.Name[:], "\x00"))
			e.w.Instant(e.main, h.Time, e.w.Name("lost: "+name), perfetto.Uint(e.keyCount, b.Count))
			e.marked[name] = true
		}
	case kevent.KindReclaim:
		b := kevent.DecodeReclaim(body)
		e.lane(t, b.Tgid, h, "direct reclaim", "direct reclaim", b.StartNs, perfetto.Uint(e.w.Key("pages"), uint64(b.Reclaimed)))
	}
}

// lane writes something that a thread waited for, below the thread.
func (e *exporter) lane(t *kernelTracks, pid uint32, h kevent.Header, track, name string, start uint64, a perfetto.Arg) {
	if start == 0 || start > h.Time {
		start = h.Time
	}
	k := laneKey{pid, h.Tid, h.Kind}
	l := t.perTid[k]
	if l == nil {
		parent := e.threads[[2]int{int(pid), int(h.Tid)}]
		if parent == nil {
			return
		}
		l = e.w.Lanes(parent, track)
		t.perTid[k] = l
	}
	l.Slice(start, h.Time, e.w.Name(name), a)
}

func (e *exporter) request(t *kernelTracks, h kevent.Header, b kevent.Rq) {
	d := t.devices[b.Dev]
	if d == nil {
		if e.main == nil {
			return
		}
		d = &device{lanes: e.w.Lanes(e.main, fmt.Sprintf("block I/O %d:%d", b.Dev>>20, b.Dev&(1<<20-1)))}
		t.devices[b.Dev] = d
	}
	k := rqKey{b.Dev, b.ID, b.Sector, b.Op}
	if h.Kind == kevent.KindRqIssue {
		d.queue = append(d.queue, request{key: k, start: h.Time, rq: b, tid: h.Tid, indirect: h.Flags&kevent.FlagIndirect != 0})
		if len(d.queue) > maxQueue {
			e.drain(t, d, true)
		}
		return
	}
	for i := range d.queue {
		if r := &d.queue[i]; r.key == k && r.end == 0 {
			r.end = max(h.Time, r.start)
			break
		}
	}
	e.drain(t, d, false)
}

// drain writes the requests at the queue's head that have completed; all, if force is set, and drops those that have not.
func (e *exporter) drain(t *kernelTracks, d *device, force bool) {
	n := 0
	for _, r := range d.queue {
		if r.end == 0 && !force {
			break
		}
		n++
		if r.end == 0 {
			continue
		}
		owner := r.rq.OwnerTid
		if owner == 0 {
			owner = r.tid
		}
		e.counts.Requests++
		d.lanes.Slice(r.start, r.end, e.w.Name(opName(r.rq.Op)), perfetto.Uint(t.sector, r.rq.Sector),
			perfetto.Uint(t.bytes, uint64(r.rq.Bytes)), perfetto.Uint(t.owner, uint64(owner)))
	}
	d.queue = append(d.queue[:0], d.queue[n:]...)
}

func opName(o kevent.Op) string { return o.String() }

func callName(c kevent.SyncCall) string { return c.String() }
