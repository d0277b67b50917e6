package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"braid/internal/perfetto/tptest"

	"github.com/google/pprof/profile"
)

// sampled records the program that spends its time in known chains of methods, libc and the kernel.
func sampled(t *testing.T, way string) (file string) {
	t.Helper()
	rounds := "400"
	if testBin != "" {
		rounds = "40" // an emulated processor
	}
	file = filepath.Join(t.TempDir(), "out.braid")
	o := braid(t, "record", "-o", file, "--threads", "all", "--ring", "64M", "--sample", "999", "--stacks", way, "--", programs["sampled"], rounds)
	if o.code != 0 {
		t.Fatalf("braid record ended with %d: %s", o.code, o.stderr)
	}
	return file
}

// sampleSum is the report's part about samples.
type sampleSum struct {
	Count, Contradictions, Cut int
	WithRing                   int            `json:"with_ring"`
	RingMethods                int            `json:"ring_methods"`
	Stacks                     map[string]int `json:"stacks"`
	Functions                  []struct {
		Name, Kind  string
		Self, Total int
	}
	Methods []struct {
		Name                            string
		Samples, Itself, Native, Kernel int
		Within                          []struct {
			Name, Kind string
			Samples    int
		}
	}
}

func samplesOf(t *testing.T, file string) (s sampleSum) {
	t.Helper()
	var r struct{ Samples sampleSum }
	if err := json.Unmarshal([]byte(must(t, "report", "--json", file)), &r); err != nil {
		t.Fatal(err)
	}
	return r.Samples
}

// chains are what methods and natives the program's stacks may consist of. Functions of the C library and of the kernel are
// left out of what is compared, but for qsort.
var chains = regexp.MustCompile(`^(main( sort_all( qsort( compare)?)?| read_all)?|worker( deep){0,9})?$`)

// inRead is a stack in the kernel, below read.
var inRead = regexp.MustCompile(`;(__libc_)?read(;[^;]*_\[k\])+$`)

// folded returns the stacks of a trace, with how many samples each has.
func folded(t *testing.T, file string) (stacks map[string]int) {
	t.Helper()
	stacks = map[string]int{}
	for line := range strings.Lines(must(t, "export", "--format", "folded", "-o", "-", file)) {
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(strings.TrimSpace(line[i+1:]))
		if err != nil {
			t.Fatalf("a folded stack without a number: %q", line)
		}
		stacks[line[:i]] = n
	}
	return stacks
}

// chain is a stack without what is not compared, with qsort for all functions that sort.
func chain(stack string) string {
	var names []string
	for _, f := range strings.Split(stack, ";")[1:] {
		name, method := strings.CutSuffix(f, "_[j]")
		sorts := strings.HasPrefix(f, "qsort") || strings.HasPrefix(f, "msort") || strings.HasPrefix(f, "introsort")
		if sorts {
			name = "qsort"
		}
		if method || sorts && names[len(names)-1] != "qsort" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// TestSampledStacks: each stack is a chain of calls that the program makes, and the expected ones are there; the report,
// folded stacks, pprof and Perfetto agree on the numbers.
func TestSampledStacks(t *testing.T) {
	file := sampled(t, "auto")
	sum := samplesOf(t, file)
	stacks := folded(t, file)
	all, byChain := 0, map[string]int{}
	var kernel, strcmps int
	var impossible []string
	for stack, n := range stacks {
		all += n
		c := chain(stack)
		byChain[c] += n
		if !chains.MatchString(c) && !strings.Contains(stack, "[unknown]") {
			impossible = append(impossible, stack)
		}
		if c == "main read_all" && inRead.MatchString(stack) {
			kernel += n
		}
		if c == "main sort_all qsort compare" && strings.Contains(stack, "strcmp") {
			strcmps += n
		}
	}
	if len(impossible) > sum.Contradictions {
		t.Errorf("%d contradictions, but stacks that the program can not have: %q", sum.Contradictions, impossible)
	}
	if all != sum.Count || all < 50 {
		t.Errorf("%d samples in folded stacks, %d in the report", all, sum.Count)
	}
	few := all / 20
	if testBin != "" {
		few = 1 // no cycle counter interrupts arm64's kernel where it has interrupts off: most samples come after the call
	}
	if strcmps < all/8 || kernel < few || byChain["worker"+strings.Repeat(" deep", 9)] < all/20 {
		t.Errorf("of %d samples %d are in strcmp, %d in reads; chains: %v", all, strcmps, kernel, byChain)
	}
	if sum.WithRing < all/2 || sum.Contradictions > all/50 || sum.Cut > all/20 || sum.Stacks["complete"] < all*9/10 {
		t.Errorf("%+v", sum)
	}
	for _, m := range sum.Methods {
		if m.Itself+m.Native+m.Kernel != m.Samples {
			t.Errorf("%+v", m)
		}
		if m.Name == "compare" && (m.Native < m.Samples/2 || !strings.Contains(m.Within[0].Name, "strcmp")) || m.Name == "read_all" && m.Kernel+m.Native < m.Samples/2 {
			t.Errorf("%+v", m)
		}
	}
	text := must(t, "report", file)
	for _, want := range []string{"\nsamples: " + strconv.Itoa(sum.Count) + " of ", "user stacks: "} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	pprofAgrees(t, file, sum)
	checkPerfetto(t, file)
	if svg := must(t, "export", "--format", "flame", "-o", "-", file); !strings.Contains(svg, "compare: ") {
		t.Error("the flame graph does not have compare")
	}
}

// pprofAgrees looks at an exported profile as pprof does, and with pprof where there is one.
func pprofAgrees(t *testing.T, file string, sum sampleSum) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.pb.gz")
	must(t, "export", "--format", "pprof", "-o", out, file)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	all, self := 0, map[string]int{}
	for _, s := range p.Sample {
		all += int(s.Value[0])
		self[s.Location[0].Line[0].Function.Name] += int(s.Value[0])
	}
	if all != sum.Count {
		t.Errorf("the profile has %d samples, the report %d", all, sum.Count)
	}
	for _, f := range sum.Functions {
		if f.Kind == "method" && self[f.Name] != f.Self {
			t.Errorf("the profile has %d samples of %s itself, the report %d", self[f.Name], f.Name, f.Self)
		}
	}
	if testBin != "" {
		return
	}
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command("go", append(append([]string{"tool", "pprof", "-symbolize=none", "-sample_index=samples"}, args...), out)...)
		c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		text, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("pprof %v: %v\n%s", args, err, text)
		}
		return string(text)
	}
	if top := run("-top"); !strings.Contains(top, " of "+strconv.Itoa(sum.Count)+" total") || !strings.Contains(top, " compare\n") {
		t.Errorf("pprof does not count %d samples:\n%s", sum.Count, top)
	}
	if traces := run("-traces", "-tagfocus=thread=deep"); !strings.Contains(traces, "worker") || strings.Contains(traces, "sort_all") {
		t.Errorf("pprof's traces of one thread:\n%s", traces)
	}
}

