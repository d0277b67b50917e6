package kevent

import "encoding/binary"

// WaitCall says what kind of system call a SyscallWait event is about.
type WaitCall uint8

// The calls that are told apart. Each names a family.
const (
	WaitOther       WaitCall = 0  // any other: SyscallWait.Nr says which
	WaitFutexWait   WaitCall = 1  // futex: WAIT, WAIT_BITSET, WAIT_REQUEUE_PI; the call futex_wait
	WaitFutexLockPI WaitCall = 2  // futex: LOCK_PI, LOCK_PI2
	WaitFutexWaitv  WaitCall = 3  // futex_waitv; the object is the first futex of several
	WaitEpollWait   WaitCall = 4  // epoll_wait, epoll_pwait, epoll_pwait2
	WaitPoll        WaitCall = 5  // poll, ppoll; a file only if it was asked for just one
	WaitSelect      WaitCall = 6  // select, pselect6
	WaitRead        WaitCall = 7  // read, pread64, readv, preadv, preadv2
	WaitWrite       WaitCall = 8  // write, pwrite64, writev, pwritev, pwritev2
	WaitAccept      WaitCall = 9  // accept, accept4
	WaitConnect     WaitCall = 10 // connect
	WaitRecv        WaitCall = 11 // recvfrom, recvmsg, recvmmsg
	WaitSend        WaitCall = 12 // sendto, sendmsg, sendmmsg
	WaitNanosleep   WaitCall = 13 // nanosleep, clock_nanosleep
	WaitChild       WaitCall = 14 // wait4, waitid, waitpid
	WaitIoctl       WaitCall = 15 // ioctl; with FileBinder a binder call, or a wait for one
	WaitFileLock    WaitCall = 16 // flock, fcntl
	WaitSignal      WaitCall = 17 // rt_sigtimedwait, rt_sigsuspend, pause
	WaitSync        WaitCall = 18 // fsync, fdatasync, sync, syncfs, msync, sync_file_range
	WaitSplice      WaitCall = 19 // sendfile, splice, tee, vmsplice, copy_file_range; the file is the one read from
	WaitAIO         WaitCall = 20 // io_getevents, io_pgetevents, io_submit, io_uring_enter
	WaitIPC         WaitCall = 21 // System V semaphores and messages, mq_timedsend, mq_timedreceive
	WaitOpen        WaitCall = 22 // open, openat, openat2, creat
	WaitMemory      WaitCall = 23 // mmap, munmap, mremap, mprotect, madvise, brk
)

// FileKind says what kind of file a call waited at.
type FileKind uint8

// The kinds of file.
const (
	FileNone        FileKind = 0 // the call is not about one file, or the file is not known
	FileRegular     FileKind = 1
	FileDirectory   FileKind = 2
	FilePipe        FileKind = 3
	FileUnixSocket  FileKind = 4
	FileInetSocket  FileKind = 5 // version 4 or 6
	FileOtherSocket FileKind = 6
	FileTTY         FileKind = 7
	FileBinder      FileKind = 8
	FileCharDevice  FileKind = 9
	FileBlockDevice FileKind = 10
	FileEventfd     FileKind = 11
	FileEpoll       FileKind = 12
	FileTimerfd     FileKind = 13
	FileSignalfd    FileKind = 14
	FileInotify     FileKind = 15
	FileOther       FileKind = 16
)

// SyscallWait is KindSyscallWait's body; Header.Tid is the caller. The thread gave up its CPU of its own accord at least once in the
// call; a call that did not is not told. A call does not end, and is not told, if its thread ends in it.
type SyscallWait struct {
	// StartNs is CLOCK_BOOTTIME ns; 0 if the thread was in the call already when its process was recorded: then it is not
	// certain that it slept.
	StartNs uint64
	// Object is what the call waited at: for futexes the address, as the caller gave it; for files the inode number, which
	// tells pipes and sockets of the same kind apart; for eventfds their id. 0: unknown, or the call has none.
	Object uint64
	// Key is the same in all processes for a futex that they share, if it is known; 0 for a private futex or an unknown key.
	Key      uint64
	Ret      int64 // result, or a negative errno; 512 to 516 below 0: the call is restarted after a signal
	Tgid     uint32
	FD       int32  // -1: the call has none
	Switches uint32 // how often the thread gave up its CPU of its own accord; 0 if StartNs is
	Nr       uint16 // the system call's number, of the ABI that FlagCompat tells
	Call     WaitCall
	File     FileKind
} // 48 bytes

// WakeOp says which futex operation woke somebody.
type WakeOp uint8

// The operations.
const (
	WakeFutexWake     WakeOp = 0 // WAKE, WAKE_BITSET; the call futex_wake
	WakeFutexRequeue  WakeOp = 1 // REQUEUE, CMP_REQUEUE, CMP_REQUEUE_PI: Woken counts those that were moved to another futex, too
	WakeFutexWakeOp   WakeOp = 2 // WAKE_OP: of two futexes; Address is the first
	WakeFutexUnlockPI WakeOp = 3 // UNLOCK_PI: the kernel was asked because somebody waited
)

// FutexWake is KindFutexWake's body; Header.Tid is the waker, the header's time the call's return. The wake-ups
// themselves (KindWaking, the waker as WakerTid) are between StartNs and that.
type FutexWake struct {
	StartNs uint64 // CLOCK_BOOTTIME ns; 0 as for SyscallWait
	Address uint64 // as the caller gave it
	Key     uint64 // as SyscallWait.Key
	Tgid    uint32
	Woken   int32 // how many threads were woken, at least 1
	Op      WakeOp
	_       [7]uint8
} // 40 bytes

