package arms

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
	"braid/control"
	"braid/inline"
	"braid/inline/runtime"
)

// braid's stubs, recording.
func init() {
	arm.Register(&arm.Arm{
		Name: "stub-on", Title: "stub, on", Group: result.GroupInline, Order: 1, Points: 2, Quick: true, Workloads: everywhere,
		Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) { return openStub(ctx, env, w) },
	})
}

// leastRing holds what a run of the start-up program records, and is what is used unless more is asked for.
const leastRing = 32 << 20

// unit is what the steps that a round is cut into are multiples of: ten calls of Listing, a row of each of Matrix's tiles.
const unit = 10240

// stubbed is a workload whose stubs record.
type stubbed struct {
	p       *workload.Process
	session *control.Session
	areas   []*control.Area
	whole   bool // a run is a process, with an area of its own
	command bool // the user's: nobody knows its calls
	ring    uint64
	slots   []uint64
}

func openStub(ctx context.Context, env *arm.Env, w arm.Work) (*stubbed, error) {
	s := &stubbed{whole: w.Workload == workload.Startup || w.Workload == workload.Command, command: w.Workload == workload.Command,
		ring: max(env.Ring, leastRing)}
	policy, variant := runtime.PolicyMain, workload.Stub
	if w.Workload == workload.Schedule || s.command {
		policy = runtime.PolicyAll
	}
	if s.command {
		variant = workload.Plain // as the user has built it
	}
	var err error
	if s.session, err = control.NewSession(policy, s.ring); err != nil {
		return nil, err
	}
	s.p, err = env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, Variant: variant, CPU: w.CPU, Aligns: w.Aligns,
		Command: w.Command, Env: []string{s.session.Env()}})
	if err == nil {
		err = s.ready(w)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ready writes each page of the ring once, where that is quickly done: what a page costs at its first use is no part of a
// trace point. Of a command it finds out whether it has stubs.
func (s *stubbed) ready(w arm.Work) error {
	switch {
	case s.command:
		m, err := s.run(workload.Request{Calls: 1})
		if err == nil && m.Recorded == 0 {
			err = &arm.Unavailable{Why: "the command has no stubs", Next: "build it with braid cc"}
		}
		return err
	case slices.Contains(nested, w.Workload):
		r := workload.Request{Calls: int64(s.ring/(2*inline.SlotSize)) + unit}
		if w.Workload == workload.Matrix {
			r.Parameter = 16
		}
		if len(w.Aligns) > 0 {
			r.Align = w.Aligns[0]
		}
		_, err := s.run(r)
		return err
	}
	return nil
}

func (s *stubbed) Run(_ context.Context, r workload.Request) (arm.Measured, error) { return s.run(r) }

func (s *stubbed) run(r workload.Request) (arm.Measured, error) {
	var m arm.Measured
	if s.whole {
		reply, err := s.p.Run(r)
		if err != nil {
			return m, err
		}
		m.Reply = reply
		if m.Recorded, m.Expected, err = s.ended(); err == nil && !s.command {
			m.Expected = 2 * uint64(reply.Calls)
		}
		return m, err
	}
	// A step fits into the ring, so that where the thread stands tells exactly how much it wrote.
	step := int64(s.ring/(2*inline.SlotSize)) / unit * unit
	for r.Calls > 0 {
		part := r
		part.Calls = min(r.Calls, step)
		before, err := s.written()
		if err != nil {
			return m, err
		}
		reply, err := s.p.Run(part)
		if err != nil {
			return m, err
		}
		after, err := s.written()
		if err != nil {
			return m, err
		}
		m.Calls += reply.Calls
		m.WallNS += reply.WallNS
		m.CPUNS += reply.CPUNS
		m.CacheMisses += reply.CacheMisses
		m.Bytes += reply.Bytes
		m.Reply.Recorded += (after - before) / inline.SlotSize
		r.Calls -= part.Calls
		r.Skip += part.Calls
	}
	// Each record of these workloads has one slot: their functions lie below 4 GiB, and nothing comes back into them.
	m.Expected, m.Recorded = 2*uint64(m.Calls), m.Reply.Recorded
	return m, nil
}

// written returns how many bytes the workload's threads have written to their rings so far.
func (s *stubbed) written() (uint64, error) {
	areas, err := s.session.Areas()
	if err != nil {
		return 0, err
	}
	s.areas = append(s.areas, areas...)
	if len(s.areas) != 1 {
		return 0, fmt.Errorf("the workload has %d areas", len(s.areas))
	}
	var n uint64
	for _, t := range s.areas[0].Threads() {
		bytes, _ := t.Position()
		n += bytes
	}
	for what, lost := range s.areas[0].Lost() {
		if lost > 0 {
			return 0, fmt.Errorf("the workload lost %d %s", lost, what)
		}
	}
	return n, nil
}

// ended counts what processes that have ended recorded, and gives their memory back. made is how much they wrote, as far as
// that can be told from what is left.
func (s *stubbed) ended() (recorded, made uint64, err error) {
	areas, err := s.session.Areas()
	if err != nil {
		return 0, 0, err
	}
	s.areas = append(s.areas, areas...)
	left := s.areas[:0]
	for _, a := range s.areas {
		if !a.Left() { // a process that the command left behind
			left = append(left, a)
			continue
		}
		n, lost, e := s.count(a)
		err = errors.Join(err, e)
		recorded += n
		made += n + lost
		a.Discard()
	}
	s.areas = left
	return recorded, made, err
}

// count returns how many entries and exits an area's rings hold, and how much is known to be lost.
func (s *stubbed) count(a *control.Area) (recorded, lost uint64, err error) {
	for _, n := range a.Lost() {
		lost += n
	}
	d := inline.Decoder{Methods: inline.NewMethods(0)}
	for _, t := range a.Threads() {
		if !t.Recorded() {
			continue
		}
		seg, err := t.Collect(s.slots)
		if err != nil {
			return 0, 0, err
		}
		s.slots = seg.Slots
		lost += uint64(seg.DroppedNewest)
		decoded, err := d.Decode(&seg.Segment, nil)
		if err != nil {
			return 0, 0, err
		}
		for _, e := range decoded.Events {
			if e.Kind == inline.KindEntry || e.Kind == inline.KindExit {
				recorded++
			}
		}
	}
	return recorded, lost, nil
}

func (s *stubbed) Facts() map[string]string {
	f := map[string]string{"ring": fmt.Sprintf("%d MiB for each thread", s.ring>>20), "record": "8 bytes"}
	if s.command {
		f["expected"] = "what the rings hold: nobody knows the command's calls"
	}
	return f
}

func (s *stubbed) Close() error {
	var err error
	if s.p != nil {
		err = s.p.Close()
	}
	for _, a := range s.areas {
		a.Close()
	}
	s.session.Close()
	return err
}
