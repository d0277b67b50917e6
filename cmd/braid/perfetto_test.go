package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"braid/internal/perfetto/tptest"
)

var (
	ringHead  = regexp.MustCompile(`^  pid (\d+) tid (\d+) name `)
	ringEvent = regexp.MustCompile(`^ +\d+ [0-9a-f]{16} [0-9a-f]{8} (entry|exit|resumed)`)
)

// calls counts the calls in a file's rings for each thread, "pid tid count", from the text of braid dump: each entry is
// one, and each exit from a method that was entered before the ring began.
func calls(t *testing.T, file string) (rows []string) {
	t.Helper()
	counts := map[[2]int]int{}
	var k [2]int
	depth := 0
	for line := range strings.Lines(must(t, "dump", "--section", "ring", file)) {
		if m := ringHead.FindStringSubmatch(line); m != nil {
			k[0], _ = strconv.Atoi(m[1])
			k[1], _ = strconv.Atoi(m[2])
			depth = 0
		} else if m := ringEvent.FindStringSubmatch(line); m != nil {
			switch {
			case m[1] == "resumed":
				t.Fatalf("the tests' programs never resume: %s", line)
			case m[1] == "entry":
				depth++
				counts[k]++
			case depth > 0:
				depth--
			default:
				counts[k]++
			}
		}
	}
	for k, n := range counts {
		rows = append(rows, fmt.Sprintf("%d %d %d", k[0], k[1], n))
	}
	slices.Sort(rows)
	return rows
}

// BRAID_TEST_PERFETTO=DIR is for guests, which have no trace processor: there, checkPerfetto leaves each recording and
// what braid made of it in DIR. With it in its environment, TestPerfettoFromElsewhere looks at these.
var testPerfetto = os.Getenv("BRAID_TEST_PERFETTO")

// checkPerfetto exports a recording of rings that did not wrap and looks at it with Perfetto's own trace processor. In a
// guest it returns nil: the trace processor is elsewhere.
func checkPerfetto(t *testing.T, file string) *tptest.Trace {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.pftrace")
	must(t, "export", file, "-o", out)
	if testPerfetto != "" && testBin != "" {
		keepPerfetto(t, file, out)
		return nil
	}
	return checkExported(t, file, out)
}

// keepPerfetto copies a recording and its export to where TestPerfettoFromElsewhere finds them.
func keepPerfetto(t *testing.T, file, exported string) {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "-")
	for n := 1; ; n++ {
		to := filepath.Join(testPerfetto, fmt.Sprintf("%s-%d", name, n))
		if _, err := os.Stat(to + ".pftrace"); err == nil {
			continue
		}
		for from, to := range map[string]string{file: to + ".braid", exported: to + ".pftrace"} {
			b, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
}

// What braid exported on another machine is what it would have been here: with the same checks, and byte for byte.
func TestPerfettoFromElsewhere(t *testing.T) {
	var files []string
	if dir := testPerfetto; dir != "" {
		files, _ = filepath.Glob(filepath.Join(dir, "*.braid"))
	} else {
		file, _ := record(t, 0, "--threads", "all", "--", programs["target"], "threads", "3")
		files = append(files, file)
		must(t, "export", file, "-o", strings.TrimSuffix(file, ".braid")+".pftrace")
	}
	if len(files) == 0 {
		t.Fatalf("no recordings in %s", testPerfetto)
	}
	for _, file := range files {
		elsewhere, here := strings.TrimSuffix(file, ".braid")+".pftrace", filepath.Join(t.TempDir(), "here.pftrace")
		checkExported(t, file, elsewhere)
		must(t, "export", file, "-o", here)
		a, err := os.ReadFile(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(here)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes, exported here they are %d others", elsewhere, len(a), len(b))
		}
	}
}

// checkExported looks at what braid export made of a recording.
func checkExported(t *testing.T, file, out string) *tptest.Trace {
	t.Helper()
	tr := tptest.Open(t, out)
	got := tr.Rows(t, `select p.pid, t.tid, count(*) from slice s join thread_track tt on tt.id = s.track_id
		join thread t using (utid) join process p using (upid) where tt.name is null group by 1, 2`) // tracks below it have names
	slices.Sort(got)
	if want := calls(t, file); !slices.Equal(got, want) {
		t.Errorf("slices for each thread (pid tid count): %v, the rings have %v", got, want)
	}
	if n := tr.Orphans(t); n != "0" {
		t.Errorf("%s slices are on orphan tracks", n)
	}
	if open := tr.Rows(t, `select name from slice where dur < 0`); len(open) > 0 {
		t.Errorf("slices are open: %v", open)
	}
	states := map[string]bool{}
	for _, tid := range tr.Rows(t, `select distinct tid from thread_state join thread using (utid)`) {
		states[tid] = true
	}
	for _, th := range report(t, file).Threads {
		if th.Running > 0 && !states[strconv.Itoa(th.Tid)] {
			t.Errorf("thread %d (%s) has no thread_state", th.Tid, th.Name)
		}
	}
	samplesInPerfetto(t, file, tr)
	return tr
}
