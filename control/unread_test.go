package control

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"braid/inline/runtime"
)

// readable returns the mappings that a process may read, in bytes from and to, and how many mappings its area has.
func readable(t *testing.T, pid int) (spans [][2]uint64, area int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		l := sc.Text()
		if strings.Contains(l, runtime.MemoryName) {
			area++
		}
		var s [2]uint64
		var may string
		if _, err := fmt.Sscanf(l, "%x-%x %s", &s[0], &s[1], &may); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if may[0] == 'r' && !strings.HasSuffix(l, "[vvar]") && !strings.Contains(l, "[vvar_") && !strings.HasSuffix(l, "[vsyscall]") {
			spans = append(spans, s)
		}
	}
	return spans, area
}

// TestReadersOfAllMemory reads all that a traced program may read, as leak checks and dumps do. The kernel makes every page
// that is read in shared memory: it must not be the whole area.
func TestReadersOfAllMemory(t *testing.T) {
	const ring, threads = 64 << 10, 5
	p := run(t, "", threads, 50, 0, 1, "")
	a := attach(t, p, runtime.PolicyAll, ring, threads)
	for _, th := range a.Threads() {
		until(t, "a thread is on", th.On)
		if err := th.RequestSwap(); err != nil {
			t.Fatal(err)
		}
		until(t, "a thread is in its second ring", func() bool { th.follow(); return th.old.there() })
	}
	pid := p.Process.Pid
	spans, mappings := readable(t, pid)
	var size uint64
	for _, s := range spans {
		size += s[1] - s[0]
	}
	if size > 1<<30 {
		t.Fatalf("%d bytes can be read", size)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	buf := make([]byte, 1<<20)
	for _, s := range spans {
		for at := s[0]; at < s[1]; {
			n, err := mem.ReadAt(buf[:min(uint64(len(buf)), s[1]-at)], int64(at))
			if n == 0 {
				t.Fatalf("%#x of %#x: %v", at, s, err)
			}
			at += uint64(n)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssShmem:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	// The header's part, and two rings for each thread.
	if most := (runtime.RingsOff + 2*threads*ring) >> 10; kib > most || kib < 2*threads*ring>>10 {
		t.Errorf("%d KiB of shared memory after all was read, want at most %d", kib, most)
	}
	if most := 2 + 2*2*threads; mappings > most { // a ring, and what lies before it
		t.Errorf("the area has %d mappings, want at most %d", mappings, most)
	}
	if a.Left() {
		t.Error("the process seems to have left its area")
	}
	StopAll([]*Area{a}, 0)
	a.Close()
	again, err := Attach(pid)
	if err != nil || len(again) != 1 {
		t.Fatalf("attaching once more: %d areas, %v", len(again), err)
	}
	again[0].Close()
}
