package sample

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"braid/internal/tracefile"
)

// An emulated processor takes many of its samples while pages are made, whose part of the stack can't be copied yet, and
// loses some. So it runs for longer, and less is asked of it.
var minSamples, minComplete, minKnown, seconds = func() (int, int, int, string) {
	if os.Getenv("BRAID_TEST_SAMPLE") != "" {
		return 50, 85, 1, "0.4"
	}
	return 100, 98, 3, "0.2"
}()

// chains returns the program testdata/chains.c. A guest has no compiler: there BRAID_TEST_SAMPLE=DIR says where it is, as
// chains and, with frame pointers, chains-fp.
func chains(t *testing.T, framePointers bool) string {
	t.Helper()
	name, flags := "chains", []string{"-pthread", "-fomit-frame-pointer"}
	if framePointers {
		name, flags = "chains-fp", []string{"-pthread", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"}
	}
	if dir := os.Getenv("BRAID_TEST_SAMPLE"); dir != "" {
		return filepath.Join(dir, name)
	}
	return compile(t, name, "chains.c", flags...)
}

// compile builds a program of testdata.
func compile(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O2", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// The program's known chains, innermost first, as expressions over names that are joined by spaces. outer is what every
// complete stack ends with.
var (
	outer = `turns (main( __libc_start_call_main)?( __libc_start_main\S*)?( _start)?|thread start_thread( \S*clone\S*| thread_start)?)$`
	known = []string{
		`^burn deep3 deep2 deep1 ` + outer,
		`^burn( recurse){21} ` + outer,
		`^burn compare( \S*msort\S*| \S*qsort\S*)+ sort ` + outer,
		`^(\S*read\S* )?system_calls ` + outer,
		`^burn on_signal .*raise\S* signals ` + outer,
		`^burn variable frames ` + outer,
		`^burn large ` + outer,
	}
	callers = map[string]string{ // who may call whom
		"burn": "deep3 recurse compare on_signal variable large", "deep3": "deep2", "deep2": "deep1", "deep1": "turns",
		"recurse": "recurse turns", "sort": "turns", "system_calls": "turns", "signals": "turns", "variable": "frames",
		"frames": "turns", "large": "turns", "turns": "main thread",
	}
)

// impossible returns a call in the chain that the program does not have, or "".
func impossible(chain []string) string {
	for i, name := range chain[:max(0, len(chain)-1)] {
		if who, ok := callers[name]; ok && !strings.Contains(" "+who+" ", " "+chain[i+1]+" ") {
			return chain[i+1] + " -> " + name
		}
	}
	return ""
}

func TestChainsByTables(t *testing.T) {
	r := sampleCommand(t, Options{Hz: 299, Stacks: tracefile.StackDWARF, StackBytes: MaxStackBytes}, chains(t, false), seconds)
	r.checkKnown(t)
}

// Where there are tables, frame pointers add nothing; that they take nothing away is what is tested.
func TestChainsByTablesOrPointers(t *testing.T) {
	r := sampleCommand(t, Options{Hz: 299, StackBytes: MaxStackBytes}, chains(t, false), seconds)
	r.checkKnown(t)
}

// By frame pointers alone, what the library calls back, and signal handlers, lose their callers: the library has no frame
// pointers.
func TestChainsByPointers(t *testing.T) {
	r := sampleCommand(t, Options{Hz: 299, Stacks: tracefile.StackFP}, chains(t, true), "0.1")
	ways := map[string]int{}
	found := 0
	for i := range r.samples {
		s := &r.samples[i]
		ways[s.Way.String()+" "+s.End.String()]++
		chain := r.chain(s)
		// The innermost function may not have made its frame, or have undone it: then its caller is missing.
		if call := impossible(chain[min(1, len(chain)):]); call != "" {
			t.Fatalf("no such call: %s, in %v (%v)", call, chain, s.End)
		}
		if regexp.MustCompile(`^burn (deep3 )?deep2 deep1 turns`).MatchString(strings.Join(chain, " ")) {
			found++
		}
	}
	if found < 3 {
		t.Errorf("%d samples of deep1: %v", found, ways)
	}
	t.Log(ways)
}

// A copy that is smaller than the function's frame ends the stack, and says so.
func TestCut(t *testing.T) {
	r := sampleCommand(t, Options{Hz: 299, StackBytes: 4096}, chains(t, false), "0.1")
	cut := 0
	for i := range r.samples {
		s := &r.samples[i]
		chain := r.chain(s)
		large := len(chain) > 1 && chain[0] == "burn" && chain[1] == "large"
		if large && s.End != tracefile.EndCut {
			t.Errorf("%v ends with %v", chain, s.End)
		}
		if large {
			cut++
		}
	}
	if cut == 0 || r.sampler.Incomplete() < uint64(cut) {
		t.Errorf("%d stacks were cut, %d are said to be incomplete", cut, r.sampler.Incomplete())
	}
}

// What finds the buffer full is counted.
func TestLost(t *testing.T) {
	s, err := New(Options{Hz: 4000, StackBytes: MaxStackBytes})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(chains(t, false), "0.2")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Attach(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r := &taken{sampler: s} // only now does anybody read
	r.finish(t, r.run(t, s))
	lost := s.Lost()["samples_lost"]
	told := lost > 0 || s.kind.attr.Read_format == 0 // before Linux 6.0, a loss is told with what fits in afterwards
	if !told || len(r.samples) < 50 {
		t.Errorf("%d samples, lost: %v", len(r.samples), s.Lost())
	} else {
		t.Logf("%d samples, %d lost", len(r.samples), lost)
	}
}

// checkKnown checks that each known chain is there, that at least minComplete percent of the samples are complete, and that no sample is
// impossible, of each thread and process.
func (r *taken) checkKnown(t *testing.T) {
	t.Helper()
	found := make([]int, len(known))
	ends := map[tracefile.StackEnd]int{}
	threads, kernel := map[string]int{}, 0
	for i := range r.samples {
		s := &r.samples[i]
		chain := r.chain(s)
		joined := strings.Join(chain, " ")
		ends[s.End]++
		if s.End != tracefile.EndComplete && s.End != tracefile.EndNone {
			t.Logf("%v: %s, at %x, of process %d (the first is %d)", s.End, joined, s.User, s.Tgid, r.pid)
		}
		if call := impossible(chain); call != "" {
			t.Fatalf("no such call: %s, in %s (%v)", call, joined, s.End)
		}
		if strings.Contains(joined, " turns ") {
			threads[fmt.Sprint(int(s.Tgid) == r.pid, s.Tid == s.Tgid)]++
			if s.End == tracefile.EndComplete && !regexp.MustCompile(" "+outer).MatchString(joined) {
				t.Fatalf("complete, but it ends in the middle: %s", joined)
			}
		}
		for k, e := range known {
			if regexp.MustCompile(e).MatchString(joined) {
				found[k]++
				if k == 3 && len(s.Kernel) > 0 {
					kernel++
				}
			}
		}
	}
	for k, n := range found {
		if n < minKnown {
			t.Errorf("%d samples of %s", n, known[k])
		}
	}
	if total := len(r.samples); ends[tracefile.EndComplete] < total*minComplete/100 || total < minSamples {
		t.Errorf("of %d samples: %v", total, ends)
	}
	if len(threads) != 3 {
		t.Errorf("samples of the main thread, the other one, and the child: %v", threads)
	}
	if kernel == 0 {
		t.Error("no sample of system_calls has kernel frames")
	}
	if n := r.sampler.Lost()["samples_lost"]; n > uint64(len(r.samples)) { // a machine that is busy otherwise may lose some
		t.Errorf("lost: %v", r.sampler.Lost())
	}
	t.Logf("%d samples on %s: %v %v, %d in read", len(r.samples), runtime.GOARCH, ends, found, kernel)
}
