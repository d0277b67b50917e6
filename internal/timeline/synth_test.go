package timeline

import (
	"fmt"
	"strings"

	"braid/internal/kevent"
)

// script builds kernel events from text, a line each, for stories about few threads of process 10:
//
//	TIME cpu N: A -> B [S|D|R|I|X] [iowait]   a switch; A or B is a number, or - for a foreign thread
//	TIME wake A by B
//	                                          A* or B* is a thread of process 40 that works on a binder call
//	TIME new A by B
//	TIME fork A by B
//	TIME exit A
//	TIME write|read|flush ISSUE BYTES owner A
//	TIME write ISSUE BYTES indirect
//	TIME fsync A from START
//	TIME fault A from START
func script(text string) (chunk []byte, initial []InitialThread) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		h := kevent.Header{Time: num(f[0])}
		switch f[1] {
		case "cpu":
			h.CPU = uint16(num(strings.TrimSuffix(f[2], ":")))
			e := kevent.Switch{}
			if prev, server := strings.CutSuffix(f[3], "*"); server {
				h.Tid, e.PrevTgid, h.Flags = uint32(num(prev)), 40, h.Flags|kevent.FlagPrevServer
			} else if prev != "-" {
				h.Tid, e.PrevTgid, h.Flags = uint32(num(prev)), 10, h.Flags|kevent.FlagPrevTarget
			} else {
				h.Tid = 9999
			}
			if next, server := strings.CutSuffix(f[5], "*"); server {
				e.NextTid, e.NextTgid, h.Flags = uint32(num(next)), 40, h.Flags|kevent.FlagNextServer
			} else if next != "-" {
				e.NextTid, e.NextTgid, h.Flags = uint32(num(next)), 10, h.Flags|kevent.FlagNextTarget
			}
			for _, w := range f[6:] {
				switch w {
				case "S":
					e.PrevState = kevent.StateSleeping
				case "D":
					e.PrevState = kevent.StateBlocked
				case "R":
					h.Flags |= kevent.FlagPreempted
				case "I":
					e.PrevState = kevent.StateBlocked | kevent.StateNoLoad
				case "X":
					e.PrevState = kevent.StateDead
				case "iowait":
					h.Flags |= kevent.FlagIOWait
				default:
					panic(line)
				}
			}
			chunk = kevent.AppendSwitch(chunk, h, e)
		case "wake", "new":
			e := kevent.Waking{WakerTid: uint32(num(f[4])), Tgid: 10, TargetCPU: 3}
			tid, server := strings.CutSuffix(f[2], "*")
			h.Tid = uint32(num(tid))
			if server {
				h.Flags, e.Tgid = kevent.FlagServer, 40
			}
			if f[1] == "new" {
				h.Flags = kevent.FlagNew
			}
			chunk = kevent.AppendWaking(chunk, h, e)
		case "fork":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendFork(chunk, h, kevent.Fork{Tgid: 10, ParentTid: uint32(num(f[4]))})
		case "exit":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendExit(chunk, h, kevent.Exit{Tgid: 10})
		case "exec":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendExec(chunk, h, kevent.Exec{Tgid: 10, OldTid: uint32(num(f[4]))})
		case "read", "write", "flush":
			e := kevent.Rq{IssueNs: num(f[2]), Bytes: uint32(num(f[3])), Dev: 8 << 20}
			e.Op = map[string]kevent.Op{"read": kevent.OpRead, "write": kevent.OpWrite, "flush": kevent.OpFlush}[f[1]]
			if f[4] == "owner" {
				e.OwnerTid = uint32(num(f[5]))
			} else {
				h.Flags = kevent.FlagIndirect
			}
			chunk = kevent.AppendRqComplete(chunk, h, e)
		case "fsync":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendFsync(chunk, h, kevent.Fsync{StartNs: num(f[4]), Tgid: 10})
		case "fault":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendMajorFault(chunk, h, kevent.MajorFault{StartNs: num(f[4]), Tgid: 10})
		case "initial":
			initial = append(initial, InitialThread{Tid: uint32(num(f[2])), Tgid: 10, State: StateOfProc(f[3][0]), At: int64(h.Time)})
		default:
			panic(line)
		}
	}
	return chunk, initial
}

func num(s string) (v uint64) {
	if _, err := fmt.Sscan(s, &v); err != nil {
		panic(s)
	}
	return v
}

// text prints a thread's intervals and spans.
func (a *Activity) text() string {
	var b strings.Builder
	if a == nil {
		return "nothing\n"
	}
	for _, iv := range a.Intervals {
		fmt.Fprintf(&b, "%d-%d %v", iv.Start, iv.End, iv.State)
		if iv.State == Running || iv.State == Runnable {
			fmt.Fprintf(&b, " cpu %d", iv.CPU)
		}
		if iv.Waker != 0 {
			fmt.Fprintf(&b, " waker %d", iv.Waker)
		}
		if iv.Flags&IOWait != 0 {
			b.WriteString(" iowait")
		}
		b.WriteString("\n")
	}
	for _, s := range a.Spans {
		fmt.Fprintf(&b, "%d-%d %v", s.Start, s.End, s.Kind)
		if s.Request() {
			fmt.Fprintf(&b, " %d bytes", s.Bytes)
		}
		if s.Indirect {
			b.WriteString(" indirect")
		}
		b.WriteString("\n")
	}
	return b.String()
}
