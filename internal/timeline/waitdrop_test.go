package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"braid/internal/kevent"
)

// world makes binder events of threads that call each other at random, and knows what happened.
type world struct {
	rng    *rand.Rand
	now    int64
	ids    int32
	events [][]byte
	truth  map[int32]*Transaction // by id, with Within
	idle   []uint32               // threads that wait for calls
}

func (w *world) pass() int64 {
	w.now += 1 + w.rng.Int64N(20)
	return w.now
}

func (w *world) header(tid uint32) kevent.Header {
	return kevent.Header{Time: uint64(w.now), Tid: tid, CPU: uint16(tid % 4)}
}

func (w *world) add(b []byte) { w.events = append(w.events, b) }

// call lets a thread call another one that is idle, or the one that waits for it; nested calls follow. It ends before the
// reply at random, if nobody is around it.
func (w *world) call(from uint32, within *Transaction, depth int) {
	w.ids++
	x := &Transaction{ID: w.ids, From: from, FromPid: process(from), Code: w.rng.Uint32N(9), Within: within}
	w.truth[x.ID] = x
	if w.rng.IntN(4) == 0 {
		x.Flags = kevent.BinderOneWay
	}
	var to uint32
	back := within != nil && w.rng.IntN(4) == 0 && !x.OneWay()
	if back {
		to = within.From
	} else if len(w.idle) > 0 {
		i := w.rng.IntN(len(w.idle))
		to = w.idle[i]
		w.idle = slices.Delete(w.idle, i, i+1)
	}
	x.Sent = w.pass()
	w.add(kevent.AppendBinderTransaction(nil, w.header(from), kevent.BinderTransaction{
		DebugID: x.ID, Tgid: process(from), ToTgid: process(to), Code: x.Code, Flags: x.Flags}))
	if to == 0 {
		return // it fails
	}
	x.Received, x.To, x.ToPid = w.pass(), to, process(to)
	w.add(kevent.AppendBinderReceived(nil, w.header(to), kevent.BinderReceived{DebugID: x.ID, Tgid: process(to)}))
	for range w.rng.IntN(3) {
		if depth < 4 {
			w.call(to, x, depth+1)
		}
	}
	if depth == 0 && w.rng.IntN(30) == 0 {
		return // the recording ends before the reply: neither thread does anything more
	}
	x.Replied = w.pass()
	if x.OneWay() {
		w.add(kevent.AppendBinderDone(nil, w.header(to), kevent.BinderDone{DebugID: x.ID, Tgid: process(to)}))
	} else {
		w.ids++
		x.ReplyID = w.ids
		w.add(kevent.AppendBinderTransaction(nil, w.header(to), kevent.BinderTransaction{
			DebugID: x.ReplyID, Tgid: process(to), ToTgid: process(from), ToTid: from, InReplyTo: x.ID, Reply: 1}))
		x.Done = w.pass()
		w.add(kevent.AppendBinderReceived(nil, w.header(from), kevent.BinderReceived{DebugID: x.ReplyID, Tgid: process(from)}))
	}
	if !back {
		w.idle = append(w.idle, to)
	}
}

// TestBinderDrops: whatever is missing, nothing is joined that did not belong together.
func TestBinderDrops(t *testing.T) {
	var whole, partial, open int
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 26))
		w := &world{rng: rng, truth: make(map[int32]*Transaction), idle: []uint32{41, 42, 43, 44, 45, 46}}
		for range 20 {
			w.call(1+rng.Uint32N(5), nil, 0)
			if len(w.idle) == 0 {
				break
			}
		}
		end := w.now + 100
		drops := 0.0
		if seed%3 > 0 {
			drops = rng.Float64() / 2
		}
		k := NewKernel(KernelOptions{End: end}, nil)
		for _, e := range w.events {
			if rng.Float64() >= drops {
				if err := k.Push(e); err != nil {
					t.Fatal(err)
				}
				continue
			}
			h, _, _, _ := kevent.Next(e)
			lost := kevent.Lost{SinceNs: h.Time, Count: 1}
			copy(lost.Name[:], "kernel_ring_full_"+h.Kind.String())
			if err := k.Push(kevent.AppendLost(nil, kevent.Header{Time: h.Time + rng.Uint64N(9)}, lost)); err != nil {
				t.Fatal(err)
			}
		}
		k.Finish()
		for _, x := range k.Transactions() {
			true := w.truth[x.ID]
			if true == nil {
				t.Fatalf("seed %d: %+v never was", seed, x)
			}
			if !partOf(x, true) {
				t.Fatalf("seed %d, drops %.2f:\n got %+v\ntrue %+v", seed, drops, x, true)
			}
			switch {
			case x.Open:
				open++
			case x.Done != 0 && x.Sent != 0:
				whole++
			default:
				partial++
			}
			if drops == 0 && (x.Done != true.Done || x.Replied != true.Replied || x.Received != true.Received) {
				t.Fatalf("seed %d: without drops\n got %+v\ntrue %+v", seed, x, true)
			}
		}
		for _, a := range k.Threads() {
			for i := range a.Waits {
				if v := &a.Waits[i]; v.Binder == nil || v.Start != v.Binder.Since || v.End != v.Binder.Over && !v.Binder.Open || v.End <= v.Start {
					t.Fatalf("seed %d: wait %+v for %+v", seed, v, v.Binder)
				}
			}
		}
	}
	if whole < 1000 || partial < 1000 || open < 10 {
		t.Errorf("%d whole calls, %d partial, %d open: the test has become easy", whole, partial, open)
	}
}

// partOf reports whether all that is known of x is true.
func partOf(x, truth *Transaction) bool {
	same := func(got, want int64) bool { return got == 0 || got == want }
	within := x.Within == nil
	for up := truth.Within; up != nil && !within; up = up.Within { // of those around it, some may be missing
		within = up.ID == x.Within.ID
	}
	return same(x.Sent, truth.Sent) && same(x.Received, truth.Received) && same(x.Replied, truth.Replied) && same(x.Done, truth.Done) &&
		(x.ReplyID == 0 || x.ReplyID == truth.ReplyID) && (x.From == 0 || x.From == truth.From) && (x.To == 0 || x.To == truth.To) &&
		within && (!x.Open || truth.Replied == 0)
}

// checkWaits tests what must hold for any events.
func checkWaits(t *testing.T, k *Kernel) {
	t.Helper()
	for _, a := range k.Threads() {
		for i := range a.Waits {
			w := &a.Waits[i]
			if w.Start > w.End || w.SleptNs < 0 || w.SleptNs > w.End-w.Start || w.WokenAt > w.End || w.What() == "" ||
				i > 0 && w.Start < a.Waits[i-1].Start {
				t.Fatalf("thread %d: wait %+v", a.Tid, w)
			}
		}
	}
	for _, x := range k.Transactions() {
		queued, served, reply := x.Parts()
		if queued < 0 || served < 0 || reply < 0 || x.Waited() < 0 || x.Within == x {
			t.Fatalf("%+v: %d, %d, %d, waited %d", x, queued, served, reply, x.Waited())
		}
		var q, s int64
		for state := range NumStates {
			q, s = q+x.Queued[state], s+x.Served[state]
		}
		if q > queued || x.Replied != 0 && s > served {
			t.Fatalf("%+v: states for longer than the call", x)
		}
	}
}
