package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProbeRefused checks what cannot be probed.
func TestProbeRefused(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	path := programs(t)["plain"]
	tg := startProbed(t, path, "calls", "1")
	before := openFiles(t)
	whole := methodOf(t, path, "method")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  error
		text  string
		pid   int
		m     Method
		limit time.Duration
	}{
		{nil, "the limit is -1ns", tg.pid(), whole, -1},
		{ErrNoProcess, "", 1 << 30, whole, 0},
		{os.ErrNotExist, "", tg.pid(), Method{Path: "/nonexistent"}, 0},
		{nil, "bad magic", tg.pid(), Method{Path: text}, 0},
		{ErrNoProbe, "no symbol tells where it ends", tg.pid(), Method{Path: path, Address: whole.Address + 1}, 0},
		{ErrNoProbe, "no code at 0x7000000", tg.pid(), Method{Path: path, Address: 0x7000000, Size: 1}, 0},
		{ErrNoProbe, "bytes of code at", tg.pid(), Method{Path: path, Address: whole.Address, Size: 1 << 40}, 0},
	} {
		_, err := r.WatchMethod(c.pid, c.m, c.limit, 1)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, want %v, %q", c.m, err, c.want, c.text)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
	plain := load(t, Options{Units: []string{}})
	if _, err := plain.WatchMethod(tg.pid(), whole, 0, 1); !errors.Is(err, ErrNoWatch) {
		t.Errorf("without watching: %v", err)
	}
	if buf, err := r.Read(make([]byte, 0, 4096), time.Time{}); err != nil || len(buf) != 0 {
		t.Errorf("told: %v, error %v", decode(t, buf), err)
	}
}
