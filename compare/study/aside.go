package study

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// StepAside keeps this process, and what it starts from now on unless that pins itself, off the processors that are measured. It
// does nothing where no other processor is left. undo allows all threads again what the calling one was allowed before.
func StepAside(measured []int) (undo func(), err error) {
	undo = func() {}
	var old unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return undo, fmt.Errorf("reading which processors braid may use: %w", err)
	}
	rest, left := old, 0
	for _, cpu := range measured {
		rest.Clear(cpu)
	}
	if left = rest.Count(); left == 0 || left == old.Count() {
		return undo, nil
	}
	if err := threads(&rest); err != nil {
		return undo, err
	}
	return func() { threads(&old) }, nil // it may fail only where it failed before
}

// threads sets where all threads of this process may run. Threads that start meanwhile take it from those that start them, so it
// looks again until there is no new one.
func threads(set *unix.CPUSet) error {
	var done []int
	for {
		files, err := filepath.Glob("/proc/self/task/[0-9]*")
		if err != nil || len(files) == 0 {
			return fmt.Errorf("listing braid's threads: %w", os.ErrNotExist)
		}
		fresh := false
		for _, f := range files {
			tid, err := strconv.Atoi(filepath.Base(f))
			if err != nil || slices.Contains(done, tid) {
				continue
			}
			if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("moving braid off the measured processor: %w", err)
			}
			done, fresh = append(done, tid), true
		}
		if !fresh {
			return nil
		}
	}
}
