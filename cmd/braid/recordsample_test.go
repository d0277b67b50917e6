package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"braid/internal/tracefile"
)

// takenSamples is what a trace file has of samples.
type takenSamples struct {
	head    tracefile.Samples
	samples []tracefile.Sample
	chains  []string // user frames' names, innermost first, joined by spaces
	kernel  int      // samples with kernel frames
}

func takenFrom(t *testing.T, file string) (s takenSamples) {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	frames, err := r.Frames()
	if err != nil {
		t.Fatal(err)
	}
	table := frames.Table()
	for section, err := range r.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		s.head = *section
		for _, sample := range section.Samples {
			var names []string
			for _, addr := range sample.User {
				if _, f := table.Find(sample.Tgid, addr, sample.Time); f != nil {
					names = append(names, f.Name)
				}
			}
			s.chains = append(s.chains, strings.Join(names, " "))
			if len(sample.Kernel) > 0 {
				s.kernel++
			}
			sample.Kernel, sample.User = nil, nil
			s.samples = append(s.samples, sample)
		}
	}
	return s
}

// checkLeaves checks that most samples are of leaf, which is called through leaves, and inside the recording.
func (s takenSamples) checkLeaves(t *testing.T, file string) {
	t.Helper()
	n := 0
	for _, c := range s.chains {
		if strings.Contains(c, "leaf leaves ") || strings.HasPrefix(c, "leaves ") {
			n++
		}
	}
	if n < 20 || n < len(s.chains)/2 {
		t.Errorf("%d of %d samples are of leaf: %q", n, len(s.chains), s.chains)
	}
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	meta, err := r.Meta()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range s.samples {
		if x.Time < meta.Start.BootNs || x.Time > meta.End.BootNs {
			t.Errorf("a sample at %d, the recording was from %d to %d", x.Time, meta.Start.BootNs, meta.End.BootNs)
		}
	}
}

func TestRecordSamples(t *testing.T) {
	for _, stacks := range []string{"auto", "dwarf", "fp"} {
		file, o := record(t, 0, "--kernel", "sched,sample", "--sample", "499", "--stacks", stacks, "--ring", "64K", "--", programs["target"], "count", "10000000")
		s := takenFrom(t, file)
		if got := s.head.Stacks.String(); got != stacks || s.head.Frequency != 499 || !s.head.Kernel {
			t.Errorf("--stacks %s: the head is %+v", stacks, s.head)
		}
		if !strings.Contains(o.stderr, " samples") {
			t.Errorf("the last line says nothing of samples: %s", o.stderr)
		}
		if stacks != "fp" { // the program has no frame pointers
			s.checkLeaves(t, file)
		}
	}
}

// A program without stubs has samples, and a note that says so.
func TestRecordSamplesPlain(t *testing.T) {
	file, o := record(t, 0, "--kernel", "sample", "--", programs["plain"], "count", "100000000")
	takenFrom(t, file).checkLeaves(t, file)
	if !strings.Contains(o.stderr, "samples only") {
		t.Errorf("stderr: %s", o.stderr)
	}
}

func TestRecordSamplesWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	openTo(t, dir)
	file := filepath.Join(dir, "own.braid")
	c := exec.Command(braidBin, "record", "-o", file, "--sample", "499", "--kernel", "none", "--ring", "64K", "--", programs["target"], "count", "10000000")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.Dir = dir
	o := finish(t, c)
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		t.Fatal(err)
	}
	level, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if level > 2 { // Debian's kernels: nothing without a capability
		if o.code != 1 || !strings.Contains(o.stderr, fmt.Sprintf("perf_event_paranoid to 2 (it is %d)", level)) {
			t.Errorf("%d: %s", o.code, o.stderr)
		}
		return
	}
	checkRecorded(t, file, o, 0)
	s := takenFrom(t, file)
	s.checkLeaves(t, file)
	if level == 2 && (s.kernel != 0 || s.head.Kernel || !strings.Contains(o.stderr, "no kernel frames")) {
		t.Errorf("%d samples with kernel frames, %+v: %s", s.kernel, s.head, o.stderr)
	}
}
