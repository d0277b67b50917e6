package main

import (
	"braid/internal/recorder"
	"braid/internal/sample"
	"braid/internal/tracefile"

	"github.com/spf13/pflag"
)

// sampleUnit is what sampling is called among the units of --kernel.
const sampleUnit = "sample"

// sampleFlags are the flags of sampling.
type sampleFlags struct {
	hz     int
	stacks string
	size   string
	unit   bool // --kernel names it
}

func (s *sampleFlags) add(f *pflag.FlagSet) {
	f.IntVar(&s.hz, "sample", 0, "sample stacks this often in each second that a thread runs, such as 99")
	f.StringVar(&s.stacks, "stacks", "auto", "how stacks are walked: auto, dwarf (unwind tables) or fp (frame pointers)")
	f.StringVar(&s.size, "stack-size", "16K", "how much of each stack is copied for auto and dwarf")
}

// resolve returns the options of sampling, or nil if it was not asked for.
func (s *sampleFlags) resolve() (*sample.Options, error) {
	o := &sample.Options{Hz: s.hz}
	switch s.stacks {
	case "auto":
		o.Stacks = tracefile.StackAuto
	case "dwarf":
		o.Stacks = tracefile.StackDWARF
	case "fp":
		o.Stacks = tracefile.StackFP
	default:
		return nil, usageError("--stacks %s: want auto, dwarf or fp", s.stacks)
	}
	size, err := recorder.ParseSize(s.size)
	if err != nil || size > 64<<10 {
		return nil, usageError("--stack-size %s: want 4K to 64K", s.size)
	}
	o.StackBytes = min(int(size), sample.MaxStackBytes)
	switch {
	case s.hz < 0:
		return nil, usageError("--sample %d: want a number of samples a second", s.hz)
	case s.hz == 0 && !s.unit:
		return nil, nil
	}
	return o, nil
}
