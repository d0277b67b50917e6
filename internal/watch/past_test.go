package watch

import (
	"testing"

	"braid/internal/kevent"
	"braid/internal/tracefile"
)

func switchEvent(at uint64, cpu uint16, prev, next uint32) []byte {
	return kevent.AppendSwitch(nil, kevent.Header{Time: at, CPU: cpu, Tid: prev}, kevent.Switch{PrevTgid: prev, NextTgid: next, NextTid: next})
}

func TestPastKeepsSecondsAndBytes(t *testing.T) {
	p := &past{keep: 1000, limit: 10 * len(switchEvent(0, 0, 1, 2))}
	for at := uint64(1); at <= 100; at++ {
		p.add(at*100, switchEvent(at*100, 0, 1, 2), 1)
	}
	all, dropped := p.take()
	if len(all) != 10 || dropped != 90 { // the limit came before the time
		t.Fatalf("%d batches, %d dropped", len(all), dropped)
	}
	p.limit = 1 << 20
	for at := uint64(101); at <= 200; at++ {
		p.add(at*100, switchEvent(at*100, 0, 1, 2), 1)
	}
	now, dropped := p.take()
	if len(now) != 11 || dropped != 90 { // 19000 to 20000
		t.Fatalf("%d batches, %d dropped", len(now), dropped)
	}
	if h, _, _, err := kevent.Next(now[0]); err != nil || h.Time != 19000 {
		t.Fatalf("the oldest is of %d: %v", h.Time, err)
	}
	// What a flush has taken stays, though the buffer has moved on.
	for i, b := range all {
		if h, _, _, err := kevent.Next(b); err != nil || h.Time != uint64(91+i)*100 {
			t.Fatalf("a batch that was taken now begins with %d: %v", h.Time, err)
		}
	}
	p.add(1e6, nil, 0)
	if p.size() != 0 {
		t.Fatalf("%d bytes are left", p.size())
	}
}

func TestFilterKeepsOneProcess(t *testing.T) {
	const ours, other, third = 10, 20, 30
	var all, want []byte
	add := func(mine bool, b []byte) {
		all = append(all, b...)
		if mine {
			want = append(want, b...)
		}
	}
	add(false, switchEvent(1, 0, other, third))
	add(true, switchEvent(2, 0, other, ours))
	add(true, switchEvent(3, 0, ours, other))   // gives way
	add(false, switchEvent(4, 1, other, third)) // on another CPU
	add(true, switchEvent(5, 0, other, third))  // how long the other had it
	add(false, switchEvent(6, 0, third, other)) // no more
	add(false, kevent.AppendFork(nil, kevent.Header{Time: 7, Tid: 21}, kevent.Fork{Tgid: other}))
	add(true, kevent.AppendFork(nil, kevent.Header{Time: 7, Tid: 11}, kevent.Fork{Tgid: ours}))
	add(true, kevent.AppendMigrate(nil, kevent.Header{Time: 8, Tid: 11}, kevent.Migrate{}))
	add(false, kevent.AppendMigrate(nil, kevent.Header{Time: 8, Tid: 21}, kevent.Migrate{}))
	add(true, kevent.AppendFreq(nil, kevent.Header{Time: 9}, kevent.Freq{}))
	add(false, kevent.AppendFsync(nil, kevent.Header{Time: 10, Tid: 20}, kevent.Fsync{Tgid: other}))
	add(true, kevent.AppendFsync(nil, kevent.Header{Time: 10, Tid: 10}, kevent.Fsync{Tgid: ours}))
	add(false, kevent.AppendRqIssue(nil, kevent.Header{Time: 11}, kevent.Rq{OwnerPid: other}))
	add(true, kevent.AppendRqComplete(nil, kevent.Header{Time: 12}, kevent.Rq{OwnerPid: ours}))
	add(true, kevent.AppendLost(nil, kevent.Header{Time: 13}, kevent.Lost{Count: 1}))
	got, n, err := newFilter(ours, []int{10}).copy([][]byte{all}, nil)
	if err != nil || string(got) != string(want) || n != 9 {
		t.Fatalf("%d events, %d bytes of %d: %v", n, len(got), len(want), err)
	}
	if _, _, err := newFilter(ours, nil).copy([][]byte{all[:len(all)-1]}, nil); err == nil {
		t.Fatal("half an event is an error")
	}
}

