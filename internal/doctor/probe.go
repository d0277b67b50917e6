package doctor

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"braid/internal/counter"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Local is the machine that this process runs on. Traced and UprobeSession are left to the caller. It takes some 20 ms.
func Local() System {
	return System{
		Root: os.DirFS("/"),
		Arch: runtime.GOARCH,
		BPF:  func() error { return features.HaveMapType(ebpf.Array) },
		RingBuffer: func() error {
			return features.HaveMapType(ebpf.RingBuf)
		},
		TpBTF:       loadTpBTF,
		PMU:         countCycles,
		UprobeMulti: features.HaveBPFLinkUprobeMulti,
		CounterHz:   counterHz(),
		Clocks:      readClocks,
		RawTP:       func() error { return features.HaveProgramType(ebpf.RawTracepoint) },
		Free: func(path string) (uint64, error) {
			var st unix.Statfs_t
			if err := unix.Statfs(path, &st); err != nil {
				return 0, err
			}
			return st.Bavail * uint64(st.Bsize), nil
		},
	}
}

// loadTpBTF loads, but does not attach, a program for sched_switch that does nothing: the verifier then finds the
// tracepoint in the kernel's BTF.
func loadTpBTF() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "braid_doctor",
		Type:         ebpf.Tracing,
		AttachType:   ebpf.AttachTraceRawTp,
		AttachTo:     "sched_switch",
		License:      "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("load a tp_btf program: %w", err)
	}
	return prog.Close()
}

// countCycles opens and closes a counter of this thread's cycles in user mode.
func countCycles() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CPU_CYCLES,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitDisabled}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("count cycles: %w", err)
	}
	return unix.Close(fd)
}

// counterHz is the counter's frequency, measured where the processor does not state it.
func counterHz() uint64 {
	if hz := counter.Hz(); hz != 0 {
		return hz
	}
	a, err := counter.Take()
	if err != nil {
		return 0
	}
	time.Sleep(20 * time.Millisecond)
	b, err := counter.Take()
	if err != nil || b.Boottime <= a.Boottime {
		return 0
	}
	return uint64(float64(b.Before-a.Before) * 1e9 / float64(b.Boottime-a.Boottime))
}

func readClocks() (c Clocks, err error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return c, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	now, err := counter.Take()
	return Clocks{Counter: now.Before, Monotonic: time.Duration(ts.Nano()), Boot: time.Duration(now.Boottime)}, err
}
