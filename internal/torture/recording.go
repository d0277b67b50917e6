package torture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"braid/control"
	"braid/inline"
	"braid/inline/runtime"
)

// ringBytes is how much each thread may record before its oldest records go.
const ringBytes = 16 << 20

// recording is what a program's processes recorded. One goroutine.
type recording struct {
	session *control.Session
	areas   []*control.Area
	foreign bool     // the program's counter is not the one that is read here: an emulator's
	ended   []thread // that ended while others still ran
	err     error    // the first that looking met
}

func newRecording(foreign bool) (*recording, error) {
	s, err := control.NewSession(runtime.PolicyAll, ringBytes)
	if err != nil {
		return nil, err
	}
	return &recording{session: s, foreign: foreign}, nil
}

// look takes up new processes, decodes ended threads, and notes where quiet ones are; see inline.Segment for how often
// that must be.
func (r *recording) look() {
	as, err := r.session.Areas()
	r.areas = append(r.areas, as...)
	if err != nil && r.err == nil {
		r.err = err
	}
	for _, a := range r.areas {
		for _, t := range a.Threads() {
			if !t.On() {
				continue
			}
			t.Note()
			if t.Gone() && t.Tid != a.Pid() {
				r.take(a, t)
				t.Release()
			}
		}
	}
}

// take decodes what a thread recorded.
func (r *recording) take(a *control.Area, t *control.Thread) {
	s, err := t.Collect(nil)
	if r.foreign {
		s.Anchors, s.End = nil, s.Begin+math.MaxUint32 // times mean nothing
	}
	if err == nil {
		var th thread
		th, err = decode(&s)
		th.pid, th.tid, th.parent, th.modules = a.Pid(), t.Tid, a.Parent(), a.Modules()
		r.ended = append(r.ended, th)
	}
	if err != nil && r.err == nil {
		r.err = err
	}
}

func (r *recording) close() {
	for _, a := range r.areas {
		a.Discard()
	}
	r.session.Disarm()
	r.session.Close()
}

// patience is how long a thread may take to answer a request to stop.
const patience = 20 * time.Millisecond

// threads stops what still runs and decodes all threads. Threads that were too many at once are left out: there is
// nothing to be checked in them.
func (r *recording) threads() ([]thread, error) {
	r.session.Disarm()
	r.look()
	control.StopAll(r.areas, patience)
	for _, a := range r.areas {
		for _, t := range a.Threads() {
			if t.Recorded() {
				r.take(a, t)
			}
		}
	}
	return r.ended, r.err
}

// thread is what is known of one thread when all has ended.
type thread struct {
	pid, tid, parent int
	modules          []control.Module
	complete         bool // the ring holds all that it recorded
	records          uint64
	stats            inline.Stats
	open             []uint32 // low halves of the methods that have not ended, outermost first
	methods          []uint32 // low halves of all that were entered
}

func decode(s *control.Segment) (thread, error) {
	methods := inline.NewMethods(64)
	d := inline.Decoder{Methods: methods}
	decoded, err := d.Decode(&s.Segment, nil)
	if err != nil {
		return thread{}, fmt.Errorf("decoding: %w", err)
	}
	t := thread{complete: s.Complete, records: decoded.Stats.Records, stats: decoded.Stats}
	decoded.Slices(s.Begin, s.End, func(sl *inline.Slice) bool {
		if sl.Flags&inline.CutEnd != 0 {
			t.open = append(t.open, uint32(methods.Row(sl.Method).Addr))
		}
		return true
	})
	slices.Reverse(t.open)
	for i := 1; i < methods.Len(); i++ {
		t.methods = append(t.methods, uint32(methods.Row(uint32(i)).Addr))
	}
	return t, nil
}

// end is how a thread ended its program; mirrors struct end of testdata/end.c.
type end struct {
	Pid, Tid     uint32
	Kind, Caller uint64
}

const (
	endReturned = 0
	endExit     = 1
)

// readEnds reads what testdata/end.c wrote. A file that is not there is empty.
func readEnds(file string) ([]end, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ends := make([]end, len(b)/binary.Size(end{}))
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, ends); err != nil {
		return nil, fmt.Errorf("reading how the program ended: %w", err)
	}
	return ends, nil
}
