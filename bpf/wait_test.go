package bpf

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"braid/internal/kevent"
)

// TestWaits compares what a thread is said to have slept in with what it says itself: each call, exactly, and what it
// was at.
func TestWaits(t *testing.T) {
	for name, opts := range map[string]Options{
		"btf": {Units: []string{UnitWait}},
		"raw": {Units: []string{UnitWait}, BTFPath: "/sys/kernel/btf/vmlinux"},
	} {
		t.Run(name, func(t *testing.T) { testWaits(t, opts) })
	}
}

func testWaits(t *testing.T, opts Options) {
	const rounds = 11
	flags := targetFlags(t)
	r := load(t, opts)
	tg := startTarget(t, "waits", strconv.Itoa(rounds))
	untilAsleep(t, tg.pid())
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	tg.run()
	_, said := tg.results()
	tg.finish()
	events := stopAndRead(t, r)

	type key struct {
		call   kevent.WaitCall
		file   kevent.FileKind
		fd     int32
		object uint64
	}
	want := map[key]bool{}
	for name, k := range map[string]key{
		"futex_wait":    {call: kevent.WaitFutexWait},
		"futex_lock_pi": {call: kevent.WaitFutexLockPI},
		"read":          {call: kevent.WaitRead, file: kevent.FilePipe},
		"write":         {call: kevent.WaitWrite, file: kevent.FilePipe},
		"recv":          {call: kevent.WaitRecv, file: kevent.FileUnixSocket},
		"accept":        {call: kevent.WaitAccept, file: kevent.FileInetSocket},
		"eventfd":       {call: kevent.WaitRead, file: kevent.FileEventfd},
		"epoll_wait":    {call: kevent.WaitEpollWait, file: kevent.FileEpoll},
		"poll":          {call: kevent.WaitPoll, file: kevent.FilePipe},
		"select":        {call: kevent.WaitSelect},
		"file_lock":     {call: kevent.WaitFileLock, file: kevent.FileRegular},
		"timerfd":       {call: kevent.WaitRead, file: kevent.FileTimerfd},
		"nanosleep":     {call: kevent.WaitNanosleep},
		"signal":        {call: kevent.WaitSignal},
	} {
		object, ok := said[name+"_object"]
		if !ok {
			t.Errorf("the story says nothing of %s", name)
		}
		k.object, k.fd = object, int32(uint32(said[name+"_fd"]))
		want[k] = true
	}

	got := map[key]int{}
	for _, e := range events {
		if e.Kind != kevent.KindSyscallWait || e.Tid != uint32(said["sleeper"]) {
			continue
		}
		w := kevent.DecodeSyscallWait(e.body)
		got[key{w.Call, w.File, w.FD, w.Object}]++
		if w.Tgid != uint32(tg.pid()) || w.StartNs == 0 || w.StartNs > e.Time || w.Switches == 0 || w.Key != 0 || e.Flags != flags {
			t.Errorf("odd: %v", e)
		}
	}
	for k := range want {
		if got[k] != rounds {
			t.Errorf("%v at %v, descriptor %d, object %d: %d waits, want %d", k.call, k.file, k.fd, k.object, got[k], rounds)
		}
	}
	for k, n := range got {
		if !want[k] {
			t.Logf("besides, %d waits: %v at %v, descriptor %d, object %d", n, k.call, k.file, k.fd, k.object)
		}
	}
	checkWakes(t, events, said, rounds)

	// The main thread was reading from stdin when its process was added.
	first := slices.IndexFunc(events, func(e event) bool { return e.Kind == kevent.KindSyscallWait && e.Tid == uint32(tg.pid()) })
	if first < 0 {
		t.Fatal("no waits of the main thread")
	}
	w := kevent.DecodeSyscallWait(events[first].body)
	if w.StartNs != 0 || w.Switches != 0 || w.Call != kevent.WaitRead || w.FD != 0 || w.File != kevent.FilePipe || w.Ret != 1 {
		t.Errorf("the call that was under way when the process was added: %v", events[first])
	}
}

// untilAsleep waits until a process's main thread sleeps.
func untilAsleep(t *testing.T, pid int) {
	t.Helper()
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stat, []byte(") S ")) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// targetFlags are the flags of all calls of testdata/target.c, which may be a program of 32 bits.
func targetFlags(t *testing.T) uint8 {
	t.Helper()
	f, err := elf.Open(targetBinary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Class == elf.ELFCLASS32 {
		return kevent.FlagCompat
	}
	return 0
}

// checkWakes checks who released the futexes of the story.
func checkWakes(t *testing.T, events []event, said map[string]uint64, rounds int) {
	t.Helper()
	for op, name := range map[kevent.WakeOp]string{kevent.WakeFutexWake: "futex_wait", kevent.WakeFutexUnlockPI: "futex_lock_pi"} {
		n := count(events, kevent.KindFutexWake, func(e event) bool {
			w := kevent.DecodeFutexWake(e.body)
			return e.Tid == uint32(said["waker"]) && w.Op == op && w.Address == said[name+"_object"] && w.Woken == 1 &&
				w.StartNs != 0 && w.StartNs <= e.Time
		})
		if n != rounds {
			t.Errorf("%s: %d releases by the waker, want %d", name, n, rounds)
		}
	}
}
