// Package kevent is the binary form of kernel events: what the eBPF programs put into their ring buffer, what the
// trace file keeps, and what the timeline reads. The C side is bpf/events.h; a test compares both.
//
// An event is a fixed header of 16 bytes and a body whose size follows from the kind. All fields are little-endian
// and naturally aligned; every event's size is a multiple of 8. Times are CLOCK_BOOTTIME nanoseconds
// (bpf_ktime_get_boot_ns, Linux 5.8 and later). Thread and process ids are those of the initial pid namespace.
package kevent

// Kind says which body follows the header.
type Kind uint8

// The kinds of event. Their values are part of the trace file's format and never change meaning.
const (
	KindSwitch     Kind = 1  // a CPU went from one thread to another
	KindWaking     Kind = 2  // a sleeping thread was made runnable
	KindFork       Kind = 3  // a thread or process was created
	KindExec       Kind = 4  // a process executed a new program
	KindExit       Kind = 5  // a thread ended
	KindRename     Kind = 6  // a thread changed its name
	KindMigrate    Kind = 7  // a runnable thread was moved to another CPU's queue
	KindFreq       Kind = 8  // a CPU's frequency changed
	KindIdle       Kind = 9  // which CPUs are idle
	KindAffinity   Kind = 10 // which CPUs a thread may use
	KindRqIssue    Kind = 16 // a block request went to the device
	KindRqComplete Kind = 17 // a block request came back
	KindFsync      Kind = 18 // an fsync-family call returned; the header's time is its end
	KindMajorFault Kind = 19 // a major page fault ended; the header's time is its end
	KindReclaim    Kind = 20 // direct reclaim ended; the header's time is its end
	// The wait unit's; waits.go has their bodies.
	KindSyscallWait       Kind = 21 // a system call in which the thread slept returned; the header's time is its end
	KindFutexWake         Kind = 22 // a futex call that woke somebody returned
	KindAnnounce          Kind = 24 // a process that matches, or is known, began, changed or ended
	KindFired             Kind = 25 // a process went over one of its limits
	KindBinderTransaction Kind = 26 // a binder transaction or reply was sent
	KindBinderReceived    Kind = 27 // a thread received one
	KindBinderDone        Kind = 28 // a thread that had received a transaction asked for work again, without a reply
	KindLost              Kind = 32 // the recorder noticed that something was lost; not from the kernel
)

// HeaderSize is the length of Header in bytes.
const HeaderSize = 16

// Header starts every event.
type Header struct {
	Time uint64 // CLOCK_BOOTTIME, ns
	Tid  uint32 // the thread that the event is about; see each body
	CPU  uint16 // the CPU on which the event was recorded
	Kind Kind
	// Flags depend on the kind; see the Flag constants.
	Flags uint8
}

// The flags of Header.Flags.
const (
	// FlagPreempted, on KindSwitch: the outgoing thread was still runnable.
	FlagPreempted uint8 = 1 << 0
	// FlagPrevTarget and FlagNextTarget, on KindSwitch: the outgoing or incoming thread belongs to a traced process.
	FlagPrevTarget uint8 = 1 << 1
	FlagNextTarget uint8 = 1 << 2
	// FlagPrevServer and FlagNextServer, on KindSwitch: the outgoing or incoming thread belongs to no traced process, but
	// works for a binder transaction of one: it was woken for it, or received it, and has not answered yet.
	FlagPrevServer uint8 = 1 << 4
	FlagNextServer uint8 = 1 << 5
	// FlagNew, on KindWaking: the thread's first wake-up after its creation.
	FlagNew uint8 = 1 << 0
	// FlagServer, on KindWaking: the woken thread belongs to no traced process, but works for a binder transaction of one,
	// or is woken to.
	FlagServer uint8 = 1 << 1
	// FlagBehind, on KindWaking and KindMigrate: the CPU in whose queue the thread now waits was not idle.
	FlagBehind uint8 = 1 << 2
	// FlagThread, on KindFork: a thread of the same process, not a process.
	FlagThread uint8 = 1 << 0
	// FlagIndirect, on KindRqIssue: issued by a kernel thread while a traced thread was within an fsync-family call;
	// Header.Tid is the kernel thread. Its KindRqComplete carries it as well.
	FlagIndirect uint8 = 1 << 0
	// FlagMatch, on KindAnnounce: the process is one of those that were asked for, as it is now.
	FlagMatch uint8 = 1 << 0
	// FlagCompat, on KindSyscallWait and KindFutexWake: a call of a 32-bit program on a 64-bit kernel.
	FlagCompat uint8 = 1 << 0
	// FlagIOWait, on KindSwitch: the outgoing thread waits for I/O (task_struct.in_iowait).
	FlagIOWait uint8 = 1 << 3
)

