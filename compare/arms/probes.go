package arms

import (
	"context"
	"errors"
	"fmt"
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
				workloads := []string{workload.Listing}
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
	if !env.Root {
		return &arm.Unavailable{Why: "the kernel lets only root put probes into programs", Next: "run braid compare as root"}
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
	s := &probing{arm: a, ring: max(env.Ring, minProbeRing), sites: map[int][]probe.Site{}, facts: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.process, err = env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, Variant: a.variant, CPU: w.CPU, Aligns: w.Aligns}); err != nil {
		return nil, err
	}
	find := probe.Entries
	if a.kind == probe.Static {
		find = probe.Statics
	}
	for _, align := range w.Aligns {
		if s.sites[align], err = find(s.process.Path(), s.process.Functions(align)); err != nil {
			return nil, err
		}
	}
	if s.tracer, err = probe.Open(probe.Options{Kind: a.kind, Record: a.record, RingBytes: s.ring}); err != nil {
		return nil, err
	}
	return s, s.describe(w.Aligns)
}

// minProbeRing has room for some ten thousand records, far more than a warm-up makes.
const minProbeRing = 1 << 20

// warmCalls make what comes with the first events: the kernel writes a call in place of a nop, and maps pages.
const warmCalls = 20

// probing is the session of an arm of probes. The probes are in the process only while it runs: those of one arm would make
// another's slower, because all that are at the same place of the same file share a breakpoint.
type probing struct {
	arm     probeArm
	ring    uint64
	process *workload.Process
	tracer  *probe.Tracer
	sites   map[int][]probe.Site // by alignment
	facts   map[string]string
	looked  bool
}

// Run measures in parts if the ring buffer is too small for all records at once, and adds them up.
func (s *probing) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	sites, ok := s.sites[r.Align]
	if !ok {
		return m, fmt.Errorf("the alignment %d was not asked for", r.Align)
	}
	if err := s.tracer.Attach(s.process.PID(), s.process.Path(), sites); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.tracer.Detach()) }()

	warm := r
	warm.Calls = warmCalls
	if err := s.part(warm, &m); err != nil {
		return arm.Measured{}, err
	}
	if m.Recorded != m.Expected { // of no use to go on
		return m, nil
	}
	m = arm.Measured{}
	if err := s.look(sites); err != nil {
		return m, err
	}
	most := r.Calls
	if s.arm.record {
		// Whole tens, which no workload rounds up.
		most = int64(s.ring/probe.RecordBytes) / int64(s.arm.kind.Points()) / 10 * 10
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

// describe says what is known before anything has run. The sites at all alignments have the same instruction.
func (s *probing) describe(aligns []int) error {
	kernel, err := probe.KernelVersion()
	if err != nil {
		return err
	}
	site := s.sites[aligns[0]][0]
	class, err := probe.Classify(runtime.GOARCH, site.Code, site.Address, kernel)
	if err != nil {
		return err
	}
	s.state(site, class)
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

func (s *probing) state(site probe.Site, class probe.Class) {
	text := site.Text(runtime.GOARCH)
	s.facts[arm.FactSite], s.facts[arm.FactClass] = text, class.Describe(text)
}

// look corrects the class by what the kernel did after the first events: versions of it differ, also by their patches.
func (s *probing) look(sites []probe.Site) error {
	if s.looked {
		return nil
	}
	s.looked = true
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
		s.state(sites[0], probe.Call)
	case atEntries && stepping:
		s.state(sites[0], probe.Stepped)
	case atEntries, s.facts[arm.FactClass] == probe.Call.Describe(s.facts[arm.FactSite]):
		s.state(sites[0], probe.Emulated)
	}
	return nil
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
	return errors.Join(errs...)
}
