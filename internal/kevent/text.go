package kevent

import (
	"bytes"
	"fmt"
	"math/bits"
	"strconv"
)

var kindNames = map[Kind]string{
	KindSwitch:            "switch",
	KindWaking:            "waking",
	KindFork:              "fork",
	KindExec:              "exec",
	KindExit:              "exit",
	KindRename:            "rename",
	KindMigrate:           "migrate",
	KindFreq:              "freq",
	KindIdle:              "idle",
	KindAffinity:          "affinity",
	KindRqIssue:           "rq_issue",
	KindRqComplete:        "rq_complete",
	KindFsync:             "fsync",
	KindMajorFault:        "major_fault",
	KindReclaim:           "reclaim",
	KindSyscallWait:       "syscall_wait",
	KindFutexWake:         "futex_wake",
	KindAnnounce:          "announce",
	KindFired:             "fired",
	KindBinderTransaction: "binder_transaction",
	KindBinderReceived:    "binder_received",
	KindBinderDone:        "binder_done",
	KindLost:              "lost",
}

// String returns the kind's name, as dumps and loss counters spell it.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return "kind" + strconv.Itoa(int(k))
}

// String returns the operation's name.
func (o Op) String() string {
	switch o {
	case OpRead:
		return "read"
	case OpWrite:
		return "write"
	case OpFlush:
		return "flush"
	case OpDiscard:
		return "discard"
	case OpOther:
		return "other"
	}
	return "op" + strconv.Itoa(int(o))
}

var callNames = [...]string{
	CallFsync:         "fsync",
	CallFdatasync:     "fdatasync",
	CallSync:          "sync",
	CallSyncfs:        "syncfs",
	CallMsync:         "msync",
	CallSyncFileRange: "sync_file_range",
}

// String returns the system call's name.
func (c SyncCall) String() string {
	if int(c) < len(callNames) {
		return callNames[c]
	}
	return "call" + strconv.Itoa(int(c))
}

var announcementNames = [...]string{
	AnnounceFork:   "fork",
	AnnounceExec:   "exec",
	AnnounceRename: "rename",
	AnnounceExit:   "exit",
}

// String returns the announcement's name.
func (a Announcement) String() string {
	if int(a) < len(announcementNames) {
		return announcementNames[a]
	}
	return "announcement" + strconv.Itoa(int(a))
}

var limitNames = [...]string{
	LimitRunQueue:    "run_queue",
	LimitSleeping:    "sleeping",
	LimitBlocked:     "blocked",
	LimitBlockIO:     "block_io",
	LimitFsync:       "fsync",
	LimitReclaim:     "reclaim",
	LimitMajorFaults: "major_faults",
	LimitMethod:      "method",
}

// String returns the limit's name.
func (l Limit) String() string {
	if int(l) < len(limitNames) && limitNames[l] != "" {
		return limitNames[l]
	}
	return "limit" + strconv.Itoa(int(l))
}

// StateName returns a PrevState in the letters of ps and sched_switch: R running, S sleeping, D blocked, I idle
// (a kernel thread's sleep that is not load), T stopped, t traced, X dead, W being woken.
func StateName(s uint32) string {
	switch {
	case s == 0:
		return "R"
	case s&StateDead != 0:
		return "X"
	case s&StateBlocked != 0 && s&StateNoLoad != 0:
		return "I"
	case s&StateSleeping != 0:
		return "S"
	case s&StateBlocked != 0:
		return "D"
	case s&StateStopped != 0:
		return "T"
	case s&StateTraced != 0:
		return "t"
	case s&StateWaking != 0:
		return "W"
	}
	return "0x" + strconv.FormatUint(uint64(s), 16)
}

