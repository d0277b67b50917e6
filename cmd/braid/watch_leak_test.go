package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// holdings is what a daemon holds, of all that could leak.
type holdings struct {
	files    int // descriptors
	areas    int // mappings of programs' areas
	mappings int
	threads  int
	bpf      int // eBPF maps, programs and links among the descriptors
	keys     int // in the hash maps among them
	resident uint64
}

func (h holdings) String() string {
	return fmt.Sprintf("%d files, %d areas, %d mappings, %d threads, %d eBPF objects, %d keys, %d MiB", h.files, h.areas, h.mappings, h.threads,
		h.bpf, h.keys, h.resident>>20)
}

var mapLine = regexp.MustCompile(`(?m)^map_id:\s*(\d+)$`)
var linkLine = regexp.MustCompile(`(?m)^link_id:\s*(\d+)$`)

// holds looks at what a process holds.
func holds(t *testing.T, pid int) (h holdings) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	infos, err := filepath.Glob(dir + "fdinfo/*")
	if err != nil || len(infos) == 0 {
		t.Fatalf("%v, %d descriptors", err, len(infos))
	}
	for _, f := range infos {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // closed meanwhile
		}
		h.files++
		if m := mapLine.FindSubmatch(b); m != nil {
			h.bpf++
			h.keys += keysOf(t, string(m[1]))
		} else if progLine.Match(b) || linkLine.Match(b) {
			h.bpf++
		}
	}
	maps, err := os.ReadFile(dir + "maps")
	if err != nil {
		t.Fatal(err)
	}
	h.mappings = strings.Count(string(maps), "\n")
	h.areas = strings.Count(string(maps), "memfd:braid")
	tasks, err := os.ReadDir(dir + "task")
	if err != nil {
		t.Fatal(err)
	}
	h.threads = len(tasks)
	h.resident = memoryOf(t, pid)
	return h
}

// keysOf counts the keys of a hash map that holds something of watched processes.
func keysOf(t *testing.T, id string) (n int) {
	t.Helper()
	i, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ebpf.NewMapFromID(ebpf.MapID(i))
	if err != nil {
		return 0 // gone meanwhile
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil || m.Type() != ebpf.Hash || !slices.Contains([]string{"slots", "announced"}, info.Name) {
		return 0 // the others are by thread or request of the whole machine
	}
	for key, next := any(nil), make([]byte, m.KeySize()); m.NextKey(key, &next) == nil; n++ {
		key = slices.Clone(next)
	}
	return n
}

// A thousand programs that live for a moment leave nothing behind in the daemon.
func TestWatchShortLived(t *testing.T) {
	const runs, atOnce = 1000, 20
	w := watch(t, "programs:\n  - {name: faults, threads: all, rings: 2, ring: 64K}\ntriggers:\n  - {name: died, crash: true}\n")
	burst := func(n int) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range atOnce {
			wg.Go(func() {
				for range n / atOnce {
					if out, err := exec.Command(programs["faults"], "tiny").CombinedOutput(); err != nil {
						mu.Lock()
						t.Errorf("%v: %s", err, out)
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		until(t, "the daemon to take leave of all", func() bool { return len(w.status(t).Targets) == 0 })
	}
	v := newVictim(t, 1, 100*time.Microsecond) // so that the program's file is held, for its symbols
	w.has(t, v)
	v.unharmed()
	burst(100)
	before := holds(t, w.cmd.Process.Pid)
	w.count("")
	burst(runs)
	after := holds(t, w.cmd.Process.Pid)
	t.Logf("%d of %d were attached to; before: %v; after: %v", w.count("msg=watching pid="), runs, before, after)
	// Some kernels' tracepoints are silent now and then (see the eBPF tests), also the one that says that a process is freed.
	if after.files > before.files || after.areas != 0 || after.bpf != before.bpf || after.keys > before.keys+runs/50 || after.mappings > before.mappings+30 ||
		after.threads > before.threads+8 || after.resident > before.resident+32<<20 {
		t.Errorf("before: %v; after: %v", before, after)
	}
	v = newVictim(t, 1, 100*time.Microsecond)
	w.has(t, v)
	threes(t, report(t, w.flush(t, v.pid)))
	running, blocked := w.goroutines(t)
	t.Logf("%d goroutines, %v", running, blocked)
	if running > 60 {
		t.Errorf("%d goroutines are there at the end: %v", running, blocked)
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
	v.unharmed()
}

// count counts the lines of the log so far that hold a text, and takes them.
func (w *watcher) count(text string) (n int) {
	for {
		select {
		case line := <-w.log.lines:
			if strings.Contains(line, text) {
				n++
			}
		default:
			return n
		}
	}
}

var goroutineLine = regexp.MustCompile(`^goroutine \d+ .*\[([^\],]+)`)

// goroutines ends the daemon as Go does on SIGQUIT, and counts what it then says of its goroutines.
func (w *watcher) goroutines(t *testing.T) (n int, states map[string]int) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if code := waitCode(t, w.cmd); code != 2 {
		t.Errorf("SIGQUIT ended the daemon with %d", code)
	}
	states = map[string]int{}
	for line := range w.log.lines {
		if m := goroutineLine.FindStringSubmatch(line); m != nil {
			n++
			states[m[1]]++
		}
	}
	if n == 0 {
		t.Error("the daemon named no goroutines")
	}
	return n, states
}
