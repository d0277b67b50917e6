package bpf

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"braid/internal/kevent"

	"golang.org/x/sys/unix"
)

// extents are where a file's bytes are on its disk, in bytes from the disk's start.
type extents [][2]uint64 // start, end

// within returns how many bytes of a request are the file's.
func (x extents) within(rq kevent.Rq) (n uint64) {
	start := rq.Sector << 9
	end := start + uint64(rq.Bytes)
	for _, e := range x {
		if lo, hi := max(start, e[0]), min(end, e[1]); lo < hi {
			n += hi - lo
		}
	}
	return n
}

// fileExtents asks the file system: FS_IOC_FIEMAP, include/uapi/linux/fiemap.h, Linux 6.12.
func fileExtents(t *testing.T, path string) (found extents) {
	t.Helper()
	const fsIocFiemap = 0xC020660B
	type fiemapExtent struct {
		logical, physical, length uint64
		_                         [2]uint64
		flags                     uint32
		_                         [3]uint32
	}
	var m struct {
		start, length       uint64
		flags, mapped, room uint32
		_                   uint32
		extents             [512]fiemapExtent
	}
	m.length, m.room = ^uint64(0), uint32(len(m.extents))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fsIocFiemap, uintptr(unsafe.Pointer(&m))); errno != 0 {
		t.Fatalf("ask for the extents of %s: %v", path, errno)
	}
	if m.mapped == 0 || m.mapped == m.room {
		t.Fatalf("%s has %d extents", path, m.mapped)
	}
	first := partitionStart(t, filepath.Dir(path))
	for _, e := range m.extents[:m.mapped] {
		found = append(found, [2]uint64{first + e.physical, first + e.physical + e.length})
	}
	return found
}

// partitionStart returns where the directory's device begins on its disk, in bytes.
func partitionStart(t *testing.T, dir string) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", deviceOf(t, dir), "start"))
	if os.IsNotExist(err) {
		return 0 // a whole disk
	}
	if err != nil {
		t.Fatal(err)
	}
	sectors, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sectors << 9
}