// Switch is KindSwitch's body; Header.Tid is the outgoing thread.
//
// A switch with no flag of a target or server only ends the slice of a foreign thread that had followed such a
// thread on this CPU: its NextTid, NextTgid, NextPrio and NextComm are 0 and mean "not told", not the idle task.
type Switch struct {
	PrevTgid uint32
	// PrevState is task_struct.__state as the scheduler saw it, 0 if the thread was preempted: TASK_* of
	// include/linux/sched.h (see the State constants). Before Linux 5.18 it is read a moment later, so that a thread
	// which another CPU is already waking shows StateWaking: it slept, whether interruptibly is not known.
	PrevState uint32
	PrevPrio  int32
	NextTid   uint32
	NextTgid  uint32
	NextPrio  int32
	NextComm  [16]byte
} // 40 bytes

// Waking is KindWaking's body; Header.Tid is the thread that was woken, Header.CPU the CPU of the waker.
type Waking struct {
	WakerTid  uint32
	WakerTgid uint32
	TargetCPU uint32
	Prio      int32
	Comm      [16]byte // of the woken thread
	Tgid      uint32   // of the woken thread
	_         uint32
} // 40 bytes

// Fork is KindFork's body; Header.Tid is the new thread.
type Fork struct {
	Tgid       uint32
	ParentTid  uint32
	ParentTgid uint32
	_          uint32
	Comm       [16]byte
} // 32 bytes

// Exec is KindExec's body; Header.Tid is the thread (now the only one of its process).
type Exec struct {
	Tgid   uint32
	OldTid uint32
	Comm   [16]byte
} // 24 bytes

// Exit is KindExit's body; Header.Tid is the thread that ended.
type Exit struct {
	Tgid uint32
	_    uint32
} // 8 bytes

// Rename is KindRename's body.
type Rename struct {
	Tgid uint32
	_    uint32
	Comm [16]byte
} // 24 bytes

// Migrate is KindMigrate's body.
type Migrate struct {
	FromCPU uint32
	ToCPU   uint32
} // 8 bytes

// Freq is KindFreq's body; Header.Tid is 0.
type Freq struct {
	KHz uint32
	CPU uint32
} // 8 bytes

// Idle is KindIdle's body; Header.Tid is 0. It tells which CPUs are idle from its time on, and comes where that matters
// to a traced thread: when one begins to run on a CPU that is weaker than others, or to wait behind others for a CPU
// (FlagBehind, or FlagPreempted), if it is not what the last Idle event told; and whenever it changes while one does.
// At other times it is not kept up to date. It is missing on machines with more than 64 CPUs.
type Idle struct {
	Idle uint64 // bit a CPU, bit 0 first
} // 8 bytes

// Affinity is KindAffinity's body; Header.Tid is the thread. A thread may use all CPUs until an event says otherwise.
// Changes are noticed when the thread begins to run or wait as in Idle.
type Affinity struct {
	Allowed uint64 // bit a CPU, bit 0 first; bits of CPUs that do not exist are 0
} // 8 bytes

// The states of Switch.PrevState that matter here; other bits are modifiers (include/linux/sched.h, Linux 6.12).
const (
	StateSleeping uint32 = 0x0001 // TASK_INTERRUPTIBLE
	StateBlocked  uint32 = 0x0002 // TASK_UNINTERRUPTIBLE
	StateStopped  uint32 = 0x0004 // __TASK_STOPPED
	StateTraced   uint32 = 0x0008 // __TASK_TRACED
	StateDead     uint32 = 0x0080 // TASK_DEAD
	StateWaking   uint32 = 0x0200 // TASK_WAKING
	StateNoLoad   uint32 = 0x0400 // TASK_NOLOAD; with StateBlocked it is TASK_IDLE, a sleep
)

// Op is what a block request does (REQ_OP_*, include/linux/blk_types.h).
type Op uint8

// The operations that are told apart.
const (
	OpRead    Op = 0
	OpWrite   Op = 1
	OpFlush   Op = 2
	OpDiscard Op = 3
	OpOther   Op = 255
)

