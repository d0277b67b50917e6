// Package doctor says what this kernel and this user let braid do, what is lost without the rest, and how to get it.
//
// Every check reads files below an injected root, or asks one injected probe, so that each situation can be tested on
// any machine. Nothing is changed on the machine: the probes load programs and maps, attach none, and remove them.
package doctor

import (
	"io/fs"
	"strings"
)

// Status is the outcome of a check.
type Status string

// The outcomes. Their text is part of the JSON form.
const (
	OK      Status = "ok"
	Warn    Status = "warn"    // something is lost, the rest works
	Fail    Status = "fail"    // a whole part of braid does not work
	Unknown Status = "unknown" // could not be found out
)

// Check is one thing that was looked at.
type Check struct {
	ID     string `json:"id"`    // stable, for scripts
	Title  string `json:"title"` // for people
	Status Status `json:"status"`
	Found  string `json:"found"`          // what was seen
	Lost   string `json:"lost,omitempty"` // what does not work without it; set unless Status is OK
	Do     string `json:"do,omitempty"`   // the next step
}

// System is the machine that is examined. Fields that are nil make their checks Unknown.
type System struct {
	// Root is the file system's root directory, with /proc and /sys.
	Root fs.FS
	// Arch is the processor as GOARCH names it.
	Arch string
	// BPF, RingBuffer, TpBTF and RawTP try one feature each; nil means that it works.
	BPF, RingBuffer, TpBTF, RawTP func() error
	// PMU counts the processor's cycles; UprobeMulti and UprobeSession try these kinds of uprobe.
	PMU, UprobeMulti, UprobeSession func() error
	// CounterHz is the frequency of the processor's counter; 0: unknown.
	CounterHz uint64
	// Clocks reads the clocks.
	Clocks func() (Clocks, error)
	// Free returns the free bytes of the file system at a path.
	Free func(path string) (uint64, error)
	// Traced lists running programs that can be traced, one line each.
	Traced func() ([]string, error)
}

// all checks, in an order in which the cause stands before its consequences.
var all = []struct {
	id, title string
	run       func(*System) Check
}{
	{"privileges", "Privileges", privileges},
	{"pidns", "PID namespace", pidNamespace},
	{"ptrace", "Access to other processes", ptraceScope},
	{"lockdown", "Kernel lockdown", lockdown},
	{"selinux", "SELinux", selinux},
	{"seccomp", "System call filter", seccomp},
	{"kernel", "Kernel version", kernelVersion},
	{"config", "Kernel configuration", kernelConfig},
	{"btf", "Kernel types (BTF)", btf},
	{"bpf", "bpf system call", bpfCall},
	{"ringbuf", "BPF ring buffer", ringBuffer},
	{"tracepoints", "BPF on tracepoints", tracepoints},
	{"uprobes", "Probes in programs", uprobes},
	{"unprivileged_bpf", "BPF for all users", unprivilegedBPF},
	{"perf_paranoid", "perf for all users", perfParanoid},
	{"pmu", "Processor events (PMU)", pmu},
	{"kallsyms", "Kernel symbols", kernelSymbols},
	{"memlock", "Locked memory", memlock},
	{"tracefs", "tracefs", tracefs},
	{"binder", "Binder", binder},
	{"cgroup", "Control groups", cgroups},
	{"clocksource", "Kernel clock", clockSource},
	{"counter", "Processor counter", processorCounter},
	{"suspend", "Suspend", suspend},
	{"memory", "Memory for rings", ringMemory},
	{"cpus", "Processors", processors},
	{"cpufreq", "Processor frequency", frequencies},
	{"targets", "Traceable programs", targets},
}

// IDs are those of all checks, in their order. Errors elsewhere name them: (braid doctor: btf).
func IDs() (ids []string) {
	for _, c := range all {
		ids = append(ids, c.id)
	}
	return ids
}

// Run makes all checks.
func Run(s System) []Check {
	var out []Check
	for _, c := range all {
		r := c.run(&s)
		r.ID, r.Title = c.id, c.title
		if r.Status == OK {
			r.Lost, r.Do = "", ""
		}
		out = append(out, r)
	}
	return out
}

// text reads a small file of /proc or /sys, without the white space around it.
func (s *System) text(path string) (string, error) {
	b, err := fs.ReadFile(s.Root, strings.TrimPrefix(path, "/"))
	return strings.TrimSpace(string(b)), err
}

func (s *System) exists(path string) bool {
	_, err := fs.Stat(s.Root, strings.TrimPrefix(path, "/"))
	return err == nil
}

// unknown is the result where a file could not be read.
func unknown(err error, lost string) Check {
	return Check{Status: Unknown, Found: err.Error(), Lost: lost}
}
