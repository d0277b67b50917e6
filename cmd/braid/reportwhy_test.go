package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/internal/analysis"
)

// slowProgram builds testdata/slow.c with stubs.
func slowProgram(t *testing.T) string {
	t.Helper()
	include, err := filepath.Abs("../../inline")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "slow")
	out, err := exec.Command(braidBin, "cc", "gcc", "-O2", "-Wall", "-Werror", "-pthread", "-I"+include, "-o", bin, "testdata/slow.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// explained is the analysis in a report's JSON.
func explained(t *testing.T, args ...string) *analysis.Result {
	t.Helper()
	var r struct{ Analysis *analysis.Result }
	if err := json.Unmarshal([]byte(must(t, append([]string{"report", "--json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	return r.Analysis
}

// One of 200 requests is slow. The report names the method in it and what the kernel did, on a real machine.
func TestWhy(t *testing.T) {
	bin := slowProgram(t)
	for _, c := range []struct{ mode, method, cause, says string }{
		{"fsync", "save", "fsync", "blocked in fsync in save ("},
		{"lock", "take_turn", "sleeping", " woke it in hold)"},
		{"cpu", "compute", "runnable", "waiting for a CPU in compute (rival ("},
	} {
		t.Run(c.mode, func(t *testing.T) {
			file, _ := record(t, 0, "--threads", "all", "--", bin, c.mode, filepath.Join(t.TempDir(), "scratch"))
			if explained(t, file) != nil {
				t.Error("there is an analysis that nobody asked for")
			}
			r := explained(t, "--why", file)
			if r == nil || r.Moment == nil || r.Moment.Method != "handle" || !r.Moment.Unusual || r.Moment.Usual.Calls != 200 || len(r.Findings) == 0 {
				t.Fatalf("%+v", r)
			}
			// A fast disk leaves the thread running, too, and a busy machine lets it wait for a CPU after each fsync.
			i := slices.IndexFunc(r.Findings, func(f analysis.Finding) bool { return f.Cause == c.cause })
			if i < 0 || r.Findings[0].Method != c.method || c.cause != "fsync" && i != 0 {
				t.Fatalf("found %+v\n%s", r.Findings, strings.Join(r.Explanation, "\n"))
			}
			if f := r.Findings[i]; f.Method != c.method || f.Basis != "moment" || f.Peers != 199 || f.ExcessNs < 20e6 {
				t.Errorf("found %+v\n%s", f, strings.Join(r.Explanation, "\n"))
			}
			if !strings.Contains(r.Explanation[0], c.says) || !strings.HasPrefix(r.Explanation[0], "handle took ") {
				t.Errorf("%q lacks %q", r.Explanation[0], c.says)
			}
			out := must(t, "report", "--why", file)
			if !strings.HasPrefix(out, "handle took ") || !strings.Contains(out, " CHAIN\n") {
				t.Errorf("the text does not begin with the explanation:\n%s", out)
			}
		})
	}
}

func TestWhyOptions(t *testing.T) {
	bin, dir := slowProgram(t), t.TempDir()
	file, _ := record(t, 0, "--threads", "all", "--", bin, "lock", filepath.Join(dir, "scratch"))
	sigs := filepath.Join(dir, "sigs.yaml")
	if err := os.WriteFile(sigs, []byte("signatures:\n- name: turn\n  chain: handle > take_turn\n  when: sleeping > 100ms\n- name: never\n  chain: handle\n  when: fsync > 100s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := explained(t, "--signatures", sigs, file)
	if len(r.Signatures) != 1 || r.Signatures[0].Name != "turn" || r.Signatures[0].Calls != 1 || r.Signatures[0].Examples[0].Method != "take_turn" {
		t.Errorf("%+v", r.Signatures)
	}
	if r := explained(t, "--method", "hold", file); r.Moment.Method != "hold" || r.Moment.Thread != "holder" || r.Moment.Usual != nil {
		t.Errorf("%+v", r.Moment)
	}
	if r := explained(t, "--why", "--thread", "holder", file); r.Moment.Thread != "holder" {
		t.Errorf("%+v", r.Moment)
	}
	if r := explained(t, "--around", "+0s..-0s", file); r.Moment.Method != "handle" {
		t.Errorf("%+v", r.Moment)
	}
	if err := os.WriteFile(sigs, []byte("signatures:\n- name: turn\n  chian: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "no time", []string{"--around", "noon"}},
		{2, "no time", []string{"--around", "1.5..x"}},
		{2, "ends before it begins", []string{"--around", "2..1"}},
		{2, "the trace has none", []string{"--around", "trigger"}},
		{2, "--why=false asks for no analysis", []string{"--why=false", "--method", "x"}},
		{1, "sigs.yaml:3:3: invalid signatures: \"chian\" is not known here", []string{"--signatures", sigs}},
		{1, "no such file", []string{"--signatures", sigs + "x"}},
	} {
		if o := braid(t, append(append([]string{"report"}, c.args...), file)...); o.code != c.code || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%v: %d, %s", c.args, o.code, o.stderr)
		}
	}
}