// Rq is the body of KindRqIssue and KindRqComplete. Header.Tid is the thread that issued the request to the driver,
// on both events; it differs from OwnerTid where a kernel worker issued it. A request that the device completes in
// parts has one KindRqComplete for each, with the part's sector and bytes.
type Rq struct {
	ID       uint64 // the same on issue and completion; unique within a trace
	Sector   uint64 // in units of 512 bytes
	IssueNs  uint64 // on completion: when it was issued, CLOCK_BOOTTIME ns; 0 if that was not seen
	Dev      uint32 // kernel encoding: major<<20 | minor
	Bytes    uint32
	OwnerTid uint32 // the thread of a traced process that submitted the request, 0 if unknown
	OwnerPid uint32 // its process
	Op       Op
	_        [3]uint8
	Error    int32 // on completion: a negative errno, or 0
} // 48 bytes

// SyncCall says which call a Fsync event is about.
type SyncCall uint32

// The fsync family.
const (
	CallFsync         SyncCall = 0
	CallFdatasync     SyncCall = 1
	CallSync          SyncCall = 2
	CallSyncfs        SyncCall = 3
	CallMsync         SyncCall = 4
	CallSyncFileRange SyncCall = 5
)

// Fsync is KindFsync's body; Header.Tid is the caller.
type Fsync struct {
	StartNs uint64 // CLOCK_BOOTTIME ns
	Tgid    uint32
	Call    SyncCall
	Ret     int64
} // 24 bytes

// MajorFault is KindMajorFault's body; Header.Tid is the thread that faulted.
type MajorFault struct {
	StartNs uint64 // when the fault began; 0 where only its count is known
	Address uint64
	Tgid    uint32
	_       uint32
} // 24 bytes

// Reclaim is KindReclaim's body; Header.Tid is the thread that had to reclaim memory itself.
type Reclaim struct {
	StartNs   uint64
	Tgid      uint32
	Reclaimed uint32 // pages
} // 16 bytes

// Announcement says what an Announce event tells of a process.
type Announcement uint8

// The announcements.
const (
	AnnounceFork   Announcement = 0 // it was created, by a process that is known or as one that matches
	AnnounceExec   Announcement = 1 // it executed a program
	AnnounceRename Announcement = 2 // its main thread changed its name, other than by executing a program
	AnnounceExit   Announcement = 3 // its last thread ended
)

// Announce is KindAnnounce's body; Header.Tid is the process's thread that did it, on AnnounceFork its first one.
type Announce struct {
	Cgroup     uint64 // its cgroup's id in the version 2 hierarchy: the inode of its folder
	Tgid       uint32
	ParentTgid uint32
	UID        uint32 // effective, as the initial user namespace has it
	What       Announcement
	Signal     uint8 // on AnnounceExit: what ended the process, 0 if it did so itself
	_          [2]uint8
	Comm       [16]byte // of the thread; on AnnounceRename the new one
} // 40 bytes

// Limit says which of a process's limits a Fired event is about.
type Limit uint8

// The limits. All but LimitMajorFaults are durations, known at their end.
const (
	LimitRunQueue    Limit = 0 // a thread was runnable and got no CPU
	LimitSleeping    Limit = 1 // a thread slept, until it was woken
	LimitBlocked     Limit = 2 // a thread was blocked (uninterruptible), until it was woken
	LimitBlockIO     Limit = 3 // a block request, from its issue to its completion; Header.Tid is its owner
	LimitFsync       Limit = 4 // an fsync-family call
	LimitReclaim     Limit = 5 // direct reclaim
	LimitMajorFaults Limit = 6 // major faults of the process within a second
	LimitMethod      Limit = 8 // a call of a method at which a probe is, known at its end; Fired.Cookie says which
)

// Limits is how many limits a process has: LimitMethod is not one of them.
const Limits = 7

// Fired is KindFired's body; Header.Tid is the thread, Header.Time when the limit was known to be exceeded.
type Fired struct {
	Value      uint64 // ns; with LimitMajorFaults, faults
	Limit      uint64 // what Value is greater than
	Suppressed uint64 // how often this limit was exceeded and not told, for the cooldown's sake, since its process was added; with LimitMethod, the cookie
	Tgid       uint32
	What       Limit
	_          [3]uint8
} // 32 bytes

// Cookie returns what the caller of bpf.Recorder.WatchMethod named its probe by; with other limits it means nothing.
func (f Fired) Cookie() uint32 { return uint32(f.Suppressed) }

// Lost is KindLost's body: between SinceNs and the header's time, Count events were lost for the reason that Name, a
// loss counter of package bpf, gives. The recorder writes it into the stream when a counter has grown; Header.Tid is 0.
type Lost struct {
	SinceNs uint64 // CLOCK_BOOTTIME ns
	Count   uint64
	Name    [32]byte // zero-padded, cut if longer
} // 48 bytes
