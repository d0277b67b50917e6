package watch

import (
	"sync"

	"braid/internal/counter"
	"braid/internal/kevent"
	"braid/internal/tracefile"
)

// past holds the kernel events of the last seconds. They come in batches and go in batches: what is older than keep, or
// more than limit bytes, is dropped from the old end. Its methods may be called from any goroutine.
type past struct {
	keep  uint64 // ns
	limit int    // bytes

	mu      sync.Mutex
	batches []batch
	bytes   int
	dropped uint64   // events that went because of limit before they were keep old
	free    [][]byte // buffers of dropped batches
}

// batch is what one reading of the kernel's ring brought. Its bytes do not change until it is dropped.
type batch struct {
	newest uint64 // CLOCK_BOOTTIME ns, when it was read
	b      []byte
	events int
	held   bool // a flush has taken it: its buffer is not used again
}

// add takes over a copy of b, which holds whole events.
func (p *past) add(now uint64, b []byte, events int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b) > 0 {
		var to []byte
		if n := len(p.free); n > 0 && cap(p.free[n-1]) >= len(b) {
			to, p.free = p.free[n-1][:0], p.free[:n-1]
		}
		p.batches = append(p.batches, batch{newest: now, b: append(to, b...), events: events})
		p.bytes += len(b)
	}
	for len(p.batches) > 0 {
		old := &p.batches[0]
		late := old.newest+p.keep < now
		if !late && p.bytes <= p.limit {
			break
		}
		if !late {
			p.dropped += uint64(old.events)
		}
		p.bytes -= len(old.b)
		if !old.held && len(p.free) < 4 {
			p.free = append(p.free, old.b)
		}
		p.batches = append(p.batches[:0], p.batches[1:]...)
	}
}

// take returns what is there, oldest first. The slices stay as they are.
func (p *past) take() (all [][]byte, dropped uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.batches {
		p.batches[i].held = true
		all = append(all, p.batches[i].b)
	}
	return all, p.dropped
}

// size is how many bytes are held.
func (p *past) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// filter chooses the events that belong into the trace of one process: those of its own threads, and of the whole system. A
// trace holds nothing of other processes but their names where they took turns with this one's threads, and what they did
// for its binder calls.
type filter struct {
	partners
	threads map[uint32]bool
	follow  map[uint16]bool // CPUs on which the process has just given way: the next switch ends the other's turn
}

func newFilter(pid int, tids []int) *filter {
	f := &filter{partners: newPartners(uint32(pid)), threads: map[uint32]bool{}, follow: map[uint16]bool{}}
	for _, t := range tids {
		f.threads[uint32(t)] = true
	}
	return f
}

func (f *filter) concerns(h kevent.Header, body []byte) bool {
	switch h.Kind {
	case kevent.KindFreq, kevent.KindIdle, kevent.KindLost:
		return true
	case kevent.KindSwitch:
		s := kevent.DecodeSwitch(body)
		ours := s.PrevTgid == f.pid || s.NextTgid == f.pid
		after := f.follow[h.CPU]
		f.follow[h.CPU] = s.PrevTgid == f.pid
		return f.switched(h, s) || ours || after
	case kevent.KindWaking:
		w := kevent.DecodeWaking(body)
		return w.Tgid == f.pid || f.woken(h, w)
	case kevent.KindFork:
		if kevent.DecodeFork(body).Tgid != f.pid {
			return false
		}
		f.threads[h.Tid] = true
		return true
	case kevent.KindExec:
		return kevent.DecodeExec(body).Tgid == f.pid
	case kevent.KindExit:
		return kevent.DecodeExit(body).Tgid == f.pid
	case kevent.KindRename:
		return kevent.DecodeRename(body).Tgid == f.pid
	case kevent.KindRqIssue, kevent.KindRqComplete:
		return kevent.DecodeRq(body).OwnerPid == f.pid
	case kevent.KindFsync:
		return kevent.DecodeFsync(body).Tgid == f.pid
	case kevent.KindMajorFault:
		return kevent.DecodeMajorFault(body).Tgid == f.pid
	case kevent.KindReclaim:
		return kevent.DecodeReclaim(body).Tgid == f.pid
	case kevent.KindBinderTransaction:
		return f.sent(h, kevent.DecodeBinderTransaction(body))
	case kevent.KindBinderReceived:
		return f.received(h, kevent.DecodeBinderReceived(body))
	case kevent.KindBinderDone:
		return f.done(kevent.DecodeBinderDone(body))
	}
	return f.threads[h.Tid] || f.servers[h.Tid]
}

// copy appends the events that concern the process to buf.
func (f *filter) copy(batches [][]byte, buf []byte) (out []byte, events uint64, err error) {
	for _, b := range batches {
		for len(b) > 0 {
			h, body, rest, err := kevent.Next(b)
			if err != nil {
				return buf, events, err
			}
			if f.concerns(h, body) {
				buf = append(buf, b[:len(b)-len(rest)]...)
				events++
			}
			b = rest
		}
	}
	return buf, events, nil
}

// clock relates the counter to CLOCK_BOOTTIME over the whole time that a ring may reach back. Samples get sparser as they
// get older: what lies between two of them is a straight line but for what NTP slews.
type clock struct {
	samples []tracefile.ClockSample
}

// The newest minute is kept whole, then one sample in ten seconds, and beyond an hour one in ten minutes, 4096 in all:
// four weeks.
const (
	clockDense  = 60e9
	clockMiddle = 3600e9
	clockMax    = 4096
)

// take adds a sample of now.
func (c *clock) take() error {
	s, err := counter.Take()
	if err != nil {
		return err
	}
	c.samples = append(c.samples, tracefile.ClockSample{Before: s.Before, After: s.After, BootNs: s.Boottime})
	if len(c.samples)%256 == 0 {
		c.thin(s.Boottime)
	}
	return nil
}

func (c *clock) thin(now uint64) {
	kept := c.samples[:1] // the oldest stays, or what is before the next would have no time
	for _, s := range c.samples[1:] {
		gap := s.BootNs - kept[len(kept)-1].BootNs
		switch age := now - s.BootNs; {
		case age > clockMiddle && gap < 600e9, age > clockDense && gap < 10e9:
			continue
		}
		kept = append(kept, s)
	}
	if len(kept) > clockMax {
		kept = append(kept[:0], kept[len(kept)-clockMax:]...)
	}
	c.samples = kept
}
