// Package model holds Promela models of the protocol between traced threads and recorders (docs/model.md). Its test has
// spin search all states of each, and of each with something broken on purpose.
package model

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// search has spin make a verifier of the model with these definitions, runs it, and returns what it says.
func search(t *testing.T, model string, defines ...string) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	for _, name := range []string{model, "memory.pmh"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-a"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	run("spin", append(args, model)...)
	optimize := "-O1"             // the compiler takes as long as the search
	if model == "lifecycle.pml" { // larger, and its searches are short: otherwise the compiler takes longer than they do
		optimize = "-O0"
	}
	run("gcc", optimize, "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=1500", "-o", "pan", "pan.c")
	return run(filepath.Join(dir, "pan"), "-m10000")
}

var (
	errorCount = regexp.MustCompile(`errors: (\d+)`)
	states     = regexp.MustCompile(`(\d+) states, stored`)
	violated   = regexp.MustCompile(`pan:\d+: (.*)`)
)

// whole fails unless a search went through all states. It returns how many errors there were: 0 or 1, the search ends there.
func whole(t *testing.T, out string) string {
	t.Helper()
	n := errorCount.FindStringSubmatch(out)
	for _, bad := range []string{"max search depth too small", "out of memory", "Search not completed", "aborted"} {
		if strings.Contains(out, bad) && (n == nil || n[1] == "0") {
			t.Fatalf("the search was cut off (%s):\n%s", bad, out)
		}
	}
	if n == nil {
		t.Fatalf("spin's verifier does not say how many errors:\n%s", out)
	}
	return n[1]
}

// ends fails if a process that the model runs has an end that it never reached.
func ends(t *testing.T, out, defines string) {
	t.Helper()
	for _, part := range strings.Split(out, "unreached in ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		rest, _, _ = strings.Cut(rest, "unreached in ")
		process := strings.TrimPrefix(head, "proctype ")
		with, optional := map[string]string{"Handler": "HANDLER", "Killer": "KILL", "RecorderKiller": "DEATH"}[process]
		if process == "Buffer" { // waits for stores for ever
			continue
		}
		if strings.Contains(rest, "-end-") && (!optional || strings.Contains(defines, with)) {
			t.Errorf("%s never reaches its end", process)
		}
	}
}

// correct are the models as the code is (docs/model.md). Each must have no error in any state.
var correct = []struct {
	model   string
	defines string
}{
	{"trace.pml", "TSO POINTS=2"},
	{"trace.pml", "TSO POINTS=2 EARLY"},
	{"trace.pml", "POINTS=3"},
	{"trace.pml", "POINTS=3 EARLY"},
	{"trace.pml", "ARM POINTS=2"},
	{"trace.pml", "ARM POINTS=2 EARLY"},
	{"trace.pml", "TSO POINTS=2 KILL"},
	{"trace.pml", "POINTS=2 KILL"},
	{"trace.pml", "POINTS=2 KILL EARLY"},
	{"trace.pml", "POINTS=2 DEATH"},
	{"trace.pml", "POINTS=2 HANDLER"},
	{"trace.pml", "TSO POINTS=2 HANDLER"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1"},
	{"lifecycle.pml", "TSO POINTS=2 OPS=2 ONE"},
	{"lifecycle.pml", "POINTS=2 OPS=2 ONE"},
	{"lifecycle.pml", "POINTS=2 OPS=1 ONE KILL"},
	{"lifecycle.pml", "TSO POINTS=3 OPS=1 ONE API"},
}

func TestNoStateIsWrong(t *testing.T) {
	for _, m := range correct {
		t.Run(m.model+" "+m.defines, func(t *testing.T) {
			t.Parallel()
			out := search(t, m.model, strings.Fields(m.defines)...)
			if n := whole(t, out); n != "0" {
				t.Fatalf("%s errors: %v", n, violated.FindString(out))
			}
			ends(t, out, m.defines)
			t.Logf("%s states", states.FindStringSubmatch(out)[1])
		})
	}
}

// broken are models with something left out that the protocol needs. Spin must find an error in each: a model that can't
// fail shows nothing.
var broken = []struct {
	model   string
	defines string
}{
	{"trace.pml", "TSO POINTS=2 NO_DONE"},
	{"trace.pml", "POINTS=2 NO_DONE"},
	{"trace.pml", "POINTS=2 NO_BARRIER"},
	{"trace.pml", "ARM POINTS=2 NO_BARRIER"},
	{"trace.pml", "POINTS=2 NO_FIRST"},
	{"trace.pml", "TSO POINTS=2 NO_DROP"},
	{"trace.pml", "POINTS=2 NO_DROP"},
	{"trace.pml", "POINTS=2 EARLY NO_AHEAD"},
	{"trace.pml", "POINTS=2 EARLY NO_EDGE"},
	{"trace.pml", "TSO POINTS=2 DONE_FIRST"},
	{"trace.pml", "POINTS=3 NO_MASK"},
	{"trace.pml", "POINTS=2 NO_OR"},
	{"trace.pml", "TSO POINTS=2 HANDLER NO_MONITOR"},
	{"trace.pml", "POINTS=2 HANDLER NO_MONITOR"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1 NO_RECHECK"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1 NO_FENCE"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1 CLEAR_ONCE"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1 FREE_EARLY"},
	{"lifecycle.pml", "TSO POINTS=1 OPS=1 NONE STORE_ON"},
	{"lifecycle.pml", "TSO POINTS=3 OPS=1 ONE API MASK_FIRST"},
}

func TestEveryDefectIsFound(t *testing.T) {
	for _, m := range broken {
		t.Run(m.model+" "+m.defines, func(t *testing.T) {
			t.Parallel()
			out := search(t, m.model, strings.Fields(m.defines)...)
			if whole(t, out) == "0" {
				t.Fatalf("spin finds no error:\n%s", out)
			}
			t.Log(violated.FindStringSubmatch(out)[1])
		})
	}
}
