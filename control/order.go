//go:build !amd64

package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// weak says that another processor's stores may be seen in another order than its own (C8).
const weak = true

// barrier makes every thread that was running when it was called pass a full memory barrier before it returns (C8):
// membarrier(2), MEMBARRIER_CMD_GLOBAL, since Linux 4.3. Threads that were not running have passed one when they lost
// their processor. It waits for a grace period of the kernel's, some milliseconds or tens of them.
//
// The kernel refuses it where a processor runs without ticks (nohz_full). Then time has to do: architecture and
// processors let a store become visible in finite time, and a store buffer drains in microseconds.
func barrier() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (include/uapi/linux/membarrier.h).
const membarrierGlobal = 1