// AppendText appends one event, as Next returned it, as one line without its newline: time in seconds, CPU in
// brackets, kind, thread, then the body as key=value. Names are quoted as in Go, so that a line stays a line.
func AppendText(b []byte, h Header, body []byte) []byte {
	b = fmt.Appendf(b, "%d.%09d [%03d] %s tid=%d", h.Time/1e9, h.Time%1e9, h.CPU, h.Kind, h.Tid)
	switch h.Kind {
	case KindSwitch:
		return appendSwitchText(b, h, DecodeSwitch(body))
	case KindWaking:
		e := DecodeWaking(body)
		b = fmt.Appendf(b, " tgid=%d comm=%q prio=%d cpu=%d waker=%d/%d",
			e.Tgid, Comm(&e.Comm), e.Prio, e.TargetCPU, e.WakerTgid, e.WakerTid)
		b = appendFlag(b, h, FlagServer, " server")
		return appendFlag(b, h, FlagNew, " new")
	case KindFork:
		e := DecodeFork(body)
		b = fmt.Appendf(b, " tgid=%d parent=%d/%d comm=%q", e.Tgid, e.ParentTgid, e.ParentTid, Comm(&e.Comm))
		return appendFlag(b, h, FlagThread, " thread")
	case KindExec:
		e := DecodeExec(body)
		return fmt.Appendf(b, " tgid=%d old_tid=%d comm=%q", e.Tgid, e.OldTid, Comm(&e.Comm))
	case KindExit:
		return fmt.Appendf(b, " tgid=%d", DecodeExit(body).Tgid)
	case KindRename:
		e := DecodeRename(body)
		return fmt.Appendf(b, " tgid=%d comm=%q", e.Tgid, Comm(&e.Comm))
	case KindMigrate:
		e := DecodeMigrate(body)
		b = fmt.Appendf(b, " from=%d to=%d", e.FromCPU, e.ToCPU)
		return appendFlag(b, h, FlagBehind, " behind")
	case KindFreq:
		e := DecodeFreq(body)
		return fmt.Appendf(b, " cpu=%d khz=%d", e.CPU, e.KHz)
	case KindIdle:
		return appendCPUs(b, DecodeIdle(body).Idle)
	case KindAffinity:
		return appendCPUs(b, DecodeAffinity(body).Allowed)
	case KindRqIssue, KindRqComplete:
		return appendRqText(b, h, DecodeRq(body))
	case KindFsync:
		e := DecodeFsync(body)
		return fmt.Appendf(b, " tgid=%d call=%s ns=%d ret=%d", e.Tgid, e.Call, since(h.Time, e.StartNs), e.Ret)
	case KindMajorFault:
		e := DecodeMajorFault(body)
		return fmt.Appendf(b, " tgid=%d address=%#x ns=%d", e.Tgid, e.Address, since(h.Time, e.StartNs))
	case KindReclaim:
		e := DecodeReclaim(body)
		return fmt.Appendf(b, " tgid=%d ns=%d pages=%d", e.Tgid, since(h.Time, e.StartNs), e.Reclaimed)
	case KindSyscallWait:
		return appendSyscallWaitText(b, h, DecodeSyscallWait(body))
	case KindFutexWake:
		return appendFutexWakeText(b, h, DecodeFutexWake(body))
	case KindBinderTransaction:
		return appendBinderText(b, DecodeBinderTransaction(body))
	case KindBinderReceived:
		e := DecodeBinderReceived(body)
		return fmt.Appendf(b, " tgid=%d id=%d", e.Tgid, e.DebugID)
	case KindBinderDone:
		e := DecodeBinderDone(body)
		return fmt.Appendf(b, " tgid=%d id=%d", e.Tgid, e.DebugID)
	case KindAnnounce:
		e := DecodeAnnounce(body)
		b = fmt.Appendf(b, " what=%s tgid=%d parent=%d uid=%d cgroup=%d comm=%q", e.What, e.Tgid, e.ParentTgid, e.UID, e.Cgroup, Comm(&e.Comm))
		if e.Signal != 0 {
			b = fmt.Appendf(b, " signal=%d", e.Signal)
		}
		return appendFlag(b, h, FlagMatch, " match")
	case KindFired:
		e := DecodeFired(body)
		b = fmt.Appendf(b, " what=%s tgid=%d value=%d limit=%d", e.What, e.Tgid, e.Value, e.Limit)
		if e.What == LimitMethod {
			return fmt.Appendf(b, " cookie=%d", e.Cookie())
		}
		return fmt.Appendf(b, " suppressed=%d", e.Suppressed)
	case KindLost:
		e := DecodeLost(body)
		return fmt.Appendf(b, " name=%q count=%d ns=%d", bytes.TrimRight(e.Name[:], "\x00"), e.Count, since(h.Time, e.SinceNs))
	}
	return b
}

func appendSwitchText(b []byte, h Header, e Switch) []byte {
	b = fmt.Appendf(b, " tgid=%d state=%s prio=%d", e.PrevTgid, StateName(e.PrevState), e.PrevPrio)
	b = appendFlag(b, h, FlagPreempted, " preempted")
	b = appendFlag(b, h, FlagIOWait, " iowait")
	b = appendFlag(b, h, FlagPrevServer, " server")
	if h.Flags&(FlagPrevTarget|FlagNextTarget|FlagPrevServer|FlagNextServer) == 0 {
		return append(b, " -> ?"...)
	}
	b = fmt.Appendf(b, " -> tid=%d tgid=%d prio=%d comm=%q", e.NextTid, e.NextTgid, e.NextPrio, Comm(&e.NextComm))
	return appendFlag(b, h, FlagNextServer, " server")
}

func appendRqText(b []byte, h Header, e Rq) []byte {
	b = fmt.Appendf(b, " id=%#x dev=%d:%d sector=%d bytes=%d op=%s owner=%d/%d",
		e.ID, e.Dev>>20, e.Dev&(1<<20-1), e.Sector, e.Bytes, e.Op, e.OwnerPid, e.OwnerTid)
	if h.Kind == KindRqComplete {
		b = fmt.Appendf(b, " ns=%d error=%d", since(h.Time, e.IssueNs), e.Error)
	}
	return appendFlag(b, h, FlagIndirect, " indirect")
}

// appendCPUs appends a word that has a bit a CPU.
func appendCPUs(b []byte, word uint64) []byte {
	b = append(b, " cpus="...)
	for first := true; word != 0; word &= word - 1 {
		if !first {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(bits.TrailingZeros64(word)), 10)
		first = false
	}
	return b
}

func appendFlag(b []byte, h Header, flag uint8, text string) []byte {
	if h.Flags&flag == 0 {
		return b
	}
	return append(b, text...)
}

// since returns end - start, or 0 where the start is not known or not before the end.
func since(end, start uint64) uint64 {
	if start == 0 || start > end {
		return 0
	}
	return end - start
}
