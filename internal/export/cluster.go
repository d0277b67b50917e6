package export

import (
	"fmt"

	"braid/internal/perfetto"
	"braid/internal/timeline"
)

// placeTrack is a track below a thread for times in which a better processor was idle.
const placeTrack = "better processor idle"

// mostCPUs bounds the processors that are described, far above what phones have.
const mostCPUs = 1 << 10

// processors describes the machine's processors, and how fast they ran when recording began.
func (e *exporter) processors() {
	var list []perfetto.CPUInfo
	for i := range e.tr.Meta.Processors {
		c := &e.tr.Meta.Processors[i]
		if c.ID < 0 || c.ID >= mostCPUs {
			continue
		}
		for len(list) <= c.ID {
			list = append(list, perfetto.CPUInfo{})
		}
		name := c.Model
		if c.Cluster != "" && c.Cluster != "all" {
			name = fmt.Sprintf("%s (%s)", c.Model, c.Cluster)
		}
		list[c.ID] = perfetto.CPUInfo{Name: name, Capacity: c.Capacity}
		if c.KHz > 0 && c.KHz < 1<<32 {
			e.w.Frequency(c.ID, e.begin, uint32(c.KHz))
		}
	}
	if len(list) > 0 {
		e.w.CPUs(list)
	}
}

// places writes, for each thread with method records, when it ran or waited while a better processor was idle.
func (e *exporter) places() {
	machine := e.tr.Kernel.Machine()
	cpu, allowed := e.w.Key("cpu"), e.w.Key("allowed")
	for _, a := range e.tr.Kernel.Threads() {
		track := e.track(a.Tgid, a.Tid)
		if track == nil {
			continue
		}
		lanes := e.w.Lanes(track, placeTrack)
		for i := 0; i < len(a.Places); {
			p := a.Places[i]
			for i++; i < len(a.Places) && goesOn(&p, &a.Places[i]); i++ {
				p.End = a.Places[i].End
			}
			if p.Flags&timeline.BetterIdle == 0 {
				continue
			}
			name := "waits, another one idle"
			if p.Flags&timeline.Waits == 0 {
				name = fmt.Sprintf("on %s, stronger one idle", machine.Name(int(p.Rank)))
			}
			lanes.Slice(uint64(p.Start), uint64(p.End), e.w.Name(name), perfetto.Uint(cpu, uint64(p.CPU)),
				perfetto.Bool(allowed, p.Flags&timeline.BetterAllowed != 0))
		}
	}
}

// goesOn says whether a place is the same as the one before it, but for the frequency.
func goesOn(p, next *timeline.Place) bool {
	const moved = timeline.Moved | timeline.MovedCluster
	return next.Start == p.End && next.CPU == p.CPU && next.Flags&^moved == p.Flags&^moved && next.Flags&moved == 0
}
