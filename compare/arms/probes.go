package arms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/result"
	"braid/compare/workload"
)

// The kernel's probes, each way of attaching on each class of instruction, counting and writing records. Names are
// KIND-MODE-SITE, so that what differs only in the site differs behind the last hyphen.
func init() {
	kinds := []struct {
		kind  probe.Kind
		title string
	}{
		{probe.Entry, "uprobe"},
		{probe.Return, "uretprobe"},
		{probe.Pair, "uprobe+uretprobe"},
		{probe.Multi, "uprobe_multi"},
		{probe.Session, "uprobe session"},
		{probe.Static, "USDT"},
	}
	// What is shown in a hurry: the best, the usual and the worst, as a tracer would use them. Some of them with matrices too,
	// whose functions begin in the same way.
	quick := []string{"session-record-nop5", "pair-record-nop5", "pair-record-push", "pair-record-other", "usdt-record"}
	matrix := []string{"session-record-nop5", "pair-record-other", "usdt-record"}
	order := 0
	for _, k := range kinds {
		for _, record := range []bool{false, true} {
			variants := []workload.Variant{workload.Nop5, workload.Push, workload.Other}
			if k.kind == probe.Static {
				variants = []workload.Variant{workload.USDT}
			}
			for _, v := range variants {
				mode := map[bool]string{false: "count", true: "record"}[record]
				name := fmt.Sprintf("%s-%s-%s", k.kind, mode, v)
				if k.kind == probe.Static {
					name = fmt.Sprintf("%s-%s", k.kind, mode)
				}
				a := probeArm{kind: k.kind, record: record, variant: v}
				workloads := []string{workload.Listing, workload.Call}
				if slices.Contains(matrix, name) {
					workloads = append(workloads, workload.Matrix)
				}
				order++
				arm.Register(&arm.Arm{
					Name: name, Title: k.title + ", " + mode, Group: result.GroupProbe, Order: order, Points: float64(k.kind.Points()),
					Workloads: workloads, Quick: slices.Contains(quick, name),
					Check: a.check, Open: a.open,
				})
			}
		}
	}
}

// probeArm is a kind of probes in a variant of the workloads.
type probeArm struct {
	kind    probe.Kind
	record  bool
	variant workload.Variant
}

func (a probeArm) check(_ context.Context, env *arm.Env) error {
	if err := rooted(env); err != nil {
		return err
	}
	err := probe.Supported(a.kind)
	switch {
	case errors.Is(err, probe.ErrNoKind):
		return &arm.Unavailable{Why: err.Error()}
	case errors.Is(err, os.ErrPermission):
		return &arm.Unavailable{Why: "the kernel does not let this user load eBPF programs: " + err.Error(), Next: "run braid compare as root, outside of containers"}
	}
	return err
}

func (a probeArm) open(ctx context.Context, env *arm.Env, w arm.Work) (_ arm.Session, err error) {
	s := &probing{arm: a, workload: w.Workload, ring: min(max(env.Ring, leastProbeRing), mostProbeRing),
		sites: map[int][]probe.Site{}, warm: map[int]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp(env.Dir, "probes-"); err != nil {
		return nil, err
	}
	if s.process, err = alone(ctx, env, w, a.variant, s.dir); err != nil {
		return nil, err
	}
	if s.tracer, err = probe.Open(probe.Options{Kind: a.kind, Record: a.record, RingBytes: s.ring}); err != nil {
		return nil, err
	}
	find := probe.Entries
	if a.kind == probe.Static {
		find = probe.Statics
	}
	var all []probe.Site
	for _, align := range w.Aligns {
		if s.sites[align], err = find(s.process.Path(), s.process.Functions(align)); err != nil {
			return nil, err
		}
		all = append(all, s.sites[align]...)
	}
	if err := s.tracer.Attach(s.process.PID(), s.process.Path(), all); err != nil {
		return nil, err
	}
	return s, s.describe(all[0])
}

// Bounds of the ring buffer: room for many more records than a sample makes, and not so much that all arms together take the
// memory of a phone. What does not fit is measured in parts.
const (
	leastProbeRing = 1 << 20
	mostProbeRing  = 8 << 20
)

// warmCalls make what comes with the first events: the kernel writes a call in place of a nop, and maps pages.
const warmCalls = 20

// probing is the session of an arm of probes. They stay in its process from its start to its end, because the kernel takes up
// to tenths of a second to take them out. They slow nobody else down: the process has the program in a file of its own, and the
// kernel keeps breakpoints by file.
type probing struct {
	arm      probeArm
	workload string
	ring     uint64
	dir      string
	process  *workload.Process
	tracer   *probe.Tracer
	sites    map[int][]probe.Site // by alignment
	facts    map[string]string
	warm     map[int]bool // alignments whose probes have been hit
}

// Run measures in parts if the ring buffer is too small for all records at once, and adds them up.
func (s *probing) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	if len(s.sites[r.Align]) == 0 {
		return m, fmt.Errorf("the alignment %d was not asked for", r.Align)
	}
	if !s.warm[r.Align] {
		first := r
		first.Calls = warmCalls
		if err := s.part(first, &m); err != nil || m.Recorded != m.Expected { // of no use to go on
			return m, err
		}
		if err := s.look(s.sites[r.Align]); err != nil {
			return m, err
		}
		s.warm[r.Align] = true
		m = arm.Measured{}
	}
	most := r.Calls
	if s.arm.record {
		most = int64(s.ring/probe.RecordBytes) / int64(s.arm.kind.Points())
		most -= most % s.unit(r)
	}
	for left := r.Calls; left > 0; left -= most {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		part := r
		part.Calls = min(left, most)
		if err := s.part(part, &m); err != nil {
			return m, err
		}
	}
	return m, nil
}

