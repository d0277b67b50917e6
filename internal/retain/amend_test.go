package retain

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

// A summary that comes later takes the first one's place, and nothing else's.
func TestAmend(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/consent", []byte("programs: *\nusers: *\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slot, err := s.Admit(Candidate{Program: "p", UID: os.Getuid(), Trigger: "t", Time: time.Now(), Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(slot.Path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := slot.Commit("first")
	if err != nil {
		t.Fatal(err)
	}
	said := func() (text string) {
		t.Helper()
		var side Sidecar
		b, err := os.ReadFile(e.Summary)
		if err == nil {
			err = json.Unmarshal(b, &side)
		}
		if err == nil {
			err = json.Unmarshal(side.Summary, &text)
		}
		if err != nil || side.Entry.Name != e.Name {
			t.Fatalf("%s: %v", b, err)
		}
		return text
	}
	if got := said(); got != "first" {
		t.Fatalf("the summary is %q", got)
	}
	if err := os.Remove(e.Summary); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir() + "/elsewhere"
	if err := os.Symlink(elsewhere, e.Summary); err != nil { // as the user could
		t.Fatal(err)
	}
	if err := s.Amend(e, "second"); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "second" {
		t.Fatalf("the summary is %q", got)
	}
	if _, err := os.Stat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("a symbolic link was followed")
	}
	if b, err := os.ReadFile(e.Trace); string(b) != "0123456789" {
		t.Fatalf("the trace is %q, %v", b, err)
	}
	if left, _ := os.ReadDir(dir + "/.tmp"); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	gone := *e
	gone.Name += "x"
	if err := s.Amend(&gone, "third"); err == nil {
		t.Fatal("a summary of a trace that is not there was taken")
	}
	if left, _ := os.ReadDir(dir + "/.tmp"); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}
