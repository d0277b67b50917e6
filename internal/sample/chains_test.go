package sample

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"braid/internal/tracefile"
)

// buildChains builds testdata/chains.c.
func buildChains(t *testing.T, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "chains")
	if text, err := exec.Command("gcc", append(flags, "-O2", "-pthread", "-o", out, "testdata/chains.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// The program's known chains, innermost first, as expressions over names that are joined by spaces. outer is what every
// complete stack ends with.
var (
	outer = `turns (main( __libc_start_call_main)?( __libc_start_main\S*)?( _start)?|thread start_thread( \S*clone\S*)?)$`
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
	r := sampleCommand(t, Options{Hz: 499, Stacks: tracefile.StackDWARF, StackBytes: MaxStackBytes}, buildChains(t, "-fomit-frame-pointer"), "0.3")
	r.checkKnown(t, 0.98)
}

func TestChainsByTablesOrPointers(t *testing.T) {
	r := sampleCommand(t, Options{Hz: 499, StackBytes: MaxStackBytes}, buildChains(t, "-fomit-frame-pointer"), "0.3")
	r.checkKnown(t, 0.98)
}

// checkKnown checks that each known chain is there, that at least share of the samples are complete, and that no sample is
// impossible, of each thread and process.
func (r *taken) checkKnown(t *testing.T, share float64) {
	t.Helper()
	found := make([]int, len(known))
	ends := map[tracefile.StackEnd]int{}
	threads, kernel, complete := map[string]int{}, 0, 0
	for i := range r.samples {
		s := &r.samples[i]
		chain := r.chain(s)
		joined := strings.Join(chain, " ")
		if call := impossible(chain); call != "" {
			t.Errorf("no such call: %s, in %s (%v)", call, joined, s.End)
		}
		if strings.Contains(joined, " turns ") {
			threads[fmt.Sprint(int(s.Tgid) == r.pid, s.Tid == s.Tgid)]++
			ends[s.End]++
			if s.End == tracefile.EndComplete {
				complete++
				if !regexp.MustCompile(" " + outer).MatchString(joined) {
					t.Errorf("complete, but it ends in the middle: %s", joined)
				}
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
		if n < 3 {
			t.Errorf("%d samples of %s", n, known[k])
		}
	}
	if total := len(r.samples); float64(complete) < share*float64(total) || total < 150 {
		t.Errorf("%d of %d samples are complete: %v", complete, total, ends)
	}
	if len(threads) != 3 {
		t.Errorf("samples of the main thread, the other one, and the child: %v", threads)
	}
	if kernel == 0 {
		t.Error("no sample of system_calls has kernel frames")
	}
	for name, n := range r.sampler.Lost() { // a machine that is busy otherwise may lose some
		if name != "samples_lost" || n > uint64(len(r.samples)/10) {
			t.Errorf("lost: %d %s", n, name)
		}
	}
	t.Logf("%d samples on %s: %v %v, %d in read", len(r.samples), runtime.GOARCH, ends, found, kernel)
}