// unit is what the workload rounds the number of calls up to.
func (s *probing) unit(r workload.Request) int64 {
	if s.workload == workload.Matrix {
		return max(1, r.Parameter) // a side of a tile
	}
	return 10 // calls within each other
}

// part makes some calls, and adds them and their events to what was measured.
func (s *probing) part(r workload.Request, m *arm.Measured) error {
	reply, err := s.process.Run(r)
	if err != nil {
		return err
	}
	counts, err := s.tracer.Take()
	if err != nil {
		return err
	}
	if counts.Dropped != 0 {
		return fmt.Errorf("%d calls did not fit into a ring buffer of %d bytes: %d records were lost", reply.Calls, s.ring, counts.Dropped)
	}
	m.Calls += reply.Calls
	m.WallNS += reply.WallNS
	m.CPUNS += reply.CPUNS
	m.CacheMisses += reply.CacheMisses
	m.Bytes += reply.Bytes
	m.Expected += uint64(reply.Calls) * uint64(s.arm.kind.Points())
	m.Recorded += counts.Events
	return nil
}

// describe says what is known before anything has run. All sites have the same instruction.
func (s *probing) describe(site probe.Site) error {
	kernel, err := probe.KernelVersion()
	if err != nil {
		return err
	}
	if s.facts, err = seat(site); err != nil {
		return err
	}
	if s.arm.kind == probe.Static {
		s.facts["attached by"] = map[bool]string{true: "uprobe_multi", false: "perf events"}[probe.Supported(probe.Multi) == nil]
	} else if s.arm.kind != probe.Entry {
		s.facts["return"] = probe.Returns(runtime.GOARCH, kernel)
	}
	if s.arm.record {
		s.facts["ring"] = fmt.Sprintf("%d bytes", s.ring)
	}
	return nil
}

// look corrects the class by what the kernel did after the first events: versions of it differ, also by their patches.
func (s *probing) look(sites []probe.Site) error {
	states, stepping, err := probe.Look(s.process.PID(), s.process.Path(), sites)
	if err != nil {
		return err
	}
	s.facts["seen"] = string(states[0])
	// Return probes have the room for stepping as well.
	atEntries := s.arm.kind == probe.Entry || s.arm.kind == probe.Static
	switch {
	case states[0] == probe.Untouched:
		return errors.New("events come from a probe that is not there")
	case states[0] == probe.Called:
		s.correct(sites[0], probe.Call)
	case atEntries && stepping:
		s.correct(sites[0], probe.Stepped)
	case atEntries, s.facts[arm.FactClass] == probe.Call.Describe(s.facts[arm.FactSite]):
		s.correct(sites[0], probe.Emulated)
	}
	return nil
}

func (s *probing) correct(site probe.Site, class probe.Class) {
	maps.Copy(s.facts, seatOf(site, class))
}

func (s *probing) Facts() map[string]string { return s.facts }

// Close takes the probes out first, so that the process ends without them.
func (s *probing) Close() error {
	var errs []error
	if s.tracer != nil {
		errs = append(errs, s.tracer.Close())
	}
	if s.process != nil {
		errs = append(errs, s.process.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
