package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file stands in another's place for the command and what it starts, and for nobody else.
func TestInstead(t *testing.T) {
	dir := t.TempDir()
	place, file, out := filepath.Join(dir, "place"), filepath.Join(dir, "file"), filepath.Join(dir, "out")
	for path, text := range map[string]string{place: "theirs", file: "ours"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := unpacked(t, "amd64")
	p := start(t, s, Start{Workload: Command, Command: []string{"sh", "-c", "sh -c 'cat " + place + "' >" + out}, Instead: map[string]string{place: file}})
	if _, err := p.Run(Request{Calls: 1}); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{out: "ours", place: "theirs", file: "ours"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", filepath.Base(path), b, err)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), place) {
		t.Errorf("the mount is seen outside, or %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p, err := s.Start(t.Context(), Start{Workload: Command, Command: []string{"true"}, Instead: map[string]string{filepath.Join(dir, "nothing"): file}}); err == nil {
		t.Error("there is no such place")
		p.Close()
	}
}

// A command runs where the caller is, so that its paths mean what they say.
func TestCommandRunsHere(t *testing.T) {
	s := unpacked(t, "amd64")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("here", []byte("#!/bin/sh\npwd >where\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, s, Start{Workload: Command, Command: []string{"./here"}})
	if _, err := p.Run(Request{Calls: 1}); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("where"); err != nil {
		t.Error(err)
	}
}
