package kevent

import "encoding/binary"

// The Append functions write one event as the eBPF programs would, h.Kind set by the function where only one fits.
// Tests build their input with them; recording never encodes.

func appendHeader(b []byte, h Header, k Kind) []byte {
	b = put64(b, h.Time)
	b = put32(b, h.Tid)
	b = binary.LittleEndian.AppendUint16(b, h.CPU)
	return append(b, byte(k), h.Flags)
}

func put32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func put64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// AppendSwitch appends a KindSwitch event.
func AppendSwitch(b []byte, h Header, e Switch) []byte {
	b = appendHeader(b, h, KindSwitch)
	b = put32(b, e.PrevTgid)
	b = put32(b, e.PrevState)
	b = put32(b, uint32(e.PrevPrio))
	b = put32(b, e.NextTid)
	b = put32(b, e.NextTgid)
	b = put32(b, uint32(e.NextPrio))
	return append(b, e.NextComm[:]...)
}

// AppendWaking appends a KindWaking event.
func AppendWaking(b []byte, h Header, e Waking) []byte {
	b = appendHeader(b, h, KindWaking)
	b = put32(b, e.WakerTid)
	b = put32(b, e.WakerTgid)
	b = put32(b, e.TargetCPU)
	b = put32(b, uint32(e.Prio))
	b = append(b, e.Comm[:]...)
	b = put32(b, e.Tgid)
	return put32(b, 0)
}

// AppendFork appends a KindFork event.
func AppendFork(b []byte, h Header, e Fork) []byte {
	b = appendHeader(b, h, KindFork)
	b = put32(b, e.Tgid)
	b = put32(b, e.ParentTid)
	b = put32(b, e.ParentTgid)
	b = put32(b, 0)
	return append(b, e.Comm[:]...)
}

// AppendExec appends a KindExec event.
func AppendExec(b []byte, h Header, e Exec) []byte {
	b = appendHeader(b, h, KindExec)
	b = put32(b, e.Tgid)
	b = put32(b, e.OldTid)
	return append(b, e.Comm[:]...)
}

// AppendExit appends a KindExit event.
func AppendExit(b []byte, h Header, e Exit) []byte {
	b = appendHeader(b, h, KindExit)
	b = put32(b, e.Tgid)
	return put32(b, 0)
}

// AppendRename appends a KindRename event.
func AppendRename(b []byte, h Header, e Rename) []byte {
	b = appendHeader(b, h, KindRename)
	b = put32(b, e.Tgid)
	b = put32(b, 0)
	return append(b, e.Comm[:]...)
}

// AppendMigrate appends a KindMigrate event.
func AppendMigrate(b []byte, h Header, e Migrate) []byte {
	b = appendHeader(b, h, KindMigrate)
	b = put32(b, e.FromCPU)
	return put32(b, e.ToCPU)
}

// AppendFreq appends a KindFreq event.
func AppendFreq(b []byte, h Header, e Freq) []byte {
	b = appendHeader(b, h, KindFreq)
	b = put32(b, e.KHz)
	return put32(b, e.CPU)
}

// AppendIdle appends a KindIdle event.
func AppendIdle(b []byte, h Header, e Idle) []byte {
	return put64(appendHeader(b, h, KindIdle), e.Idle)
}

// AppendAffinity appends a KindAffinity event.
func AppendAffinity(b []byte, h Header, e Affinity) []byte {
	return put64(appendHeader(b, h, KindAffinity), e.Allowed)
}

// AppendRqIssue appends a KindRqIssue event.
func AppendRqIssue(b []byte, h Header, e Rq) []byte { return appendRq(b, h, KindRqIssue, e) }

// AppendRqComplete appends a KindRqComplete event.
func AppendRqComplete(b []byte, h Header, e Rq) []byte { return appendRq(b, h, KindRqComplete, e) }

func appendRq(b []byte, h Header, k Kind, e Rq) []byte {
	b = appendHeader(b, h, k)
	b = put64(b, e.ID)
	b = put64(b, e.Sector)
	b = put64(b, e.IssueNs)
	b = put32(b, e.Dev)
	b = put32(b, e.Bytes)
	b = put32(b, e.OwnerTid)
	b = put32(b, e.OwnerPid)
	b = append(b, byte(e.Op), 0, 0, 0)
	return put32(b, uint32(e.Error))
}

// AppendFsync appends a KindFsync event.
func AppendFsync(b []byte, h Header, e Fsync) []byte {
	b = appendHeader(b, h, KindFsync)
	b = put64(b, e.StartNs)
	b = put32(b, e.Tgid)
	b = put32(b, uint32(e.Call))
	return put64(b, uint64(e.Ret))
}

// AppendMajorFault appends a KindMajorFault event.
func AppendMajorFault(b []byte, h Header, e MajorFault) []byte {
	b = appendHeader(b, h, KindMajorFault)
	b = put64(b, e.StartNs)
	b = put64(b, e.Address)
	b = put32(b, e.Tgid)
	return put32(b, 0)
}

// AppendReclaim appends a KindReclaim event.
func AppendReclaim(b []byte, h Header, e Reclaim) []byte {
	b = appendHeader(b, h, KindReclaim)
	b = put64(b, e.StartNs)
	b = put32(b, e.Tgid)
	return put32(b, e.Reclaimed)
}

// AppendAnnounce appends a KindAnnounce event.
func AppendAnnounce(b []byte, h Header, e Announce) []byte {
	b = appendHeader(b, h, KindAnnounce)
	b = put64(b, e.Cgroup)
	b = put32(b, e.Tgid)
	b = put32(b, e.ParentTgid)
	b = put32(b, e.UID)
	b = append(b, byte(e.What), e.Signal, 0, 0)
	return append(b, e.Comm[:]...)
}

// AppendFired appends a KindFired event.
func AppendFired(b []byte, h Header, e Fired) []byte {
	b = appendHeader(b, h, KindFired)
	b = put64(b, e.Value)
	b = put64(b, e.Limit)
	b = put64(b, e.Suppressed)
	b = put32(b, e.Tgid)
	return append(b, byte(e.What), 0, 0, 0)
}

// AppendLost appends a KindLost event.
func AppendLost(b []byte, h Header, e Lost) []byte {
	b = appendHeader(b, h, KindLost)
	b = put64(b, e.SinceNs)
	b = put64(b, e.Count)
	return append(b, e.Name[:]...)
}
