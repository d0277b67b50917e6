package recorder

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"braid/inline/runtime"
	"braid/internal/sample"
	"braid/internal/targets"
)

// Options say what to record. Command, Pid or Choose must be set.
type Options struct {
	Command []string // the program to launch and its arguments
	Env     []string // its environment; nil: this process's own
	Pid     int      // or a running process to attach to

	// Choose, if not nil, says which processes are recorded, those that run and those that come. Wait is how long the first
	// of them is waited for, 0: DefaultWait. Waiting, if not nil, is called once if none runs yet. The recording ends when
	// all that were found have ended.
	Choose  *targets.Choice
	Wait    time.Duration
	Waiting func()

	Output string // the trace file

	// Units are the kernel side's units; empty: methods alone. Demand makes it an error if they can't be had;
	// otherwise the recording goes on without them, with a note.
	Units  []string
	Demand bool
	// KernelBuffer is the size in bytes of the kernel side's ring buffer; 0: its default.
	KernelBuffer int
	// BTF names a file with the kernel's types, for kernels that do not have their own; empty: the kernel's.
	BTF string

	// Sample, if not nil, samples the target's threads with their stacks.
	Sample *sample.Options

	Threads   Threads
	RingBytes uint64        // each thread's ring; a power of two, at least 4096; 0: 32 MiB
	For       time.Duration // how long; 0: until the target ends or Interrupt

	Stdin, Stdout, Stderr *os.File // the launched program's

	// Interrupt ends the recording when it is closed. The target goes on.
	Interrupt <-chan struct{}
	// Kill, if not nil, carries signals to pass on to a launched program.
	Kill <-chan os.Signal

	Version string            // of braid, for the trace file
	Flags   map[string]string // as given, for the trace file
}

// DefaultRing is the size of a ring in bytes unless told otherwise.
const DefaultRing = 32 << 20

// Threads chooses threads. The zero value chooses each process's main thread.
type Threads struct {
	all      bool
	patterns []string
}

// ParseThreads understands "main", "all", or a comma-separated list of thread ids and patterns (*, ?, [a-z]) of thread
// names.
func ParseThreads(s string) (Threads, error) {
	switch s {
	case "", "main":
		return Threads{}, nil
	case "all":
		return Threads{all: true}, nil
	}
	t := Threads{patterns: strings.Split(s, ",")}
	for _, p := range t.patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return t, fmt.Errorf("--threads %q: not main, all, a thread id or a pattern of names", s)
		}
	}
	return t, nil
}

func (t Threads) policy() uint32 {
	switch {
	case t.all:
		return runtime.PolicyAll
	case len(t.patterns) == 0:
		return runtime.PolicyMain
	}
	return runtime.PolicyNone
}

// picks reports whether a thread that does not start by itself is to be started.
func (t Threads) picks(pid, tid int, name string) bool {
	if len(t.patterns) == 0 {
		return t.all || pid == tid
	}
	for _, p := range t.patterns {
		if p == strconv.Itoa(tid) || p == "main" && pid == tid {
			return true
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

// ParseSize understands a number of bytes with an optional K, M or G (1024 each), and rounds up to a power of two.
func ParseSize(s string) (uint64, error) {
	unit := uint64(1)
	num := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	switch {
	case strings.HasSuffix(num, "K"):
		unit, num = 1<<10, num[:len(num)-1]
	case strings.HasSuffix(num, "M"):
		unit, num = 1<<20, num[:len(num)-1]
	case strings.HasSuffix(num, "G"):
		unit, num = 1<<30, num[:len(num)-1]
	}
	n, err := strconv.ParseUint(num, 10, 40)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("size %q: want a number of bytes with K, M or G, such as 32M", s)
	}
	b := uint64(4096)
	for b < n*unit {
		b <<= 1
	}
	if b > maxRing {
		return 0, fmt.Errorf("size %q: a ring can have at most 16G", s)
	}
	return b, nil
}

const maxRing = 16 << 30
