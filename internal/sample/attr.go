package sample

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// DefaultHz is how often a thread is sampled in each second that it runs. It is odd so that samples do not keep step with
// timers.
const DefaultHz = 99

// DefaultStackBytes is how much of a stack is copied.
const DefaultStackBytes = 16 << 10

// MaxStackBytes is the most of a stack that is copied: what fits into a record, whose size is a 16-bit number, beside the rest of it.
const MaxStackBytes = 60 << 10

// Options say what to sample. The zero value is the default.
type Options struct {
	// Hz is in samples for each second that a thread runs; 0: DefaultHz. The kernel has a limit,
	// /proc/sys/kernel/perf_event_max_sample_rate.
	Hz int
	// Stacks is how user stacks are taken: by frame pointers, by unwind tables, or by both (StackAuto); StackNone stands for StackAuto.
	Stacks tracefile.StackWay
	// StackBytes is how much of a stack is copied, a multiple of 8; 0: DefaultStackBytes. At most 60 KiB.
	StackBytes int
	// NoCycles takes the timer even where there is a counter of cycles.
	NoCycles bool
	// UserOnly leaves the kernel out.
	UserOnly bool
}

func (o *Options) check() error {
	if o.Hz == 0 {
		o.Hz = DefaultHz
	}
	if o.Stacks == tracefile.StackNone {
		o.Stacks = tracefile.StackAuto
	}
	if o.StackBytes == 0 {
		o.StackBytes = DefaultStackBytes
	}
	limit := maxRate()
	switch {
	case o.Hz < 1 || limit > 0 && o.Hz > limit:
		return fmt.Errorf("%d samples a second: this kernel allows 1 to %d (/proc/sys/kernel/perf_event_max_sample_rate)", o.Hz, limit)
	case o.StackBytes < 1024 || o.StackBytes > MaxStackBytes || o.StackBytes%8 != 0:
		return fmt.Errorf("%d bytes of stack: want 1024 to %d, a multiple of 8", o.StackBytes, MaxStackBytes)
	}
	return nil
}

func maxRate() int {
	return number("/proc/sys/kernel/perf_event_max_sample_rate", 0)
}

func number(path string, otherwise int) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return otherwise
	}
	return n
}

// The fields of a sample, in the order of the record (include/uapi/linux/perf_event.h, Linux 6.12): ip; pid, tid; time;
// cpu; period; call chain; registers; stack.
const sampleType = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU |
	unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN

// kind is the event that this machine has and that this user may open.
type kind struct {
	attr  unix.PerfEventAttr
	event tracefile.SampleEvent
	// kernel says that kernel frames may be had.
	kernel bool
	// monotonic says that times are of CLOCK_MONOTONIC: those of an interrupt that can't be masked can't be of CLOCK_BOOTTIME.
	monotonic bool
	copied    bool // registers and stacks are copied
	notes     []string
}

// ErrPermission says that this user may not open performance events.
var ErrPermission = errors.New("not permitted")

// choose finds the best event by trying on this thread.
func choose(o Options) (*kind, error) {
	k := &kind{kernel: !o.UserOnly}
	a := &k.attr
	a.Size = uint32(unsafe.Sizeof(*a))
	a.Type, a.Config = unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES
	k.event = tracefile.SampleCycles
	a.Sample = uint64(o.Hz)
	a.Sample_type = sampleType
	a.Bits = unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitFreq | unix.PerfBitExcludeHv | unix.PerfBitExcludeGuest |
		unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask |
		unix.PerfBitSampleIDAll | unix.PerfBitUseClockID
	a.Clockid = unix.CLOCK_BOOTTIME
	if o.Stacks != tracefile.StackFP {
		k.copied = true
		a.Sample_type |= unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER
		a.Sample_regs_user, a.Sample_stack_user = regsMask, uint32(o.StackBytes)
		a.Bits |= unix.PerfBitExcludeCallchainUser
	}
	if o.NoCycles {
		k.clock()
	}
	if o.UserOnly {
		k.userOnly()
	}
	for {
		err := k.try()
		switch {
		case err == nil:
			k.countLosses()
			return k, nil
		case errors.Is(err, unix.EINVAL) && a.Clockid == unix.CLOCK_BOOTTIME:
			a.Clockid, k.monotonic = unix.CLOCK_MONOTONIC, true
		case (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && k.kernel:
			k.userOnly()
			k.notes = append(k.notes, fmt.Sprintf("samples have no kernel frames, and what threads do in the kernel is not sampled: "+
				"that needs root or CAP_PERFMON, or /proc/sys/kernel/perf_event_paranoid at 1 (it is %d; braid doctor: perf_paranoid)", paranoid()))
		case k.event == tracefile.SampleCycles && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM):
			k.clock()
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
			return nil, fmt.Errorf("sampling: %w: be root, or have CAP_PERFMON, or set /proc/sys/kernel/perf_event_paranoid to 2 (it is %d; braid doctor: perf_paranoid): %w",
				ErrPermission, paranoid(), err)
		case errors.Is(err, unix.ENOSYS):
			return nil, fmt.Errorf("sampling: this kernel has no performance events (CONFIG_PERF_EVENTS), or seccomp forbids them (braid doctor: config, seccomp): %w", err)
		default:
			return nil, fmt.Errorf("sampling: open a performance event: %w", err)
		}
	}
}

// formatLost makes reading an event tell how many of its samples were lost (PERF_FORMAT_LOST, since Linux 6.0). A ring tells of
// a loss only when something fits into it again.
const formatLost = 1 << 4

// countLosses asks for them, where the kernel knows.
func (k *kind) countLosses() {
	k.attr.Read_format = formatLost
	if k.try() != nil {
		k.attr.Read_format = 0
	}
}

func paranoid() int { return number("/proc/sys/kernel/perf_event_paranoid", -1) }

// clock takes the timer in place of cycles.
func (k *kind) clock() {
	k.event = tracefile.SampleCPUClock
	k.attr.Type, k.attr.Config = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK
	k.attr.Clockid, k.monotonic = unix.CLOCK_BOOTTIME, false
}

func (k *kind) userOnly() {
	k.kernel = false
	k.attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeCallchainKernel
}

// try opens the event on this thread, on CPU 0, and closes it.
func (k *kind) try() error {
	a := k.attr
	fd, err := unix.PerfEventOpen(&a, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
