package export

import (
	"cmp"
	"slices"

	"braid/internal/perfetto"
	"braid/internal/timeline"
)

// Tracks of waits below a thread.
const (
	waitTrack   = "waits"
	wakeTrack   = "wake-ups"
	binderTrack = "binder"
)

// waits writes the system calls in which threads slept, and an arrow to each wait for a futex from the thread that ended it.
func (e *exporter) waits() {
	address, object, fd := e.w.Key("address"), e.w.Key("object"), e.w.Key("fd")
	result, slept, released := e.w.Key("result"), e.w.Key("slept_ns"), e.w.Key("released_by")
	type wake struct {
		at   uint64
		flow uint64
	}
	wakes := make(map[*perfetto.Track][]wake)
	for _, a := range e.tr.Kernel.Threads() {
		track := e.track(a.Tgid, a.Tid)
		if track == nil {
			continue
		}
		lanes := e.w.Lanes(track, waitTrack)
		for i := range a.Waits {
			w := &a.Waits[i]
			if w.Binder != nil {
				continue
			}
			args := []perfetto.Arg{perfetto.Int(result, w.Ret)}
			var mark perfetto.NameID
			var arrow []perfetto.Arg
			if w.SleptNs != 0 {
				args = append(args, perfetto.Int(slept, w.SleptNs))
			}
			if w.FD >= 0 {
				args = append(args, perfetto.Int(fd, int64(w.FD)))
			}
			switch {
			case w.Class() == timeline.WaitLock:
				args = append(args, perfetto.Pointer(address, w.Object))
			case w.Object != 0:
				args = append(args, perfetto.Uint(object, w.Object))
			}
			if w.Waker != 0 {
				args = append(args, perfetto.Uint(released, uint64(w.Waker)))
				if from := e.trackOf(w.Waker); from != nil {
					flow := e.flow()
					wakes[from] = append(wakes[from], wake{uint64(w.WokenAt), flow})
					mark, arrow = e.w.Name("released"), []perfetto.Arg{perfetto.FlowIn(flow)}
				}
			}
			lanes.SliceMark(uint64(w.Start), uint64(w.End), e.w.Name(w.What()), args, mark, arrow...)
		}
	}
	name := e.w.Name("futex wake-up")
	for _, a := range e.tr.Kernel.Threads() {
		track := e.track(a.Tgid, a.Tid)
		list := wakes[track]
		if track == nil || len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(x, y wake) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.flow, y.flow)) })
		below := e.w.Child(track, wakeTrack)
		for _, k := range list {
			e.w.Instant(below, k.at, name, perfetto.FlowOut(k.flow))
		}
	}
}

// track is a thread's, or nil.
func (e *exporter) track(pid, tid uint32) *perfetto.Track {
	return e.threads[[2]int{int(pid), int(tid)}]
}

func (e *exporter) trackOf(tid uint32) *perfetto.Track {
	if a := e.tr.Kernel.Thread(tid); a != nil {
		return e.track(a.Tgid, tid)
	}
	return nil
}

// flow returns the id of a new arrow.
func (e *exporter) flow() uint64 {
	e.flows++
	return e.flows
}

// binderSlice is one thread's part in a binder call.
type binderSlice struct {
	start, end uint64
	name       perfetto.NameID
	args       []perfetto.Arg
	mark       perfetto.NameID // at the end, where an arrow is; or 0
	arrow      []perfetto.Arg
}

