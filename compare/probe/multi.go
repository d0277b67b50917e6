package probe

import (
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// traceUprobeSession is BPF_TRACE_UPROBE_SESSION of include/uapi/linux/bpf.h, Linux 6.13.
const traceUprobeSession = 57

// multiLink says what a link of many probes is put on. cilium/ebpf has such links, but not their sessions.
type multiLink struct {
	kind    uint32 // unix.BPF_TRACE_UPROBE_MULTI or traceUprobeSession
	atEnd   bool   // of the functions, in place of their entries
	path    string
	pid     int
	sites   []Site
	cookies []uint64 // one for each site; nil: none
}

// uprobeMultiAttr is the part of union bpf_attr for BPF_LINK_CREATE, include/uapi/linux/bpf.h of Linux 6.18.
type uprobeMultiAttr struct {
	progFD, targetFD, attachType, flags    uint32
	path, offsets, refCtrOffsets, cookies  uint64
	count, multiFlags, pid, reservedAtTail uint32
}

// linkFD is a link that this process holds. The kernel takes its probes out before Close returns.
type linkFD int

func (l linkFD) Close() error { return os.NewSyscallError("close", unix.Close(int(l))) }

// attachMulti fails with the kernel's error number.
func attachMulti(prog *ebpf.Program, m multiLink) (linkFD, error) {
	path, err := unix.BytePtrFromString(m.path)
	if err != nil {
		return -1, err
	}
	offsets, counters := make([]uint64, len(m.sites)), make([]uint64, len(m.sites))
	counted := false
	for i, s := range m.sites {
		offsets[i], counters[i] = s.Offset, s.Semaphore
		counted = counted || s.Semaphore != 0
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(path)
	pin.Pin(&offsets[0])
	attr := uprobeMultiAttr{
		progFD:     uint32(prog.FD()),
		attachType: m.kind,
		path:       uint64(uintptr(unsafe.Pointer(path))),
		offsets:    uint64(uintptr(unsafe.Pointer(&offsets[0]))),
		count:      uint32(len(m.sites)),
		pid:        uint32(m.pid),
	}
	if counted {
		pin.Pin(&counters[0])
		attr.refCtrOffsets = uint64(uintptr(unsafe.Pointer(&counters[0])))
	}
	if len(m.cookies) > 0 {
		pin.Pin(&m.cookies[0])
		attr.cookies = uint64(uintptr(unsafe.Pointer(&m.cookies[0])))
	}
	if m.atEnd {
		attr.multiFlags = unix.BPF_F_UPROBE_MULTI_RETURN
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return -1, os.NewSyscallError("bpf(BPF_LINK_CREATE)", errno)
	}
	runtime.KeepAlive(prog)
	return linkFD(fd), nil
}
