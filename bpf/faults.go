package bpf

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// perfEvents are the file descriptors of one perf event a CPU; closing them detaches the program.
type perfEvents []int

// attachMajorFaults runs the program at every major fault of the machine. It is attached by ioctl, since links for perf
// events came only with Linux 5.15. CPUs that come online later are not covered.
func attachMajorFaults(prog *ebpf.Program) (closer, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1,
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	var events perfEvents
	for cpu := range cpus {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) { // the CPU is offline
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the perf event of CPU %d: %w", cpu, err), events.Close())
		}
		events = append(events, fd)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()); err != nil {
			return nil, errors.Join(fmt.Errorf("set the program of CPU %d's perf event: %w", cpu, err), events.Close())
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return nil, errors.Join(fmt.Errorf("enable the perf event of CPU %d: %w", cpu, err), events.Close())
		}
	}
	return events, nil
}

func (p perfEvents) Close() error {
	var errs []error
	for _, fd := range p {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