// TestFilterFollowsBinderCalls: of others, a trace has what they did for calls of its process, and no more.
func TestFilterFollowsBinderCalls(t *testing.T) {
	const ours, server, helper, third = 10, 20, 30, 40
	var all, want []byte
	n := uint64(0)
	add := func(mine bool, b []byte) {
		all = append(all, b...)
		if mine {
			want = append(want, b...)
			n++
		}
	}
	h := func(tid uint32, flags uint8) kevent.Header { return kevent.Header{Time: 1, Tid: tid, Flags: flags} }
	send := func(id int32, from, to, inReplyTo uint32) []byte {
		b := kevent.BinderTransaction{DebugID: id, Tgid: from, ToTgid: to, InReplyTo: int32(inReplyTo)}
		if inReplyTo != 0 {
			b.Reply = 1
		}
		return kevent.AppendBinderTransaction(nil, h(from, 0), b)
	}
	receive := func(id int32, tid uint32) []byte {
		return kevent.AppendBinderReceived(nil, h(tid, 0), kevent.BinderReceived{DebugID: id, Tgid: tid})
	}
	wake := func(tid, waker uint32) []byte {
		return kevent.AppendWaking(nil, h(tid, kevent.FlagServer), kevent.Waking{Tgid: tid, WakerTgid: waker, WakerTid: waker})
	}
	into := func(tid uint32) []byte {
		return kevent.AppendSwitch(nil, h(0, kevent.FlagNextServer), kevent.Switch{NextTid: tid, NextTgid: tid})
	}
	sleep := func(tid uint32) []byte {
		return kevent.AppendSyscallWait(nil, h(tid, 0), kevent.SyscallWait{Tgid: tid})
	}

	add(false, send(1, third, server, 0)) // another watched process calls the same server
	add(false, wake(server, third))
	add(false, into(server))
	add(false, receive(1, server))
	add(false, sleep(server))
	add(false, send(2, server, third, 1))
	add(false, receive(2, third))
	add(true, send(3, ours, server, 0))
	add(true, wake(server, ours))
	add(true, into(server))
	add(true, receive(3, server))
	add(true, send(4, server, helper, 0))
	add(false, into(helper)) // before it is known whose call it is for
	add(true, receive(4, helper))
	add(true, into(helper))
	add(true, sleep(helper))
	add(true, send(5, helper, server, 4))
	add(true, receive(5, server))
	add(true, send(6, server, ours, 3))
	add(true, receive(6, ours))
	add(true, kevent.AppendBinderDone(nil, h(server, 0), kevent.BinderDone{DebugID: 3, Tgid: server}))
	add(false, kevent.AppendBinderDone(nil, h(server, 0), kevent.BinderDone{DebugID: 1, Tgid: server}))
	add(true, send(7, third, ours, 0)) // is called itself
	add(true, receive(7, ours))
	add(true, send(8, ours, third, 7))
	add(true, receive(8, third))
	add(false, sleep(third)) // it only called
	got, events, err := newFilter(ours, []int{10}).copy([][]byte{all}, nil)
	if err != nil || string(got) != string(want) || events != n {
		t.Fatalf("%d events, want %d: %v", events, n, err)
	}
}

// However long the daemon runs, samples are few, dense where they are new, and the oldest stays.
func TestClockThins(t *testing.T) {
	var c clock
	const days = 3
	for s := uint64(0); s < days*86400; s++ {
		c.samples = append(c.samples, tracefile.ClockSample{BootNs: s * 1e9})
		if s%256 == 0 {
			c.thin(s * 1e9)
		}
	}
	now := c.samples[len(c.samples)-1].BootNs
	c.thin(now)
	if len(c.samples) > 2000 || c.samples[0].BootNs != 0 {
		t.Fatalf("%d samples from %d on", len(c.samples), c.samples[0].BootNs)
	}
	for i, s := range c.samples[1:] {
		gap := s.BootNs - c.samples[i].BootNs
		switch age := now - s.BootNs; {
		case gap == 0, gap > 1300e9, age < clockMiddle-1300e9 && gap > 25e9, age < clockDense-25e9 && gap > 1e9:
			t.Fatalf("a gap of %d s, %d s ago", gap/1e9, age/1e9)
		}
	}
}
