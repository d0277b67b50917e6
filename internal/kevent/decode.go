package kevent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort says that the bytes end within an event: the rest of it was cut off.
var ErrShort = errors.New("kernel event cut short")

// ErrUnknownKind says that an event's kind is not one of the Kind constants. Its size is unknown too, so that nothing
// after it can be read.
var ErrUnknownKind = errors.New("kernel event of unknown kind")

// Sizes of the bodies in bytes; bpf/layout_test.go compares the structs with the C side.
const (
	switchSize            = 40
	wakingSize            = 40
	forkSize              = 32
	execSize              = 24
	exitSize              = 8
	renameSize            = 24
	migrateSize           = 8
	freqSize              = 8
	idleSize              = 8
	affinitySize          = 8
	rqSize                = 48
	fsyncSize             = 24
	majorFaultSize        = 24
	reclaimSize           = 16
	syscallWaitSize       = 48
	futexWakeSize         = 40
	announceSize          = 40
	firedSize             = 32
	binderTransactionSize = 40
	binderReceivedSize    = 8
	binderDoneSize        = 8
	lostSize              = 48
)

// MaxSize is the size of the largest event, header included.
const MaxSize = HeaderSize + rqSize

var bodySizes = [256]uint8{
	KindSwitch:            switchSize,
	KindWaking:            wakingSize,
	KindFork:              forkSize,
	KindExec:              execSize,
	KindExit:              exitSize,
	KindRename:            renameSize,
	KindMigrate:           migrateSize,
	KindFreq:              freqSize,
	KindIdle:              idleSize,
	KindAffinity:          affinitySize,
	KindRqIssue:           rqSize,
	KindRqComplete:        rqSize,
	KindFsync:             fsyncSize,
	KindMajorFault:        majorFaultSize,
	KindReclaim:           reclaimSize,
	KindSyscallWait:       syscallWaitSize,
	KindFutexWake:         futexWakeSize,
	KindAnnounce:          announceSize,
	KindFired:             firedSize,
	KindBinderTransaction: binderTransactionSize,
	KindBinderReceived:    binderReceivedSize,
	KindBinderDone:        binderDoneSize,
	KindLost:              lostSize,
}

// Size returns the size in bytes of an event of this kind, header included, or 0 if the kind is unknown.
func Size(k Kind) int {
	n := int(bodySizes[k])
	if n == 0 {
		return 0
	}
	return HeaderSize + n
}

// Next splits the first event off buf. The body aliases buf, has exactly the length of the kind's struct, and goes to
// the kind's Decode function; rest is what follows. It fails with ErrShort or ErrUnknownKind and then returns buf
// unchanged as rest. It allocates nothing when it succeeds.
func Next(buf []byte) (h Header, body, rest []byte, err error) {
	if len(buf) < HeaderSize {
		return Header{}, nil, buf, fmt.Errorf("read header: %w: %d of %d bytes", ErrShort, len(buf), HeaderSize)
	}
	h = decodeHeader(buf)
	n := Size(h.Kind)
	if n == 0 {
		return Header{}, nil, buf, fmt.Errorf("%w %d", ErrUnknownKind, h.Kind)
	}
	if len(buf) < n {
		return Header{}, nil, buf, fmt.Errorf("read %s event: %w: %d of %d bytes", h.Kind, ErrShort, len(buf), n)
	}
	return h, buf[HeaderSize:n:n], buf[n:], nil
}

func decodeHeader(b []byte) Header {
	return Header{
		Time:  binary.LittleEndian.Uint64(b),
		Tid:   u32(b, 8),
		CPU:   binary.LittleEndian.Uint16(b[12:]),
		Kind:  Kind(b[14]),
		Flags: b[15],
	}
}

// Comm returns a thread's name up to its NUL. It aliases c.
func Comm(c *[16]byte) []byte {
	if i := bytes.IndexByte(c[:], 0); i >= 0 {
		return c[:i]
	}
	return c[:]
}

func u32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func u64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }

// The Decode functions read the body that Next returned for the kind. They panic if it is shorter than the struct,
// which Next excludes.

// DecodeSwitch reads KindSwitch's body.
func DecodeSwitch(b []byte) Switch {
	b = b[:switchSize]
	return Switch{
		PrevTgid: u32(b, 0), PrevState: u32(b, 4), PrevPrio: int32(u32(b, 8)),
		NextTid: u32(b, 12), NextTgid: u32(b, 16), NextPrio: int32(u32(b, 20)), NextComm: [16]byte(b[24:40]),
	}
}

