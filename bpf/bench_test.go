package bpf

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"braid/internal/kevent"
)

// BenchmarkSchedPipe compares what recording costs a program that does nothing but switch: perf bench sched pipe, both
// of its processes on CPU 0, alone, recorded by unit sched with a reader that polls every 50 ms, by all units, by all
// units that also watch, only watched (limits and histograms, no events), while others are watched, and by perf record. The arms take turns in rounds, so that the machine's moods hit all alike; the medians, their spread
// (quartiles) and the slowdowns against the first arm are printed. The goal is a slowdown of at most half of
// perf record's.
//
//	go test -run '^$' -bench SchedPipe -benchtime 15x ./bpf     # 15 rounds
func BenchmarkSchedPipe(b *testing.B) {
	const loops = 200_000
	arms := []struct {
		name string
		run  func(testing.TB, int) float64
		us   []float64
	}{
		{name: "alone", run: pipeAlone},
		{name: "sched", run: func(t testing.TB, n int) float64 {
			return pipeRecorded(t, n, Options{Units: []string{UnitSched}})
		}},
		{name: "sched+io", run: func(t testing.TB, n int) float64 {
			return pipeRecorded(t, n, Options{Units: []string{UnitSched, UnitIO}})
		}},
		{name: "all units", run: func(t testing.TB, n int) float64 { return pipeRecorded(t, n, Options{}) }},
		{name: "and watched", run: func(t testing.TB, n int) float64 {
			return pipeRecorded(t, n, Options{Watch: &WatchOptions{}})
		}},
		{name: "only watched", run: pipeWatched},
		{name: "others are", run: pipeBeside},
		{name: "perf record", run: pipePerf},
	}
	rounds := 0
	for b.Loop() {
		for i := range arms {
			a := &arms[(i+rounds)%len(arms)]
			a.us = append(a.us, a.run(b, loops))
		}
		rounds++
	}
	alone := median(arms[0].us)
	slowdowns := map[string]float64{}
	for _, a := range arms {
		m := median(a.us)
		slowdowns[a.name] = m - alone
		fmt.Fprintf(os.Stderr, "%-12s %6.3f us/op  (%.3f to %.3f)  %+.3f us, %+.1f %%\n",
			a.name, m, quantile(a.us, 0.25), quantile(a.us, 0.75), m-alone, 100*(m-alone)/alone)
	}
	b.ReportMetric(slowdowns["sched"]/slowdowns["perf record"], "slowdown/perf's")
	b.ReportMetric(slowdowns["sched+io"]/slowdowns["perf record"], "slowdown-all-units/perf's")
	b.ReportMetric(alone, "us/op-alone")
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	at := q * float64(len(s)-1)
	lo := int(at)
	hi := min(lo+1, len(s)-1)
	return s[lo] + (s[hi]-s[lo])*(at-float64(lo))
}

var pipeResult = regexp.MustCompile(`([0-9.]+) usecs/op`)

func pipeCommand(loops int) []string {
	return []string{"taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", strconv.Itoa(loops)}
}

func pipeTime(t testing.TB, out []byte, err error) float64 {
	t.Helper()
	m := pipeResult.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("perf bench (install linux-perf and util-linux): %v\n%s", err, out)
	}
	us, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return us
}

func pipeAlone(t testing.TB, loops int) float64 {
	args := pipeCommand(loops)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	return pipeTime(t, out, err)
}

func pipePerf(t testing.TB, loops int) float64 {
	args := append([]string{"record", "-q", "-m", "8M", "-o", filepath.Join(t.TempDir(), "data"),
		"-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "--"}, pipeCommand(loops)...)
	out, err := exec.Command("perf", args...).CombinedOutput()
	return pipeTime(t, out, err)
}

// pipeWatched watches both of pipe's processes, with limits that they never reach.
func pipeWatched(t testing.TB, loops int) float64 {
	path, name := ownName(t, "pipe") // perf under a name of its own is announced, and so are its children
	perf, err := os.ReadFile(lookPath(t, "perf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, perf, 0o755); err != nil {
		t.Fatal(err)
	}
	r := load(t, Options{Watch: &WatchOptions{Match: Match{Names: []string{name}}}})
	args := pipeCommand(loops)
	args[3] = path
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		err := cmd.Wait()
		r.Stop()
		ended <- err
	}()
	buf := make([]byte, 0, 1<<20)
	for {
		got, err := r.Read(buf, time.Now().Add(time.Second))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for len(got) > 0 {
			var h kevent.Header
			var body []byte
			if h, body, got, err = kevent.Next(got); err != nil || h.Kind != kevent.KindAnnounce {
				t.Fatalf("%v, %v: not an announcement", h.Kind, err)
			}
			a := kevent.DecodeAnnounce(body)
			if a.What == kevent.AnnounceExit {
				continue
			}
			if err := r.AddWatched(int(a.Tgid)); err != nil {
				t.Fatal(err)
			}
			if err := r.SetThresholds(int(a.Tgid), Thresholds{RunQueue: time.Hour, OffCPU: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = <-ended
	sets, histErr := r.Histograms()
	var switches uint64
	for _, s := range sets {
		switches += s.Voluntary + s.Involuntary
	}
	if histErr != nil || switches < uint64(loops) {
		t.Fatalf("%d switches counted of %d operations, error %v: not a fair comparison", switches, loops, histErr)
	}
	return pipeTime(t, out.Bytes(), err)
}

// pipeBeside leaves pipe alone while the units watch another process.
func pipeBeside(t testing.TB, loops int) float64 {
	r := load(t, Options{Watch: &WatchOptions{}})
	if err := r.AddWatched(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return pipeAlone(t, loops)
}

func pipeRecorded(t testing.TB, loops int, opts Options) float64 {
	r, err := Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tg := exec.Command(targetBinary, append([]string{"exec", lookPath(t, "taskset")}, pipeCommand(loops)[1:]...)...)
	var out bytes.Buffer
	ready := make(chan struct{}, 1)
	tg.Stdout = writerFunc(func(p []byte) (int, error) {
		select {
		case ready <- struct{}{}:
		default:
		}
		return out.Write(p)
	})
	stdin, err := tg.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tg.Start(); err != nil {
		t.Fatal(err)
	}
	<-ready
	if err := r.AddPending(tg.Process.Pid); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var size int
	done := make(chan error)
	go func() { // as a recorder does: everything goes into a file
		buf := make([]byte, 0, 8<<20)
		for {
			got, err := r.Read(buf, time.Now().Add(50*time.Millisecond))
			if err == io.EOF {
				done <- nil
				return
			}
			if err == nil {
				_, err = file.Write(got)
			}
			if err != nil {
				done <- err
				return
			}
			size += len(got)
		}
	}()
	if _, err := stdin.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	err = tg.Wait()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if lost, err := r.Lost(); err != nil || len(lost) != 0 {
		t.Fatalf("lost %v, error %v: not a fair comparison", lost, err)
	}
	if size < loops*2*56 {
		t.Fatalf("%d bytes recorded of %d operations: not a fair comparison", size, loops)
	}
	return pipeTime(t, out.Bytes(), err)
}

func lookPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
