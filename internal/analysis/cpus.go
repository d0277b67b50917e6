package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"braid/internal/kevent"
	"braid/internal/timeline"
)

const (
	maxOccupations = 1 << 16
	maxComms       = 1 << 14
	mostWho        = 3
)

// Who is a thread that had to do with a wait.
type Who struct {
	Tid  uint32 `json:"tid,omitempty"` // 0: no thread, or none that is known
	Name string `json:"name"`
	Ns   int64  `json:"ns"` // of the wait
	// Method is what the waker was in when it ended the longest of the waits; empty if that is not known.
	Method string `json:"method,omitempty"`

	foreign bool // not of the moment's process
}

// occupation is a time that a thread had a CPU.
type occupation struct {
	from, to int64
	tid      uint32
	cpu      uint16
}

// cpus is who had the CPUs during the moment, and how threads are called.
type cpus struct {
	from, to int64
	list     []occupation
	cut      bool // there was more than maxOccupations
	comms    map[uint32]string
	current  map[uint16]occupation // to is 0
}

const (
	tidIdle    = 0
	tidUnknown = ^uint32(0)
)

// loadCPUs reads the kernel events once more, for who had which CPU from one time to another.
func loadCPUs(t *timeline.Trace, from, to int64) (*cpus, error) {
	c := &cpus{from: from, to: to, comms: make(map[uint32]string), current: make(map[uint16]occupation)}
	for _, a := range t.Kernel.Threads() {
		if len(c.comms) < maxComms && a.Name != "" {
			c.comms[a.Tid] = a.Name
		}
	}
	s := timeline.Sorter{Deliver: c.event, MaxTime: uint64(to) + 1_000_000_000}
	for chunk, err := range t.File.Events() {
		if err != nil {
			return nil, fmt.Errorf("read kernel events: %w", err)
		}
		if err := s.Push(chunk); err != nil {
			return nil, err
		}
	}
	s.Flush()
	for cpu := range c.current {
		c.occupied(cpu, to)
	}
	slices.SortFunc(c.list, func(a, b occupation) int { return cmp.Compare(a.from, b.from) })
	return c, nil
}

func (c *cpus) event(h kevent.Header, body []byte) {
	if h.Kind != kevent.KindSwitch {
		return
	}
	e, t := kevent.DecodeSwitch(body), int64(h.Time)
	next := tidUnknown // an event without any of these flags does not tell
	const prev, nexts = kevent.FlagPrevTarget | kevent.FlagPrevServer, kevent.FlagNextTarget | kevent.FlagNextServer
	if h.Flags&(prev|nexts) != 0 {
		next = e.NextTid
		if name := kevent.Comm(&e.NextComm); next != tidIdle && len(name) > 0 && len(c.comms) < maxComms && c.comms[next] == "" {
			c.comms[next] = string(name)
		}
	}
	if _, ok := c.current[h.CPU]; !ok && h.Flags&prev != 0 {
		c.current[h.CPU] = occupation{from: minTime, tid: h.Tid, cpu: h.CPU}
	}
	c.occupied(h.CPU, t)
	c.current[h.CPU] = occupation{from: t, tid: next, cpu: h.CPU}
}

// occupied ends what a CPU's thread had of it, at t.
func (c *cpus) occupied(cpu uint16, t int64) {
	o, ok := c.current[cpu]
	if !ok || o.from >= c.to || t <= c.from || t <= o.from {
		return
	}
	if len(c.list) >= maxOccupations {
		c.cut = true
		return
	}
	o.to = t
	c.list = append(c.list, o)
}

// holders says who had the CPU while a thread waited for it. What is not known, or nobody's, is one entry without a thread.
func (c *cpus) holders(pieces []piece) []Who {
	sum := make(map[uint32]int64)
	for i := range pieces {
		sum[0] += pieces[i].to - pieces[i].from
	}
	for i := range c.list {
		o := &c.list[i]
		if o.tid == tidUnknown || o.tid == tidIdle {
			continue
		}
		for j := range pieces {
			p := &pieces[j]
			if p.from >= o.to { // they are in order of time
				break
			}
			if shared := min(p.to, o.to) - max(p.from, o.from); p.cpu == o.cpu && shared > 0 {
				sum[o.tid] += shared
				sum[0] -= shared
			}
		}
	}
	return c.who(sum)
}

// who names the threads of a sum, those with the most first.
func (c *cpus) who(sum map[uint32]int64) []Who {
	var all []Who
	for tid, ns := range sum {
		if ns <= 0 {
			continue
		}
		all = append(all, Who{Tid: tid, Name: c.comms[tid], Ns: ns})
	}
	slices.SortFunc(all, func(a, b Who) int { return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Tid, b.Tid)) })
	return all[:min(len(all), mostWho)]
}
