package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// counterNames are enum counter of events.h; layout_test.go compares the two.
var counterNames = [...]string{
	"kernel_ring_full_switch",
	"kernel_ring_full_waking",
	"kernel_ring_full_fork",
	"kernel_ring_full_exec",
	"kernel_ring_full_exit",
	"kernel_ring_full_rename",
	"kernel_ring_full_migrate",
	"kernel_ring_full_freq",
	"kernel_ring_full_idle",
	"kernel_ring_full_affinity",
	"kernel_ring_full_rq_issue",
	"kernel_ring_full_rq_complete",
	"kernel_ring_full_fsync",
	"kernel_ring_full_major_fault",
	"kernel_ring_full_reclaim",
	"kernel_ring_full_syscall_wait",
	"kernel_ring_full_futex_wake",
	"kernel_ring_full_announce",
	"kernel_ring_full_fired",
	"kernel_ring_full_binder_transaction",
	"kernel_ring_full_binder_received",
	"kernel_ring_full_binder_done",
	"kernel_map_full_targets",
	"kernel_map_full_processes",
	"kernel_map_full_bios",
	"kernel_map_full_requests",
	"kernel_map_full_calls",
	"kernel_map_full_faults",
	"kernel_map_full_reclaims",
	"kernel_map_full_announced",
	"kernel_map_full_threads",
	"kernel_map_full_methods",
	"kernel_map_full_syscalls",
	"kernel_map_full_binder",
}

// missCounter is a program whose runs the kernel leaves out when the program is already running on that CPU.
type missCounter struct {
	name string
	prog *ebpf.Program
}

// Lost returns how much was lost since Load, by cause; causes that did not occur are left out, so that it is empty if
// nothing was lost. kernel_ring_full_K counts events of kind K that found no room, kernel_map_full_M what a full map did
// not take (events.h says what is then missing), kernel_missed_UNIT_HOOK runs of a program that the kernel left out, kernel_missed_probe the same of all
// probes.
// Call it before Close.
func (r *Recorder) Lost() (map[string]uint64, error) {
	lost := map[string]uint64{}
	var perCPU []uint64
	for i, name := range counterNames {
		if err := r.maps["counters"].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read loss counter %s: %w", name, err)
		}
		for _, n := range perCPU {
			if n != 0 {
				lost[name] += n
			}
		}
	}
	for _, m := range r.misses {
		stats, err := m.prog.Stats()
		if err != nil {
			return nil, fmt.Errorf("read loss counter %s: %w", m.name, err)
		}
		if stats.RecursionMisses != 0 {
			lost[m.name] += stats.RecursionMisses
		}
	}
	missed, err := r.missedProbes()
	if err != nil {
		return nil, err
	}
	if missed != 0 {
		lost["kernel_missed_probe"] = missed
	}
	return lost, nil
}
