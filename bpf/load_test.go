package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
)

// loadAndReport is this test binary run by others: load, say how it went, wait for stdin's end.
func loadAndReport() {
	r, err := Load(Options{})
	if err != nil {
		fmt.Printf("%v\n", err)
		os.Exit(3)
	}
	ids, err := programIDs(r)
	fmt.Println(ids, err)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func programIDs(r *Recorder) (ids []uint32, err error) {
	for _, c := range r.own {
		p, ok := c.(*ebpf.Program)
		if !ok {
			continue
		}
		info, err := p.Info()
		if err != nil {
			return nil, err
		}
		id, ok := info.ID()
		if !ok {
			return nil, errors.New("a program has no id")
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}

// checkGone fails if a program is still in the kernel. Programs are freed after an RCU grace period, so it waits.
func checkGone(t *testing.T, ids []uint32) {
	t.Helper()
	if len(ids) == 0 {
		t.Fatal("no program ids to look for")
	}
	for _, id := range ids {
		for try := 0; ; try++ {
			p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
			if errors.Is(err, os.ErrNotExist) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Close()
			if try == 500 {
				t.Errorf("program %d is still there", id)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestNothingLeftAfterClose(t *testing.T) {
	first, err := Load(Options{}) // opens what the library keeps
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	r, err := Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := programIDs(r)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	checkGone(t, ids)
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
	if _, err := r.Read(make([]byte, 0, 4096), time.Time{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := r.AddTarget(os.Getpid()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("AddTarget after Close: %v", err)
	}
}

// self returns this test binary as a command that any user can run.
func self(t *testing.T) *exec.Cmd {
	t.Helper()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = append(os.Environ(), "BRAID_TEST_LOAD=1")
	return cmd
}

func TestNothingLeftAfterKill(t *testing.T) {
	cmd := self(t)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	list, _, ok := strings.Cut(strings.TrimPrefix(string(line[:n]), "["), "] <nil>")
	if !ok {
		t.Fatalf("the loader says %q", line[:n])
	}
	var ids []uint32
	for _, f := range strings.Fields(list) {
		var id uint32
		fmt.Sscan(f, &id)
		ids = append(ids, id)
	}
	checkGone(t, ids)
}

func TestNotRoot(t *testing.T) {
	cmd := self(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("as nobody: %v, output %q; want exit code 3", err, out)
	}
	const want = "not allowed to record kernel events: CAP_BPF and CAP_PERFMON missing: run as root (braid doctor: privileges)\n"
	if string(out) != want {
		t.Errorf("as nobody:\n got %q\nwant %q", out, want)
	}
}

func TestBadOptions(t *testing.T) {
	for want, opts := range map[string]Options{
		`unknown unit "shed"`:        {Units: []string{"shed"}},
		"choose at most":             {RingBytes: 2 << 30},
		"read BTF file /nonexistent": {BTFPath: "/nonexistent"},
	} {
		r, err := Load(opts)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}

func TestBadProcesses(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}})
	gone := startTarget(t, "sleep", "1")
	gone.kill()
	for _, pid := range []int{-1, 0, gone.pid(), 1 << 30} {
		if err := r.AddTarget(pid); !errors.Is(err, ErrNoProcess) {
			t.Errorf("AddTarget(%d): %v", pid, err)
		}
		if err := r.AddPending(pid); !errors.Is(err, ErrNoProcess) {
			t.Errorf("AddPending(%d): %v", pid, err)
		}
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return e.Name() != fmt.Sprint(os.Getpid()) })
	var tid int
	fmt.Sscan(entries[i].Name(), &tid)
	if err := r.AddTarget(tid); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("thread of process %d", os.Getpid())) {
		t.Errorf("AddTarget of a thread: %v", err)
	}
}

// TestRawTracepoints loads with the kernel's types from a file, which takes the raw_tp objects, and records with them.
func TestRawTracepoints(t *testing.T) {
	r := load(t, Options{BTFPath: "/sys/kernel/btf/vmlinux"})
	for _, c := range r.own {
		if p, ok := c.(*ebpf.Program); ok && p.Type() == ebpf.Tracing {
			t.Errorf("a program of type %v", p.Type())
		}
	}
	tg := startTarget(t, "sleep", "101")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tracing := startFtrace(t, "sched/sched_switch", "sched/sched_waking")
	tg.run()
	spans, _ := tg.results()
	tg.finish()
	theirs := tracing.stop()
	events := stopAndRead(t, r)
	checkSwitches(t, events, spans[0])
	checkFtrace(t, events, theirs, spans)
	i := slices.IndexFunc(events, func(e event) bool { return e.Kind == kevent.KindWaking })
	if i < 0 || !bytes.Contains([]byte(events[i].String()), []byte(`comm="target"`)) {
		t.Errorf("no wake-up with the target's name")
	}
}

// TestRingFull checks that what a small ring does not take is counted, and that the rest is whole.
func TestRingFull(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}, RingBytes: 1})
	tg := startTarget(t, "sleep", "503")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tracing := startFtrace(t, "sched/sched_switch", "sched/sched_waking")
	tg.run()
	spans, _ := tg.results()
	theirs := tracing.stop()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	buf, err := r.Read(make([]byte, 0, 1<<16), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	events := decode(t, buf)
	lost, err := r.Lost()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]uint64{}
	for _, e := range theirs {
		if e.name == "sched_waking" && e.a == spans[0].tid || e.name == "sched_switch" && (e.a == spans[0].tid || e.b == spans[0].tid) {
			read[e.name]++
		}
	}
	wakes := uint64(count(events, kevent.KindWaking, func(e event) bool { return true }))
	lostWakes := lost["kernel_ring_full_waking"]
	// Why not exactly: see compareFtrace.
	if n := wakes + lostWakes; n < read["sched_waking"]*98/100 || n > read["sched_waking"]*102/100+1 || lostWakes < 400 {
		t.Errorf("%d wake-ups read and %d counted as lost, ftrace has %d", wakes, lostWakes, read["sched_waking"])
	}
	// Switches between foreigners count too, so that only the lower bound is known.
	switches := uint64(count(events, kevent.KindSwitch, func(e event) bool { return true }))
	if n := switches + lost["kernel_ring_full_switch"]; n < read["sched_switch"]*98/100 {
		t.Errorf("%d switches read or counted as lost, ftrace has %d", n, read["sched_switch"])
	}
}

func TestRead(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}, RingBytes: 1 << 16})
	if _, err := r.Read(make([]byte, 0, 8), time.Time{}); !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("8 bytes of room: %v", err)
	}
	if err := r.AddTarget(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	// The ring fills past half: the kernel must wake the reader long before this deadline.
	tg := startTarget(t, "sleep", "1009")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	tg.run()
	start := time.Now()
	buf, err := r.Read(make([]byte, 0, 1<<16), start.Add(100*time.Second))
	if err != nil || len(buf) < 1<<14 {
		t.Errorf("read %d bytes, error %v", len(buf), err)
	}
	if time.Since(start) > 90*time.Second {
		t.Error("only the deadline ended the wait, although the ring was half full")
	}
	decode(t, buf)

	// Room for one event at a time, then none.
	one, err := r.Read(make([]byte, 0, kevent.MaxSize), time.Now().Add(time.Second))
	if err != nil || len(one) == 0 {
		t.Errorf("room for one event: %d bytes, %v", len(one), err)
	}
	decode(t, one)

	// Close ends a wait.
	done := make(chan error)
	go func() {
		for {
			if _, err := r.Read(make([]byte, 0, 1<<16), time.Now().Add(time.Hour)); err != nil {
				done <- err
				return
			}
		}
	}()
	time.Sleep(10 * time.Millisecond)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("a wait that Close ended: %v", err)
	}
}
