package machine

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// A batch is short against what the kernel gives a thread at once, and long against the two clock reads around it.
const (
	syscallBatches = 31
	syscallBatch   = 2000
)

// SyscallNS measures what a system call costs that does nothing (getpid) on a processor: ns of the thread's own time, the median of
// batches. Nothing that enters the kernel is cheaper. It takes some tens of milliseconds, in a thread of its own that ends with it.
func SyscallNS(cpu int) (float64, error) {
	type answer struct {
		ns  float64
		err error
	}
	c := make(chan answer)
	go func() {
		runtime.LockOSThread() // and never unlock it: nobody else shall run pinned
		ns, err := syscallNS(cpu)
		c <- answer{ns, err}
	}()
	a := <-c
	if a.err != nil {
		return 0, fmt.Errorf("measuring a system call on processor %d: %w", cpu, a.err)
	}
	return a.ns, nil
}

func syscallNS(cpu int) (float64, error) {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return 0, err
	}
	took := make([]float64, syscallBatches)
	for i := range took {
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before); err != nil {
			return 0, err
		}
		for range syscallBatch {
			unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		}
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after); err != nil {
			return 0, err
		}
		took[i] = float64(after.Nano()-before.Nano()) / syscallBatch
	}
	slices.Sort(took)
	return took[syscallBatches/2], nil
}
