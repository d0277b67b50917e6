// Package pipeline measures what happens to records once they are in the rings: recording them, reading them, exporting
// them. Figures are of a real recording: two threads that fill their rings with calls that do nothing.
package pipeline

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"braid/internal/export"
	"braid/internal/report"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

const source = `
#include <pthread.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int mid(int x) { return leaf(leaf(x)) + leaf(x); }
__attribute__((noinline)) int top(int x) { return mid(x) + mid(x + 1) + leaf(x); }
static void *body(void *p) { volatile int s = 0; for (long i = 0; i < 300000; i++) s = top(i); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, body, 0); body(0); pthread_join(t, 0); return 0; }
`

// record makes a recording with two full rings of 32 MiB and returns the trace file and the recorder's peak memory.
func record(tb testing.TB) (path string, peak int64) {
	tb.Helper()
	dir := tb.TempDir()
	braid, src, app := filepath.Join(dir, "braid"), filepath.Join(dir, "app.c"), filepath.Join(dir, "app")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		tb.Fatal(err)
	}
	for _, c := range [][]string{{"go", "build", "-o", braid, "braid/cmd/braid"}, {braid, "cc", "gcc", "-O2", "-pthread", "-o", app, src}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	path = filepath.Join(dir, "app.braid")
	c := exec.Command(braid, "record", "--threads", "all", "-o", path, "--", app)
	if out, err := c.CombinedOutput(); err != nil {
		tb.Fatalf("recording: %v\n%s", err, out)
	}
	return path, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

func load(tb testing.TB, path string) (*timeline.Trace, uint64) {
	tb.Helper()
	r, err := tracefile.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	tr, err := timeline.Load(r)
	if err != nil {
		tb.Fatal(err)
	}
	rep, err := report.Build(tr, report.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var n uint64
	for _, th := range rep.Threads {
		n += th.Records
	}
	return tr, n
}

func TestTwoFullRings(t *testing.T) {
	path, peak := record(t)
	tr, n := load(t, path)
	if n != 2*4<<20 {
		t.Errorf("%d records, want two full rings", n)
	}
	if len(tr.Threads) != 2 {
		t.Errorf("%d threads, want 2", len(tr.Threads))
	}
	if peak >= 300<<20 {
		t.Errorf("the recorder took %d MiB at its peak, want less than 300", peak>>20)
	}
}

func BenchmarkPipeline(b *testing.B) {
	path, peak := record(b)
	tr, n := load(b, path)
	b.ReportMetric(float64(peak)/(1<<20), "record-peak-MiB")
	var slices uint64
	fastest := func(f func()) time.Duration {
		best := time.Hour
		for range 5 {
			t := time.Now()
			f()
			best = min(best, time.Since(t))
		}
		return best
	}
	ex := fastest(func() {
		c, err := export.Perfetto(io.Discard, tr)
		if err != nil {
			b.Fatal(err)
		}
		slices = c.Slices
	})
	rep := fastest(func() {
		if _, err := report.Build(tr, report.Options{}); err != nil {
			b.Fatal(err)
		}
	})
	b.ReportMetric(float64(slices)/ex.Seconds()/1e6, "export-Mslices/s")
	b.ReportMetric(float64(n)/rep.Seconds()/1e6, "report-Mrecords/s")
	b.ReportMetric(0, "ns/op")
	fmt.Printf("recorder's peak %d MiB; export %.1f M slices/s; report %.1f M records/s (best of 5, %d records)\n",
		peak>>20, float64(slices)/ex.Seconds()/1e6, float64(n)/rep.Seconds()/1e6, n)
}
