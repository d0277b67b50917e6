package arms

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/workload"
	"braid/control"
	"braid/inline"
	"braid/inline/runtime"
)

// agree checks the probes of a kind against the stubs of a command, if it has any: in one run both record the same functions, and must
// record as much. It returns what the table says about how many events should be expected. It is done once in a study.
func agree(ctx context.Context, env *arm.Env, kind probe.Kind, start workload.Start, targets []target) (says string, err error) {
	key := fmt.Sprintf("agree %s %q", kind, start.Command)
	if says := env.Cache[key]; says != "" {
		return says, nil
	}
	defer func() {
		if err == nil {
			env.Cache[key] = says
		}
	}()
	session, err := control.NewSession(runtime.PolicyAll, max(env.Ring, leastRing))
	if err != nil {
		return "", err
	}
	defer session.Close()
	start.Env = []string{session.Env()}
	p, err := env.Workloads.Start(ctx, start)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	const counted = "what the probes counted: nobody knows the command's calls"
	first, err := stubCounts(session, p, targets)
	if err != nil || len(first.by) == 0 {
		return counted, err
	}
	tracer, err := probe.Open(probe.Options{Kind: kind})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	functions := 0
	for i, t := range targets {
		var sites []probe.Site
		for _, s := range t.sites {
			if first.by[spot{i, s.Address}] > 0 {
				sites = append(sites, s)
			}
		}
		functions += len(sites)
		if len(sites) > 0 {
			if err := tracer.AttachFile(t.copy, sites); err != nil {
				return "", err
			}
		}
	}
	second, err := stubCounts(session, p, targets)
	if err != nil {
		return "", err
	}
	counts, err := tracer.Take()
	if err != nil {
		return "", err
	}
	var stubs uint64
	for at, n := range second.by {
		if first.by[at] > 0 {
			stubs += n
		}
	}
	text := fmt.Sprintf("in one run of %d threads the stubs of %d of these functions recorded %d events, the probes on them %d",
		second.threads, functions, stubs, counts.Events)
	switch {
	case second.lost > 0:
		return fmt.Sprintf("%s; not compared with the stubs, whose rings lost %d records or more", counted, second.lost), nil
	case counts.Events < stubs || counts.Events > stubs+2*second.threads:
		// A thread's first stub makes the thread's ring, and begins again: the probe before it is met twice, entry and return.
		return "", errors.New(text)
	}
	return counted + "; " + text, nil
}

// spot is a function: which of the targets, and its address in that file.
type spot struct {
	target  int
	address uint64
}

// stubEvents are entries and exits that stubs recorded.
type stubEvents struct {
	by      map[spot]uint64
	lost    uint64
	threads uint64
}

// stubCounts runs the command once, and counts what its stubs recorded of the targets' functions.
func stubCounts(session *control.Session, p *workload.Process, targets []target) (c stubEvents, err error) {
	if _, err := p.Run(workload.Request{Calls: 1}); err != nil {
		return c, err
	}
	areas, err := session.Areas()
	if err != nil {
		return c, err
	}
	c.by = map[spot]uint64{}
	for _, a := range areas {
		err = errors.Join(err, c.add(a, targets))
		a.Discard()
		a.Close()
	}
	return c, err
}

func (c *stubEvents) add(a *control.Area, targets []target) error {
	methods, places := inline.NewMethods(0), map[uint32]spot{}
	for _, m := range a.Modules() {
		for i, t := range targets {
			// The kernel calls a file that is gone by then "(deleted)".
			if path := strings.TrimSuffix(m.Path, " (deleted)"); path != t.path && path != t.copy {
				continue
			}
			for _, s := range t.sites {
				places[methods.Add(m.Bias+s.Address)] = spot{i, s.Address}
			}
		}
	}
	for _, n := range a.Lost() {
		c.lost += n
	}
	d := inline.Decoder{Methods: methods}
	for _, t := range a.Threads() {
		if !t.Recorded() {
			continue
		}
		seg, err := t.Collect(nil)
		if err != nil {
			return err
		}
		c.lost += uint64(seg.DroppedNewest)
		if !seg.Complete {
			c.lost++ // and more: the ring went round
		}
		decoded, err := d.Decode(&seg.Segment, nil)
		if err != nil {
			return err
		}
		c.threads++
		decoded.Slices(seg.Begin, seg.End, func(s *inline.Slice) bool {
			at, ok := places[s.Method]
			if ok && s.Flags&(inline.CutStart|inline.Reentered) == 0 {
				c.by[at]++
			}
			if ok && s.Flags&(inline.CutEnd|inline.Unwound|inline.Suspended) == 0 {
				c.by[at]++
			}
			return true
		})
	}
	return nil
}
