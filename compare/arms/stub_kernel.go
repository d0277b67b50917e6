package arms

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"braid/bpf"
	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
	"braid/internal/kevent"
)

// braid's stubs, recording, and what the kernel does to their threads recorded as well.
func init() {
	arm.Register(&arm.Arm{
		Name: "stub-on-kernel", Title: "stub, on, with the kernel's events", Group: result.GroupInline, Order: 2, Points: 2, Workloads: everywhere,
		Check: func(_ context.Context, env *arm.Env) error {
			if !env.Root {
				return &arm.Unavailable{Why: "kernel events need root", Next: "run it as root"}
			}
			k, err := bpf.Load(kernelUnits)
			if err != nil {
				return &arm.Unavailable{Why: err.Error(), Next: "see braid doctor"}
			}
			return k.Close()
		},
		Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
			s, err := openStub(ctx, env, w)
			if err != nil {
				return nil, err
			}
			k, err := watchKernel(s.p.PID(), !s.whole)
			if err != nil {
				s.Close()
				return nil, err
			}
			return &withKernel{stubbed: s, kernel: k}, nil
		},
	})
}

// kernelUnits are the units that the arm loads; unit wait is left out, so that results stay comparable with older ones.
var kernelUnits = bpf.Options{Units: []string{bpf.UnitSched, bpf.UnitIO}}

// withKernel is a workload whose stubs record, with the kernel side beside it.
type withKernel struct {
	*stubbed
	kernel *kernel
}

func (s *withKernel) Run(_ context.Context, r workload.Request) (arm.Measured, error) {
	m, err := s.stubbed.run(r)
	if err != nil {
		return m, err
	}
	expected, recorded, err := s.kernel.settle()
	m.Expected += expected
	m.Recorded += recorded
	return m, err
}

func (s *withKernel) Facts() map[string]string {
	f := s.stubbed.Facts()
	f["kernel"] = "context switches, wake-ups, block requests, syncs, faults of the process"
	if s.kernel.exact {
		f["counted"] = "records, and the process's context switches against those in /proc"
	}
	return f
}

func (s *withKernel) Close() error { return errors.Join(s.kernel.close(), s.stubbed.Close()) }

// kernel records the kernel's events of a process as braid record does, and counts them in place of writing them.
type kernel struct {
	rec   *bpf.Recorder
	pid   int
	exact bool // the process's threads can be looked at between requests
	done  chan struct{}

	mu       sync.Mutex
	switches uint64 // away from threads of the process
	err      error

	// As settle left them.
	counted, told, lost uint64
}

func watchKernel(pid int, exact bool) (*kernel, error) {
	rec, err := bpf.Load(kernelUnits)
	if err != nil {
		return nil, err
	}
	k := &kernel{rec: rec, pid: pid, exact: exact, done: make(chan struct{})}
	if err := rec.AddTarget(pid); err != nil {
		rec.Close()
		return nil, err
	}
	go k.pump()
	if exact {
		// It waits for a request; what it did until now is no event.
		if k.told, err = switches(pid); err != nil {
			k.close()
			return nil, err
		}
	}
	return k, nil
}

func (k *kernel) pump() {
	defer close(k.done)
	buf := make([]byte, 0, 1<<20)
	for {
		b, err := k.rec.Read(buf[:0], time.Now().Add(50*time.Millisecond))
		var n uint64
		for rest := b; len(rest) > 0 && err == nil; {
			var h kevent.Header
			var body []byte
			if h, body, rest, err = kevent.Next(rest); err == nil && h.Kind == kevent.KindSwitch {
				if e := kevent.DecodeSwitch(body); e.PrevTgid == uint32(k.pid) {
					n++
				}
			}
		}
		k.mu.Lock()
		k.switches += n
		if err != nil && !errors.Is(err, io.EOF) {
			k.err = fmt.Errorf("kernel events: %w", err)
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// settle waits until all events of the last request have been read, and returns how many context switches the process had
// since the last call according to /proc, and according to the events. Events that the kernel side lost are expected, too.
func (k *kernel) settle() (expected, recorded uint64, err error) {
	lost, err := k.rec.Lost()
	if err != nil {
		return 0, 0, err
	}
	var n uint64
	for _, l := range lost {
		n += l
	}
	expected, k.lost = n-k.lost, n
	if !k.exact {
		return expected, 0, nil
	}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		told, err := switches(k.pid)
		if err != nil {
			return 0, 0, err
		}
		k.mu.Lock()
		counted, failed := k.switches, k.err
		k.mu.Unlock()
		if failed != nil {
			return 0, 0, failed
		}
		if told-k.told == counted-k.counted || time.Now().After(end) {
			expected += told - k.told
			recorded = counted - k.counted
			k.told, k.counted = told, counted
			return expected, recorded, nil
		}
	}
}

func (k *kernel) close() error {
	err := k.rec.Stop()
	<-k.done
	return errors.Join(err, k.rec.Close())
}

// switches returns how often the threads of a process have left a CPU.
func switches(pid int) (uint64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("the workload's threads are not in /proc")
	}
	var sum uint64
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if _, number, ok := strings.Cut(s.Text(), "ctxt_switches:"); ok {
				n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
				if err != nil {
					f.Close()
					return 0, fmt.Errorf("%s: %w", name, err)
				}
				sum += n
			}
		}
		f.Close()
	}
	return sum, nil
}
