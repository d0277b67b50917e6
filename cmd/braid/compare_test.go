package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/compare/estimate"
	"braid/compare/render"
	"braid/compare/result"
)

// compare runs a study in a folder of its own, which must be empty afterwards, and reads its result.
func compare(t *testing.T, args ...string) (*result.Study, outcome, string) {
	t.Helper()
	dir, scratch := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "study.json")
	c := command(t, append([]string{"compare", "--json", file}, args...)...)
	c.Env = append(os.Environ(), "TMPDIR="+scratch)
	o := finish(t, c)
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
	if o.code != 0 {
		return nil, o, file
	}
	s, err := result.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s, o, file
}

// checkArm fails unless an arm was measured on a workload, without a failure, and recorded what it should.
func checkArm(t *testing.T, s *result.Study, arm, workload string, records bool) {
	t.Helper()
	samples := 0
	for _, r := range s.Series {
		if r.Arm != arm || r.Workload != workload {
			continue
		}
		samples += len(r.Samples)
		if r.Failure != "" || r.Expected != r.Recorded || records != (r.Recorded > 0) {
			t.Errorf("%s on %s %d: %s, %d of %d events", arm, workload, r.Parameter, r.Failure, r.Recorded, r.Expected)
		}
	}
	if samples == 0 {
		t.Errorf("%s was not measured on %s: %+v", arm, workload, s.Arms)
	}
}

func TestCompare(t *testing.T) {
	page, seconds := filepath.Join(t.TempDir(), "study.html"), "8"
	if testBin != "" {
		seconds = "90" // of an emulated processor
	}
	s, o, file := compare(t, "--quick", "--arms", "stub-on,pair-record-push", "--seconds", seconds, "--html", page, "--seed", "7", "--margin", "5", "--width", "90")
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	for _, a := range []string{estimate.Baseline, estimate.Again} {
		checkArm(t, s, a, "listing", false)
	}
	checkArm(t, s, "stub-on", "listing", true)
	checkArm(t, s, "pair-record-push", "listing", true)
	if s.Method.Seed != 7 || s.Method.Margin != 0.05 || !s.Method.Quick || s.Machine.Arch == "" || !s.Machine.Root {
		t.Errorf("%+v, %+v", s.Method, s.Machine)
	}
	if !strings.Contains(o.stdout, "stub, on") || !strings.Contains(o.stdout, "seed 7") {
		t.Errorf("the text is:\n%s", o.stdout)
	}
	b, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(b), "<!doctype html>") && !strings.HasPrefix(string(b), "<!DOCTYPE html>") {
		t.Errorf("no page was written: %v", err)
	}
	if c := s.Machine.Clusters[0]; c.SyscallNS <= 0 || c.SyscallAfterNS <= 0 ||
		strings.Contains(o.stdout, "A bare system call costs") == s.Machine.Emulated {
		t.Errorf("system calls: %+v\n%s", c, o.stdout)
	}
	again := filepath.Join(t.TempDir(), "again.html")
	if text := must(t, "compare", "show", file); text != o.stdout {
		t.Errorf("the kept result is shown in another way:\n%s", text)
	}
	if out := must(t, "compare", "show", file, "--html", again); out != "" {
		t.Errorf("besides the page it says %s", out)
	}
	if same, err := os.ReadFile(again); err != nil || string(same) != string(b) {
		t.Errorf("the kept result makes another page: %v", err)
	}
	if d := must(t, "compare", "diff", file, file); !strings.Contains(d, "\nB: ") {
		t.Errorf("the difference to itself is:\n%s", d)
	}
	var d render.Comparison
	if err := json.Unmarshal([]byte(must(t, "compare", "diff", "--json", file, file)), &d); err != nil || len(d.Differences)+d.Untold == 0 || d.A.Machine != s.Machine.Name {
		t.Errorf("for programs it is %+v, %v", d, err)
	}
}