// DecodeWaking reads KindWaking's body.
func DecodeWaking(b []byte) Waking {
	b = b[:wakingSize]
	return Waking{
		WakerTid: u32(b, 0), WakerTgid: u32(b, 4), TargetCPU: u32(b, 8), Prio: int32(u32(b, 12)),
		Comm: [16]byte(b[16:32]), Tgid: u32(b, 32),
	}
}

// DecodeFork reads KindFork's body.
func DecodeFork(b []byte) Fork {
	b = b[:forkSize]
	return Fork{Tgid: u32(b, 0), ParentTid: u32(b, 4), ParentTgid: u32(b, 8), Comm: [16]byte(b[16:32])}
}

// DecodeExec reads KindExec's body.
func DecodeExec(b []byte) Exec {
	b = b[:execSize]
	return Exec{Tgid: u32(b, 0), OldTid: u32(b, 4), Comm: [16]byte(b[8:24])}
}

// DecodeExit reads KindExit's body.
func DecodeExit(b []byte) Exit {
	b = b[:exitSize]
	return Exit{Tgid: u32(b, 0)}
}

// DecodeRename reads KindRename's body.
func DecodeRename(b []byte) Rename {
	b = b[:renameSize]
	return Rename{Tgid: u32(b, 0), Comm: [16]byte(b[8:24])}
}

// DecodeMigrate reads KindMigrate's body.
func DecodeMigrate(b []byte) Migrate {
	b = b[:migrateSize]
	return Migrate{FromCPU: u32(b, 0), ToCPU: u32(b, 4)}
}

// DecodeFreq reads KindFreq's body.
func DecodeFreq(b []byte) Freq {
	b = b[:freqSize]
	return Freq{KHz: u32(b, 0), CPU: u32(b, 4)}
}

// DecodeIdle reads KindIdle's body.
func DecodeIdle(b []byte) Idle { return Idle{Idle: u64(b[:idleSize], 0)} }

// DecodeAffinity reads KindAffinity's body.
func DecodeAffinity(b []byte) Affinity { return Affinity{Allowed: u64(b[:affinitySize], 0)} }

// DecodeRq reads KindRqIssue's and KindRqComplete's body.
func DecodeRq(b []byte) Rq {
	b = b[:rqSize]
	return Rq{
		ID: u64(b, 0), Sector: u64(b, 8), IssueNs: u64(b, 16), Dev: u32(b, 24), Bytes: u32(b, 28),
		OwnerTid: u32(b, 32), OwnerPid: u32(b, 36), Op: Op(b[40]), Error: int32(u32(b, 44)),
	}
}

// DecodeFsync reads KindFsync's body.
func DecodeFsync(b []byte) Fsync {
	b = b[:fsyncSize]
	return Fsync{StartNs: u64(b, 0), Tgid: u32(b, 8), Call: SyncCall(u32(b, 12)), Ret: int64(u64(b, 16))}
}

// DecodeMajorFault reads KindMajorFault's body.
func DecodeMajorFault(b []byte) MajorFault {
	b = b[:majorFaultSize]
	return MajorFault{StartNs: u64(b, 0), Address: u64(b, 8), Tgid: u32(b, 16)}
}

// DecodeReclaim reads KindReclaim's body.
func DecodeReclaim(b []byte) Reclaim {
	b = b[:reclaimSize]
	return Reclaim{StartNs: u64(b, 0), Tgid: u32(b, 8), Reclaimed: u32(b, 12)}
}

// DecodeAnnounce reads KindAnnounce's body.
func DecodeAnnounce(b []byte) Announce {
	b = b[:announceSize]
	return Announce{
		Cgroup: u64(b, 0), Tgid: u32(b, 8), ParentTgid: u32(b, 12), UID: u32(b, 16), What: Announcement(b[20]), Signal: b[21],
		Comm: [16]byte(b[24:40]),
	}
}

// DecodeFired reads KindFired's body.
func DecodeFired(b []byte) Fired {
	b = b[:firedSize]
	return Fired{Value: u64(b, 0), Limit: u64(b, 8), Suppressed: u64(b, 16), Tgid: u32(b, 24), What: Limit(b[28])}
}

// DecodeLost decodes a KindLost body.
func DecodeLost(b []byte) Lost {
	return Lost{SinceNs: u64(b, 0), Count: u64(b, 8), Name: [32]byte(b[16:48])}
}