// The flags of BinderTransaction.Flags that matter here (enum transaction_flags, include/uapi/linux/android/binder.h).
const (
	BinderOneWay uint32 = 0x01 // nobody answers
)

// BinderTransaction is KindBinderTransaction's body; Header.Tid is the thread that sends. Both parts of a call are
// transactions with ids of their own: the one that asks, and the reply.
//
// Recorded are those that a traced process sends or is sent, those that a thread sends while it works for one of these, and the
// replies to all of them. A transaction that fails on its way is followed by no BinderReceived.
type BinderTransaction struct {
	DebugID   int32 // unique while the system runs, until it wraps
	Tgid      uint32
	ToTgid    uint32
	ToTid     uint32 // 0: any thread of the process
	Code      uint32 // what is asked for; of replies mostly 0
	Flags     uint32
	Node      int32 // the object that is called, by its debug id; 0 for replies
	InReplyTo int32 // of a reply: the DebugID of what is answered, 0 if that was received before the recording
	Reply     uint8 // 1: a reply
	_         [7]uint8
} // 40 bytes

// BinderReceived is KindBinderReceived's body; Header.Tid is the thread that received the transaction or reply.
type BinderReceived struct {
	DebugID int32
	Tgid    uint32
} // 8 bytes

// BinderDone is KindBinderDone's body; Header.Tid is a thread that had received the transaction, which was one-way or
// has not been answered, and now waits for the next.
type BinderDone struct {
	DebugID int32
	Tgid    uint32
} // 8 bytes

// DecodeSyscallWait reads KindSyscallWait's body.
func DecodeSyscallWait(b []byte) SyscallWait {
	b = b[:syscallWaitSize]
	return SyscallWait{
		StartNs: u64(b, 0), Object: u64(b, 8), Key: u64(b, 16), Ret: int64(u64(b, 24)), Tgid: u32(b, 32), FD: int32(u32(b, 36)),
		Switches: u32(b, 40), Nr: binary.LittleEndian.Uint16(b[44:]), Call: WaitCall(b[46]), File: FileKind(b[47]),
	}
}

// DecodeFutexWake reads KindFutexWake's body.
func DecodeFutexWake(b []byte) FutexWake {
	b = b[:futexWakeSize]
	return FutexWake{
		StartNs: u64(b, 0), Address: u64(b, 8), Key: u64(b, 16), Tgid: u32(b, 24), Woken: int32(u32(b, 28)), Op: WakeOp(b[32]),
	}
}

// DecodeBinderTransaction reads KindBinderTransaction's body.
func DecodeBinderTransaction(b []byte) BinderTransaction {
	b = b[:binderTransactionSize]
	return BinderTransaction{
		DebugID: int32(u32(b, 0)), Tgid: u32(b, 4), ToTgid: u32(b, 8), ToTid: u32(b, 12), Code: u32(b, 16), Flags: u32(b, 20),
		Node: int32(u32(b, 24)), InReplyTo: int32(u32(b, 28)), Reply: b[32],
	}
}

// DecodeBinderReceived reads KindBinderReceived's body.
func DecodeBinderReceived(b []byte) BinderReceived {
	b = b[:binderReceivedSize]
	return BinderReceived{DebugID: int32(u32(b, 0)), Tgid: u32(b, 4)}
}

// DecodeBinderDone reads KindBinderDone's body.
func DecodeBinderDone(b []byte) BinderDone {
	b = b[:binderDoneSize]
	return BinderDone{DebugID: int32(u32(b, 0)), Tgid: u32(b, 4)}
}

// AppendSyscallWait appends a KindSyscallWait event.
func AppendSyscallWait(b []byte, h Header, e SyscallWait) []byte {
	b = appendHeader(b, h, KindSyscallWait)
	b = put64(b, e.StartNs)
	b = put64(b, e.Object)
	b = put64(b, e.Key)
	b = put64(b, uint64(e.Ret))
	b = put32(b, e.Tgid)
	b = put32(b, uint32(e.FD))
	b = put32(b, e.Switches)
	b = binary.LittleEndian.AppendUint16(b, e.Nr)
	return append(b, byte(e.Call), byte(e.File))
}

// AppendFutexWake appends a KindFutexWake event.
func AppendFutexWake(b []byte, h Header, e FutexWake) []byte {
	b = appendHeader(b, h, KindFutexWake)
	b = put64(b, e.StartNs)
	b = put64(b, e.Address)
	b = put64(b, e.Key)
	b = put32(b, e.Tgid)
	b = put32(b, uint32(e.Woken))
	return append(b, byte(e.Op), 0, 0, 0, 0, 0, 0, 0)
}

// AppendBinderTransaction appends a KindBinderTransaction event.
func AppendBinderTransaction(b []byte, h Header, e BinderTransaction) []byte {
	b = appendHeader(b, h, KindBinderTransaction)
	for _, v := range []uint32{uint32(e.DebugID), e.Tgid, e.ToTgid, e.ToTid, e.Code, e.Flags, uint32(e.Node), uint32(e.InReplyTo)} {
		b = put32(b, v)
	}
	return append(b, e.Reply, 0, 0, 0, 0, 0, 0, 0)
}

// AppendBinderReceived appends a KindBinderReceived event.
func AppendBinderReceived(b []byte, h Header, e BinderReceived) []byte {
	b = appendHeader(b, h, KindBinderReceived)
	b = put32(b, uint32(e.DebugID))
	return put32(b, e.Tgid)
}

// AppendBinderDone appends a KindBinderDone event.
func AppendBinderDone(b []byte, h Header, e BinderDone) []byte {
	b = appendHeader(b, h, KindBinderDone)
	b = put32(b, uint32(e.DebugID))
	return put32(b, e.Tgid)
}
