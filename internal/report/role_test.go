package report

import (
	"bytes"
	"testing"
)

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		pid, tid uint32
		name     string
		want     string
	}{
		{412, 412, "ndroid.systemui", "main"},
		{412, 430, "RenderThread", "render"},
		{412, 413, "Binder:412_1", "binder"},
		{412, 414, "HwBinder:412_2", "binder"},
		{412, 415, "Binder:41_1", ""}, // another's name, as a fork's thread may still have
		{412, 416, "main", ""},
		{412, 417, "binder", ""},
	} {
		if got := roleOf(c.pid, c.tid, c.name); got != c.want {
			t.Errorf("thread %d %q of %d: %q, want %q", c.tid, c.name, c.pid, got, c.want)
		}
		o := Options{Thread: c.want}
		if c.want != "" && (!o.shows(c.pid, c.tid, c.name) || o.shows(c.pid, 1, "other")) {
			t.Errorf("--thread %s does not choose thread %d alone", c.want, c.tid)
		}
	}
	r := &Report{}
	for i, name := range []string{"ndroid.systemui", "RenderThread", "Binder:412_1", "Binder:412_2"} {
		tid := uint32(412 + i)
		r.Threads = append(r.Threads, Thread{Pid: 412, Tid: tid, Name: name, Role: roleOf(412, tid, name), RunningNs: 1_000_000, SleepingNs: 5_000_000, WallNs: 6_000_000})
	}
	r.Threads = append(r.Threads, Thread{Pid: 500, Tid: 500, Name: "alone", Role: "main"}, Thread{Pid: 500, Tid: 501, Name: "Binder:500_1", Role: "binder"})
	for i, want := range []string{"ndroid.s main", "RenderThread", "Binder:412_1", "Binder:412_2", "alone main"} {
		if got := r.label(&r.Threads[i], 13); got != want {
			t.Errorf("shown as %q, want %q", got, want)
		}
	}
	var text bytes.Buffer
	r.textPools(&text)
	if got, want := text.String(), "2 binder threads of process 412: running 2.00ms, runnable 0, sleeping 10.0ms\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
