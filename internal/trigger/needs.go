package trigger

import (
	"slices"
	"syscall"
	"time"
)

// KernelLimits are limits that the kernel's part decides for one process, so that nothing is sent until one is passed.
// Of several rules the smallest limit counts. 0 is off.
type KernelLimits struct {
	RunQueue, OffCPU, Fsync, BlockIO, Reclaim time.Duration

	MajorFaultsPerSecond uint32
}

// Needs is what has to be watched of one process. All conditions are those of the Config.
type Needs struct {
	Kernel  KernelLimits
	Ring    []*Condition // decided from its threads' rings (package live)
	Probe   []*Condition // of kind Method, decided by a probe at the method
	Crash   bool
	Program bool // the program's own calls of braid_trigger
}

// SystemNeeds is what has to be watched of the system.
type SystemNeeds struct {
	Pressure     []*Condition
	Thermal      []*Condition
	CPUFrequency []*Condition
	Signals      []syscall.Signal
	Socket       bool
}

// For reports whether a rule is for a target.
func (r *Rule) For(t *Target) bool {
	return len(r.Programs) == 0 || slices.ContainsFunc(r.Programs, t.named)
}

// Needs returns what has to be watched of a process.
func (c *Config) Needs(t *Target) Needs {
	var n Needs
	for _, r := range c.Rules {
		if r.For(t) {
			r.When.Leaves(n.add)
		}
	}
	return n
}

func (n *Needs) add(c *Condition) {
	least := func(to *time.Duration) {
		if *to == 0 || c.Longer < *to {
			*to = c.Longer
		}
	}
	switch c.Kind {
	case RunQueue:
		least(&n.Kernel.RunQueue)
	case OffCPU:
		least(&n.Kernel.OffCPU)
	case Fsync:
		least(&n.Kernel.Fsync)
	case BlockIO:
		least(&n.Kernel.BlockIO)
	case Reclaim:
		least(&n.Kernel.Reclaim)
	case MajorFaults:
		if m := &n.Kernel.MajorFaultsPerSecond; *m == 0 || uint32(c.PerSecond) < *m {
			*m = uint32(c.PerSecond)
		}
	case Crash:
		n.Crash = true
	case ProgramAsks:
		n.Program = true
	default:
		switch {
		case c.ByRing():
			n.Ring = append(n.Ring, c)
		case c.Kind == Method:
			n.Probe = append(n.Probe, c)
		}
	}
}

// System returns what has to be watched of the system.
func (c *Config) System() SystemNeeds {
	var n SystemNeeds
	for _, r := range c.Rules {
		r.When.Leaves(func(c *Condition) {
			switch c.Kind {
			case Pressure:
				n.Pressure = append(n.Pressure, c)
			case Thermal:
				n.Thermal = append(n.Thermal, c)
			case CPUFrequency:
				n.CPUFrequency = append(n.CPUFrequency, c)
			case Signal:
				if !slices.Contains(n.Signals, c.Sig) {
					n.Signals = append(n.Signals, c.Sig)
				}
			case Socket:
				n.Socket = true
			}
		})
	}
	return n
}