// samplesInPerfetto compares an export's samples with what the report says of the recording.
func samplesInPerfetto(t *testing.T, file string, tr *tptest.Trace) {
	t.Helper()
	sum := samplesOf(t, file)
	if got, want := tr.Rows(t, "select count(*), count(callsite_id), coalesce(sum(unwind_error is not null), 0) from perf_sample"), fmt.Sprint(
		sum.Count, sum.Count, sum.Cut); got[0] != want {
		t.Errorf("Perfetto has samples, stacks and cut ones: %s; the report %s", got[0], want)
	}
	for _, f := range sum.Functions {
		if f.Kind != "method" {
			continue
		}
		got := tr.Rows(t, `select count(*) from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id
			join stack_profile_frame f on f.id = c.frame_id where f.name = '`+f.Name+`'`)
		if got[0] != strconv.Itoa(f.Self) {
			t.Errorf("Perfetto has %s samples whose innermost frame is %s, the report %d", got[0], f.Name, f.Self)
		}
	}
}

// TestSampledByFramePointers: the C library keeps no frame pointers, nor does the program, so that the kernel finds hardly
// any caller. The methods are all there.
func TestSampledByFramePointers(t *testing.T) {
	file := sampled(t, "fp")
	sum := samplesOf(t, file)
	byChain := map[string]int{}
	var impossible []string
	for stack, n := range folded(t, file) {
		c := strings.ReplaceAll(chain(stack), " qsort", "")
		byChain[c] += n
		if strings.Contains(c, "compare") && c != "main sort_all compare" || strings.Contains(c, "read_all") && c != "main read_all" {
			impossible = append(impossible, stack)
		}
	}
	if len(impossible) > sum.Contradictions {
		t.Errorf("%d contradictions, but stacks that the program can not have: %q", sum.Contradictions, impossible)
	}
	if byChain["main sort_all compare"] < sum.Count/8 || byChain["worker"+strings.Repeat(" deep", 9)] < sum.Count/20 {
		t.Errorf("chains %v", byChain)
	}
	if sum.RingMethods < sum.Count/4 || sum.Contradictions > sum.Count/50 {
		t.Errorf("%+v", sum)
	}
	if testBin == "" && (sum.Stacks["chain"] < sum.Count*9/10 || sum.RingMethods < sum.Count) { // arm64 has a frame pointer as a rule
		t.Errorf("%+v", sum)
	}
}

// TestExportWithoutSamples: what needs samples says how to take them.
func TestExportWithoutSamples(t *testing.T) {
	file, _ := record(t, 0, "--kernel", "none", "--", programs["target"], "count", "3")
	for _, format := range []string{"folded", "pprof", "flame"} {
		out := filepath.Join(t.TempDir(), "out")
		o := braid(t, "export", "--format", format, "-o", out, file)
		if _, err := os.Stat(out); o.code != 1 || !strings.Contains(o.stderr, "--sample") || err == nil {
			t.Errorf("%s: exit code %d, %q, %v", format, o.code, o.stderr, err)
		}
	}
	if o := braid(t, "export", "--format", "folded", "--width", "500", file); o.code != 2 {
		t.Errorf("--width with folded stacks: exit code %d", o.code)
	}
}
