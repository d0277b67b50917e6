package export

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"braid/internal/perfetto/tptest"
	"braid/internal/stacks"
	"braid/internal/stacks/stackstest"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

func TestFolded(t *testing.T) {
	var b bytes.Buffer
	c, err := Folded(&b, stackstest.Story(t))
	if err != nil || c.Samples != 8 || c.Cut != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	want := `app;_start;main_[j];sort_[j] 2
app;_start;main_[j];sort_[j];qsort;compare_[j] 1
app;_start;main_[j];sort_[j];qsort;compare_[j];memcpy 2
app;main_[j];write_all_[j];__write;entry_SYSCALL_64_[k];vfs_write_[k] 1
app;main_[j];write_all_[j];vfs_write_[k] 1
helper;_start;leaf_[j];[unknown] 1
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestFoldable(t *testing.T) {
	if got := foldable("operator\n new;\x7f(\xff) x"); got != "operator? new:?(?) x" {
		t.Errorf("%q", got)
	}
}

// pprofOf writes a profile and reads it again.
func pprofOf(t *testing.T) (path string, p *profile.Profile) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "t.pb.gz")
	var b bytes.Buffer
	if _, err := Pprof(&b, stackstest.Story(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return path, p
}

func TestPprof(t *testing.T) {
	_, p := pprofOf(t)
	var got []string
	for _, s := range p.Sample {
		line := fmt.Sprintf("%s %s:", s.Label["thread"], s.Label["tid"])
		for _, l := range slices.Backward(s.Location) {
			file := "-"
			if l.Mapping != nil {
				file = filepath.Base(l.Mapping.File)
			}
			line += fmt.Sprintf(" %s@%s", l.Line[0].Function.Name, file)
		}
		got = append(got, fmt.Sprintf("%s = %d, %d", line, s.Value[0], s.Value[1]))
	}
	want := []string{
		"[app] [10]: _start@libc.so.6 main@app sort@app = 2, 2000000",
		"[app] [10]: _start@libc.so.6 main@app sort@app qsort@libc.so.6 compare@app = 1, 1000000",
		"[app] [10]: _start@libc.so.6 main@app sort@app qsort@libc.so.6 compare@app memcpy@libc.so.6 = 1, 1000000",
		"[app] [10]: _start@libc.so.6 main@app sort@app qsort@libc.so.6 compare@app memcpy@libc.so.6 = 1, 1000000", // at other addresses
		"[app] [10]: main@app write_all@app __write@libc.so.6 entry_SYSCALL_64@[kernel.kallsyms] vfs_write@[kernel.kallsyms] = 1, 1000000",
		"[app] [10]: main@app write_all@app vfs_write@[kernel.kallsyms] = 1, 1000000",
		"[helper] [11]: _start@libc.so.6 leaf@app [unknown]@- = 1, 1000000",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if p.DefaultSampleType != "cpu" || p.Period != 1e6 || p.DurationNanos != 1e6 || len(p.SampleType) != 2 {
		t.Errorf("%v", p)
	}
	if m := p.Mapping[0]; m.File != "/usr/bin/app" || m.BuildID != "00ff10" || m.Limit-m.Start != 0x1000 || m.Offset != 0x1000 {
		t.Errorf("mapping %v", m)
	}
}

// TestGoToolPprof: the profile opens in pprof, whose numbers are these.
func TestGoToolPprof(t *testing.T) {
	path, _ := pprofOf(t)
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command("go", append(append([]string{"tool", "pprof", "-symbolize=none"}, args...), path)...)
		c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	top := run("-top", "-unit=ms", "-nodecount=100")
	for _, want := range []string{
		`Showing nodes accounting for 8ms, 100% of 8ms total`,
		`2ms 25\.00% .* 5ms 62\.50% +sort\n`, `2ms 25\.00% .* 2ms 25\.00% +memcpy\n`, `1ms .* 3ms .* compare\n`, `0 .* 7ms 87\.50% +main\n`,
	} {
		if !regexp.MustCompile(want).MatchString(top) {
			t.Errorf("no %q in\n%s", want, top)
		}
	}
	traces := run("-traces", "-tagfocus=thread=helper")
	if !strings.Contains(traces, "leaf") || strings.Contains(traces, "sort") || !regexp.MustCompile(`thread: *helper`).MatchString(traces) {
		t.Errorf("traces of one thread:\n%s", traces)
	}
	if n := strings.Count(run("-sample_index=samples", "-traces"), "-+-"); n != 8 {
		t.Errorf("%d lines between 7 different stacks", n)
	}
}

func TestSamplesInPerfetto(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pftrace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := Perfetto(f, stackstest.Story(t))
	if err != nil || c.Samples != 8 || c.Cut != 1 || c.Slices != 4 {
		t.Fatalf("%+v, %v", c, err)
	}
	tr := tptest.Open(t, path)
	got := tr.Rows(t, `with recursive up(sample, callsite) as (
			select id, callsite_id from perf_sample
			union all select sample, c.parent_id from up join stack_profile_callsite c on c.id = up.callsite where c.parent_id is not null),
		frames as (select sample, c.depth as depth, f.name as name, m.name as file from up join stack_profile_callsite c on c.id = up.callsite
			join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping order by sample, depth)
		select s.ts - 2000000000, tid, s.cpu_mode, coalesce(s.unwind_error, '-'), (select group_concat(name, ';' order by depth) from frames where sample = s.id)
		from perf_sample s join thread using (utid) order by s.ts, tid`)
	want := []string{
		"1500 10 user - _start;main;sort", "1600 10 user - _start;main;sort", "3000 10 user - _start;main;sort;qsort;compare",
		"3000 11 user - _start;leaf;[unknown]", "3100 10 user - _start;main;sort;qsort;compare;memcpy",
		"3200 10 user - _start;main;sort;qsort;compare;memcpy", "6000 10 kernel memory_invalid main;write_all;__write;entry_SYSCALL_64;vfs_write",
		"6100 10 kernel - main;write_all;vfs_write",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := tr.Rows(t, "select m.name, count(distinct f.name) from stack_profile_frame f join stack_profile_mapping m on m.id = f.mapping group by 1 order by 1"); !slices.Equal(got,
		[]string{"/[kernel.kallsyms] 2", "/[unknown] 1", "/lib/libc.so.6 4", "/usr/bin/app 5"}) {
		t.Errorf("files: %v", got)
	}
	if n := tr.Orphans(t); n != "0" {
		t.Errorf("%s slices are on orphan tracks", n)
	}
}

// TestNothingSampled: a trace without samples has no folded stacks and no profile, and nothing of it in Perfetto.
func TestNothingSampled(t *testing.T) {
	tr := stackstest.Load(t, nil, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 ) 200"))
	var b bytes.Buffer
	if _, err := Folded(&b, tr); !errors.Is(err, stacks.ErrNone) {
		t.Errorf("folded: %v", err)
	}
	if _, err := Pprof(&b, tr); !errors.Is(err, stacks.ErrNone) || b.Len() != 0 {
		t.Errorf("pprof: %v, %d bytes", err, b.Len())
	}
	if c, err := Perfetto(&b, tr); err != nil || c.Samples != 0 || c.Slices != 1 {
		t.Errorf("Perfetto: %+v, %v", c, err)
	}
}
