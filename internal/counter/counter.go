// Package counter reads the processor counter that records carry, and relates it to CLOCK_BOOTTIME.
//
// On amd64 it is the TSC, on arm64 the virtual count of the generic timer (CNTVCT_EL0). Both run at a constant rate on
// every processor that braid is for, in suspend too, as CLOCK_BOOTTIME does.
package counter

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Sample is one bracketed reading: the clock was read between the two counter values.
type Sample struct {
	Before, After uint64 // counter
	Boottime      uint64 // CLOCK_BOOTTIME, ns
}

// Now returns the counter. On amd64 the read is not serialised: it may be early or late by some tens of instructions. On
// arm64 it stays where it is among loads and stores that have been done. Safe for concurrent use.
func Now() uint64 { return now() }

// Hz returns the counter's frequency as the processor states it, or 0 where it does not (amd64: the trace's own clock
// samples tell).
func Hz() uint64 { return hz() }

// Name is the counter's name in traces.
const Name = name

// Boottime returns CLOCK_BOOTTIME in ns.
func Boottime() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("reading CLOCK_BOOTTIME: %w", err)
	}
	return uint64(ts.Nano()), nil
}

// Take returns the narrowest of a few bracketed readings.
func Take() (Sample, error) {
	var best Sample
	for range 8 {
		b := now()
		t, err := Boottime()
		a := now()
		if err != nil {
			return Sample{}, err
		}
		if best.Boottime == 0 || a-b < best.After-best.Before {
			best = Sample{Before: b, After: a, Boottime: t}
		}
	}
	return best, nil
}
