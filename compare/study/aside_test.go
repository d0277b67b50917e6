package study

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStepAside(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	last := -1
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			last = cpu
		}
	}
	undo, err := StepAside([]int{last})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SchedGetaffinity(0, &during); err != nil {
		t.Fatal(err)
	}
	if alone := before.Count() == 1; during.IsSet(last) != alone {
		t.Errorf("braid may run on the measured processor: %v; it is the only one: %v", during.IsSet(last), alone)
	}
	undo()
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("afterwards it may run on %d processors, before on %d: %v", after.Count(), before.Count(), err)
	}
}