// binder writes binder calls as Perfetto names them, on the threads that called and that worked on them, with arrows from
// the call to its receipt, and from the reply to its receipt.
func (e *exporter) binder() {
	call, reply := e.w.Name("binder transaction"), e.w.Name("binder reply")
	asyncCall, asyncReply := e.w.Name("binder transaction async"), e.w.Name("binder async rcv")
	replySent, replyReceived := e.w.Name("reply sent"), e.w.Name("reply received")
	threads := make(map[uint32][]binderSlice)
	for _, x := range e.tr.Kernel.Transactions() {
		var client, server *binderSlice
		if x.From != 0 && x.Since != 0 && e.trackOf(x.From) != nil {
			client = &binderSlice{start: uint64(x.Since), end: uint64(max(x.Over, x.Since)), name: call, args: e.called(x)}
			if x.Sent == 0 {
				client.args = append(client.args, perfetto.String(e.keyCut, "start"))
			}
			if x.Open {
				client.end = e.end
				client.args = append(client.args, perfetto.String(e.keyCut, "end"))
			}
			if x.OneWay() {
				client.name = asyncCall
			}
		}
		if x.Received != 0 && e.trackOf(x.To) != nil {
			server = &binderSlice{start: uint64(x.Received), end: uint64(max(x.Replied, x.Received)), name: reply, args: e.serves(x)}
			if x.Open {
				server.end = e.end
				server.args = append(server.args, perfetto.String(e.keyCut, "end"))
			}
			if x.OneWay() {
				server.name = asyncReply
			}
		}
		if client != nil && server != nil && x.Sent != 0 {
			id := e.flow()
			client.args = append(client.args, perfetto.FlowOut(id))
			server.args = append(server.args, perfetto.FlowIn(id))
		}
		if client != nil && server != nil && x.ReplyID != 0 && x.Done != 0 {
			id := e.flow()
			server.mark, server.arrow = replySent, []perfetto.Arg{perfetto.FlowOut(id)}
			client.mark, client.arrow = replyReceived, []perfetto.Arg{perfetto.FlowIn(id)}
		}
		if client != nil {
			threads[x.From] = append(threads[x.From], *client)
		}
		if server != nil {
			threads[x.To] = append(threads[x.To], *server)
		}
	}
	for _, a := range e.tr.Kernel.Threads() {
		list := threads[a.Tid]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b binderSlice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
		lanes := e.w.Lanes(e.trackOf(a.Tid), binderTrack)
		for i := range list {
			s := &list[i]
			lanes.SliceMark(s.start, s.end, s.name, s.args, s.mark, s.arrow...)
		}
	}
}

// called are the arguments of a caller's slice.
func (e *exporter) called(x *timeline.Transaction) []perfetto.Arg {
	args := []perfetto.Arg{perfetto.Uint(e.w.Key("to_process"), uint64(x.ToPid))}
	add := func(key string, ns int64) {
		if ns != 0 {
			args = append(args, perfetto.Int(e.w.Key(key), ns))
		}
	}
	if x.To != 0 {
		args = append(args, perfetto.Uint(e.w.Key("to_thread"), uint64(x.To)))
	}
	if x.Sent != 0 {
		args = append(args, perfetto.Uint(e.w.Key("code"), uint64(x.Code)), perfetto.Pointer(e.w.Key("flags"), uint64(x.Flags)),
			perfetto.Int(e.w.Key("debug_id"), int64(x.ID)))
	}
	queued, served, reply := x.Parts()
	add("queued_ns", queued)
	add("served_ns", served)
	add("reply_ns", reply)
	for state, ns := range x.Did() {
		add("server_"+timeline.State(state).String()+"_ns", ns)
	}
	if !x.OneWay() && x.ReplyID == 0 {
		args = append(args, perfetto.Bool(e.w.Key("unanswered"), true))
	}
	return args
}

// serves are the arguments of the slice of a thread that works on a call.
func (e *exporter) serves(x *timeline.Transaction) []perfetto.Arg {
	args := []perfetto.Arg{
		perfetto.Uint(e.w.Key("from_process"), uint64(x.FromPid)), perfetto.Uint(e.w.Key("from_thread"), uint64(x.From)),
		perfetto.Uint(e.w.Key("code"), uint64(x.Code)), perfetto.Int(e.w.Key("debug_id"), int64(x.ID)),
	}
	if !x.Open && x.Replied == 0 {
		args = append(args, perfetto.Bool(e.w.Key("end_not_seen"), true))
	}
	return args
}
