package kevent

import (
	"fmt"
	"strconv"
)

var waitCallNames = [...]string{
	WaitOther:       "other",
	WaitFutexWait:   "futex_wait",
	WaitFutexLockPI: "futex_lock_pi",
	WaitFutexWaitv:  "futex_waitv",
	WaitEpollWait:   "epoll_wait",
	WaitPoll:        "poll",
	WaitSelect:      "select",
	WaitRead:        "read",
	WaitWrite:       "write",
	WaitAccept:      "accept",
	WaitConnect:     "connect",
	WaitRecv:        "recv",
	WaitSend:        "send",
	WaitNanosleep:   "nanosleep",
	WaitChild:       "child",
	WaitIoctl:       "ioctl",
	WaitFileLock:    "file_lock",
	WaitSignal:      "signal",
	WaitSync:        "sync",
	WaitSplice:      "splice",
	WaitAIO:         "aio",
	WaitIPC:         "ipc",
	WaitOpen:        "open",
	WaitMemory:      "memory",
}

// String returns the family's name.
func (c WaitCall) String() string {
	if int(c) < len(waitCallNames) {
		return waitCallNames[c]
	}
	return "wait" + strconv.Itoa(int(c))
}

var fileKindNames = [...]string{
	FileNone:        "none",
	FileRegular:     "regular",
	FileDirectory:   "directory",
	FilePipe:        "pipe",
	FileUnixSocket:  "unix_socket",
	FileInetSocket:  "inet_socket",
	FileOtherSocket: "other_socket",
	FileTTY:         "tty",
	FileBinder:      "binder",
	FileCharDevice:  "char_device",
	FileBlockDevice: "block_device",
	FileEventfd:     "eventfd",
	FileEpoll:       "epoll",
	FileTimerfd:     "timerfd",
	FileSignalfd:    "signalfd",
	FileInotify:     "inotify",
	FileOther:       "other",
}

// String returns the kind's name.
func (f FileKind) String() string {
	if int(f) < len(fileKindNames) {
		return fileKindNames[f]
	}
	return "file" + strconv.Itoa(int(f))
}

var wakeOpNames = [...]string{
	WakeFutexWake:     "futex_wake",
	WakeFutexRequeue:  "futex_requeue",
	WakeFutexWakeOp:   "futex_wake_op",
	WakeFutexUnlockPI: "futex_unlock_pi",
}

// String returns the operation's name.
func (o WakeOp) String() string {
	if int(o) < len(wakeOpNames) {
		return wakeOpNames[o]
	}
	return "wake" + strconv.Itoa(int(o))
}

// Futex reports whether the call waits at a futex, whose address is then SyscallWait.Object.
func (c WaitCall) Futex() bool {
	return c == WaitFutexWait || c == WaitFutexLockPI || c == WaitFutexWaitv
}

func appendSyscallWaitText(b []byte, h Header, e SyscallWait) []byte {
	b = fmt.Appendf(b, " tgid=%d call=%s nr=%d", e.Tgid, e.Call, e.Nr)
	b = appendFlag(b, h, FlagCompat, " compat")
	switch {
	case e.Call.Futex():
		b = fmt.Appendf(b, " address=%#x", e.Object)
	case e.FD >= 0:
		b = fmt.Appendf(b, " fd=%d file=%s object=%d", e.FD, e.File, e.Object)
	}
	if e.Key != 0 {
		b = fmt.Appendf(b, " key=%#x", e.Key)
	}
	return fmt.Appendf(b, " ns=%d switches=%d ret=%d", since(h.Time, e.StartNs), e.Switches, e.Ret)
}

func appendFutexWakeText(b []byte, h Header, e FutexWake) []byte {
	b = fmt.Appendf(b, " tgid=%d op=%s address=%#x", e.Tgid, e.Op, e.Address)
	b = appendFlag(b, h, FlagCompat, " compat")
	if e.Key != 0 {
		b = fmt.Appendf(b, " key=%#x", e.Key)
	}
	return fmt.Appendf(b, " woken=%d ns=%d", e.Woken, since(h.Time, e.StartNs))
}

func appendBinderText(b []byte, e BinderTransaction) []byte {
	b = fmt.Appendf(b, " tgid=%d id=%d to=%d/%d code=%d flags=%#x node=%d", e.Tgid, e.DebugID, e.ToTgid, e.ToTid, e.Code, e.Flags, e.Node)
	if e.Reply != 0 {
		b = fmt.Appendf(b, " reply to=%d", e.InReplyTo)
	}
	if e.Flags&BinderOneWay != 0 {
		b = append(b, " one-way"...)
	}
	return b
}
