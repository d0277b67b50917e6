package sample

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"braid/internal/counter"
)

// maxAncestors bounds how far up a process's parents are looked at.
const maxAncestors = 32

// tick is the resolution of a process's start time, in ns.
const tick = 10_000_000

// inherits reports whether a process is sampled already: it was attached to, or began under a parent that was sampled then.
// It can't tell if a parent in between has ended. What is not is noted as attached to.
func (s *Sampler) inherits(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, started := origin(pid)
	ancestor := pid
	for range maxAncestors {
		if began, known := s.began[ancestor]; known {
			return started+tick >= began || ancestor == pid
		}
		if ancestor, _ = origin(ancestor); ancestor <= 1 {
			break
		}
	}
	s.began[pid], _ = counter.Boottime()
	return false
}

// origin returns a process's parent and its start, CLOCK_BOOTTIME ns rounded down to a tick; 0 if it has gone.
func origin(pid int) (parent int, started uint64) {
	b, err := os.ReadFile(procPath(uint32(pid), "stat"))
	if err != nil {
		return 0, 0
	}
	// After the name, which may hold anything but its own end: state, parent, ..., and starttime as the 20th.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(f[1])
	started, _ = strconv.ParseUint(f[19], 10, 64)
	return parent, started * tick
}