// Ctrl-C gives the result so far.
func TestCompareInterrupted(t *testing.T) {
	file, scratch := filepath.Join(t.TempDir(), "study.json"), t.TempDir()
	c := command(t, "compare", "--arms", "stub-on", "--workload", "listing", "--json", file, "--width", "0.001")
	c.Env = append(os.Environ(), "TMPDIR="+scratch)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for { // the programs are unpacked, so that there is something to interrupt
		if all, _ := filepath.Glob(filepath.Join(scratch, "braid-compare-*", "*", "*")); len(all) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	s, err := result.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Complete || s.Why != "interrupted" || s.Ended.Sub(s.Started) > time.Minute {
		t.Errorf("complete %v, %q after %v", s.Complete, s.Why, s.Ended.Sub(s.Started))
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%v is left behind; the text is:\n%s", left, out.String())
	}
}

// The user's own program is measured whole; its stubs are found.
func TestCompareCommand(t *testing.T) {
	s, o, _ := compare(t, "--arms", "stub-on", "--seconds", "5", "--width", "90", "--", programs["target"], "count", "1009")
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	checkArm(t, s, estimate.Baseline, "command", false)
	checkArm(t, s, "stub-on", "command", true)
	// leaves calls leaf; the probes agree with the stubs of both.
	s, o, _ = compare(t, "--arms", "pair-count-all", "--functions", "lea*", "--seconds", "8", "--width", "90", "--", programs["target"], "count", "1009")
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	checkArm(t, s, "pair-count-all", "command", true)
	for _, r := range s.Series {
		for _, x := range r.Samples {
			if r.Arm == "pair-count-all" && x.Recorded != uint64(x.Calls)*2*1010 {
				t.Errorf("%d runs, %d events", x.Calls, x.Recorded)
			}
		}
	}
	for _, a := range s.Arms {
		if a.Name == "pair-count-all" && !strings.Contains(a.Facts["expected"], "the stubs of 2 of these functions recorded 2020 events, the probes on them 2020") {
			t.Errorf("facts: %v", a.Facts)
		}
	}
	s, _, _ = compare(t, "--seconds", "3", "--width", "90", "--", "true")
	for _, a := range s.Arms {
		if a.Name == "stub-on" && (a.Ran || !strings.Contains(a.NextStep, "braid cc")) {
			t.Errorf("a program without stubs: %+v", a)
		}
	}
	if _, o, _ = compare(t, "--seconds", "2", "--", "false"); o.code != 1 || !strings.Contains(o.stderr, "baseline") {
		t.Errorf("a command that fails: exit code %d, %s", o.code, o.stderr)
	}
}

func TestCompareUsage(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--arms nothing", "no arm \"nothing\"", 2},
		{"--workload nothing", "there are listing, call, matrix", 2},
		{"--workload listing -- true", "does not go with a command", 2},
		{"true", "stands behind --", 2},
		{"--functions *", "put one behind --", 2},
		{"--cpus 4095", "no processor \"4095\"", 2},
		{"--margin 0", "--margin", 2},
		{"--json no/such/folder.json", "no/such/folder.json", 1},
		{"diff one.json", "accepts 2 arg", 1},
		{"diff one.json two.json", "one.json: no such file", 1},
	} {
		o := braid(t, append([]string{"compare"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.want) || o.stdout != "" {
			t.Errorf("braid compare %s: exit code %d, %s", c.args, o.code, o.stderr)
		}
	}
	list := must(t, "compare", "--list")
	for _, want := range []string{"baseline ", "stub-on ", "pair-record-push ", "uftrace "} {
		if !strings.Contains(list, "\n"+want) {
			t.Errorf("%q is not in:\n%s", want, list)
		}
	}
}

// Nobody without rights gets probes, and everybody the rest.
func TestCompareNotRoot(t *testing.T) {
	dir := t.TempDir()
	openTo(t, dir)
	seconds := "4"
	if testBin != "" {
		seconds = "30" // of an emulated processor
	}
	c := command(t, "compare", "--arms", "stub-on,pair-record-push", "--workload", "listing", "--seconds", seconds, "--width", "90", "--json", filepath.Join(dir, "s.json"))
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	o := finish(t, c)
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	s, err := result.ReadFile(filepath.Join(dir, "s.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkArm(t, s, "stub-on", "listing", true)
	for _, a := range s.Arms {
		if a.Name == "pair-record-push" && (a.Ran || !strings.Contains(a.WhyNot, "root")) {
			t.Errorf("%+v", a)
		}
	}
	if !strings.Contains(o.stdout, "probes were left out") {
		t.Errorf("%s", o.stdout)
	}
}
