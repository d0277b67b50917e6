package bpf

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// Without the ring buffer, events come through perf buffers: the same events, and none is lost.
func TestWithoutRingBuffer(t *testing.T) {
	t.Setenv(WithoutEnv, withoutRing)
	t.Run("switches", TestSleeps)
	t.Run("processes", TestAnnounceSignal)
}

// The same with programs on raw tracepoints, as on the kernels that have neither.
func TestWithoutTpBTF(t *testing.T) {
	t.Setenv(WithoutEnv, withoutRing+","+withoutTpBTF)
	r := load(t, Options{})
	for _, c := range r.own {
		if p, ok := c.(*ebpf.Program); ok && p.Type() == ebpf.Tracing {
			t.Errorf("a program of type %v", p.Type())
		}
		if m, ok := c.(*ebpf.Map); ok && m.Type() == ebpf.RingBuf {
			t.Error("there is a ring buffer")
		}
	}
	if notes := r.Fallbacks(); len(notes) != 2 {
		t.Errorf("notes: %q", notes)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	t.Run("switches", TestFutex)
}

// What perf buffers do not take is counted, and a wait ends when one is half full.
func TestPerfBuffersFull(t *testing.T) {
	t.Setenv(WithoutEnv, withoutRing)
	r := load(t, Options{Units: []string{UnitSched}, RingBytes: 1})
	tg := startTarget(t, "sleep", "1009")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tg.run()
	start := time.Now()
	woken, err := r.Read(make([]byte, 0, 1<<20), start.Add(100*time.Second))
	if err != nil || len(decode(t, woken)) == 0 || time.Since(start) > 90*time.Second {
		t.Errorf("%d bytes after %v, %v; half full is enough to wake", len(woken), time.Since(start), err)
	}
	tg.results()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	rest, err := r.Read(make([]byte, 0, 1<<20), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	events := decode(t, rest)
	if !slices.IsSortedFunc(events, func(a, b event) int { return int(int64(a.Time) - int64(b.Time)) }) {
		t.Error("events are not in order of time")
	}
	lost, err := r.Lost()
	if err != nil || lost["kernel_ring_full_waking"] == 0 || lost["kernel_ring_full_switch"] == 0 {
		t.Errorf("lost %v, %v; a buffer of 64 KiB cannot hold 1009 sleeps and wake-ups", lost, err)
	}
}

func TestWithoutBTF(t *testing.T) {
	t.Setenv(WithoutEnv, withoutBTF)
	r, err := Load(Options{})
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, ErrNoBTF) || !strings.Contains(err.Error(), "--btf") {
		t.Errorf("%v, want %v and what to do", err, ErrNoBTF)
	}
	os.Unsetenv(WithoutEnv)
	t.Setenv(WithoutEnv, "all")
	if r, err := Load(Options{}); err == nil || !strings.Contains(err.Error(), "there are ringbuf") {
		t.Errorf("%v, %v", r, err)
	}
}
