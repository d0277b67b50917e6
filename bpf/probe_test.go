package bpf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
)

// probeLimit is between the program's naps, 0 and 60 ms.
const probeLimit = 25 * time.Millisecond

// probeTargets compiles testdata/probe.cc: as it is, and with stubs in it. Or they are in the folder that BRAID_TEST_PROBES
// names (for guests without a compiler).
var probeTargets = sync.OnceValues(func() (map[string]string, error) {
	if dir := os.Getenv("BRAID_TEST_PROBES"); dir != "" {
		return map[string]string{"plain": filepath.Join(dir, "plain"), "traced": filepath.Join(dir, "traced")}, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(targetBinary), "probe-") // removed with that
	if err != nil {
		return nil, err
	}
	run := func(command ...string) {
		if out, runErr := exec.Command(command[0], command[1:]...).CombinedOutput(); runErr != nil && err == nil {
			err = fmt.Errorf("%v: %w\n%s", command, runErr, out)
		}
	}
	braid, plain, traced := filepath.Join(dir, "braid"), filepath.Join(dir, "plain"), filepath.Join(dir, "traced")
	run("go", "build", "-o", braid, "braid/cmd/braid")
	compile := []string{"c++", "-O2", "-Wall", "-pthread", "testdata/probe.cc", "-o"}
	run(append(compile, plain)...)
	run(append([]string{braid, "cc"}, append(compile, traced)...)...)
	return map[string]string{"plain": plain, "traced": traced}, err
})

// probed is a running story, and what it is probed for.
type probed struct {
	*target
	path string
}

func startProbed(t *testing.T, path string, args ...string) *probed {
	t.Helper()
	return &probed{target: startWith(t, exec.Command(path, args...)), path: path}
}

func programs(t *testing.T) map[string]string {
	t.Helper()
	paths, err := probeTargets()
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// method returns a method by its symbol.
func methodOf(t testing.TB, path, name string) Method {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name {
			return Method{Path: path, Address: s.Value}
		}
	}
	t.Fatalf("%s has no symbol %s", path, name)
	return Method{}
}

func (p *probed) watch(r *Recorder, name string, limit time.Duration, cookie uint32) *Probe {
	p.t.Helper()
	probe, err := r.WatchMethod(p.pid(), methodOf(p.t, p.path, name), limit, cookie)
	if err != nil {
		p.t.Fatal(err)
	}
	return probe
}

// call is one that returned, as the program timed it.
type call struct {
	tid           uint32
	inside, whole uint64 // ns: the method's own time is between them
}

// calls runs the story to its end.
func (p *probed) calls() (calls []call) {
	p.t.Helper()
	p.run()
	for p.lines.Scan() && p.lines.Text() != "done" {
		var c call
		if _, err := fmt.Sscanf(p.lines.Text(), "call %d %d %d", &c.tid, &c.inside, &c.whole); err != nil {
			p.t.Fatalf("target says %q: %v", p.lines.Text(), err)
		}
		calls = append(calls, c)
	}
	if p.lines.Text() != "done" {
		p.t.Fatalf("the target ended early: %v", p.lines.Err())
	}
	return calls
}

// readProbes returns what there is, by cookie and thread. Nothing but calls of the process may be told.
func readProbes(t *testing.T, r *Recorder, pid int, limits map[uint32]time.Duration) map[uint32]map[uint32][]kevent.Fired {
	t.Helper()
	buf, err := r.Read(make([]byte, 0, 1<<20), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[uint32]map[uint32][]kevent.Fired{}
	for _, e := range decode(t, buf) {
		f := kevent.DecodeFired(e.body)
		if e.Kind != kevent.KindFired || f.What != kevent.LimitMethod || f.Tgid != uint32(pid) {
			t.Fatalf("told: %v", e)
		}
		if limit, ok := limits[f.Cookie()]; !ok || f.Limit != uint64(limit) || f.Value <= f.Limit {
			t.Errorf("told with limits %v: %v", limits, e)
		}
		if told[f.Cookie()] == nil {
			told[f.Cookie()] = map[uint32][]kevent.Fired{}
		}
		told[f.Cookie()][e.Tid] = append(told[f.Cookie()][e.Tid], f)
	}
	return told
}

// checkCalls compares calls with what was told of them, thread by thread, and returns how many were told. Only a call of
// which the program cannot say on which side of the limit it was may be told or not.
func checkCalls(t *testing.T, calls []call, told map[uint32][]kevent.Fired, limit time.Duration) (n int) {
	t.Helper()
	by := map[uint32][]call{}
	for _, c := range calls {
		by[c.tid] = append(by[c.tid], c)
	}
	for tid, fired := range told {
		n += len(fired)
		if by[tid] == nil {
			t.Errorf("told of thread %d, which made no call: %+v", tid, fired)
		}
	}
	for tid, calls := range by {
		if !explains(calls, told[tid], uint64(limit)) {
			t.Errorf("thread %d made the calls %+v, and told was %+v", tid, calls, told[tid])
		}
	}
	return n
}

// explains says whether exactly these events can be of these calls, in this order. How many of them may be the calls' so
// far is kept for all ways to choose, because more than one event may fit a call.
func explains(calls []call, fired []kevent.Fired, limit uint64) bool {
	possible := map[int]bool{0: true}
	for _, c := range calls {
		next := map[int]bool{}
		for n := range possible {
			if c.inside <= limit {
				next[n] = true
			}
			if c.whole > limit && n < len(fired) && c.inside <= fired[n].Value && fired[n].Value <= c.whole {
				next[n+1] = true
			}
		}
		possible = next
	}
	return possible[len(fired)]
}

func noLoss(t *testing.T, r *Recorder) {
	t.Helper()
	if lost, err := r.Lost(); err != nil || len(lost) != 0 {
		t.Errorf("lost %v, error %v", lost, err)
	}
}

// TestProbe runs stories in which calls are long and short, and checks that exactly the long ones are told, in order,
// with durations between what the program measured within the method and around it; and that the program lives.
func TestProbe(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	for _, s := range []struct {
		name, method string
		n, calls     int
		long         int
	}{
		{"calls", "method", 31, 31, 6},
		{"tail", "tail", 17, 17, 3},
		{"recursion", "method", 5, 5, 5},
		{"threads", "method", 7, 77, 14},
		{"jump", "method", 3, 15, 3},
		{"throw", "method", 3, 15, 3},
		{"fork", "method", 7, 7, 1},
	} {
		for kind, path := range programs(t) {
			t.Run(s.name+"/"+kind, func(t *testing.T) {
				tg := startProbed(t, path, s.name, fmt.Sprint(s.n))
				probe := tg.watch(r, s.method, probeLimit, 7)
				calls := tg.calls()
				told := readProbes(t, r, tg.pid(), map[uint32]time.Duration{7: probeLimit})
				if n := checkCalls(t, calls, told[7], probeLimit); len(calls) != s.calls || n < s.long {
					t.Errorf("%d calls, of which %d were told; want %d and at least %d", len(calls), n, s.calls, s.long)
				}
				if s.name != "jump" && s.name != "throw" { // those may leave the outermost one
					checkOpen(t, probe, 0)
				}
				tg.finish()
				checkOpen(t, probe, 0)
				if err := probe.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	noLoss(t, r)
}

// openCalls is the probe's map of threads that are in the method.
func openCalls(t *testing.T, p *Probe) *ebpf.Map {
	t.Helper()
	for _, c := range p.own {
		if m, ok := c.(*ebpf.Map); ok && m.Type() == ebpf.Hash {
			return m
		}
	}
	t.Fatal("the probe has no map")
	return nil
}

func checkOpen(t *testing.T, p *Probe, want int) {
	t.Helper()
	keys := mapKeys(t, openCalls(t, p))
	for try := 0; len(keys) != want && try < 500; try++ {
		time.Sleep(10 * time.Millisecond)
		keys = mapKeys(t, openCalls(t, p))
	}
	if len(keys) != want {
		t.Errorf("threads %v are within the method, want %d", keys, want)
	}
}

// TestProbeDeep checks that of 21 calls within each other the outermost 16 are told, and the others counted.
func TestProbeDeep(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	tg := startProbed(t, programs(t)["plain"], "recursion", "21")
	tg.watch(r, "method", probeLimit, 1)
	calls := tg.calls()
	if len(calls) != 21 {
		t.Fatalf("%d calls", len(calls))
	}
	told := readProbes(t, r, tg.pid(), map[uint32]time.Duration{1: probeLimit})
	if n := checkCalls(t, calls[5:], told[1], probeLimit); n != 16 {
		t.Errorf("%d calls were told, want 16", n)
	}
	lost, err := r.Lost()
	if err != nil || len(lost) != 1 || lost["kernel_map_full_methods"] != 5 {
		t.Errorf("lost %v, error %v; want 5 calls", lost, err)
	}
}

// TestProbeThreadEnds checks that threads which end within the method leave nothing.
func TestProbeThreadEnds(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	tg := startProbed(t, programs(t)["traced"], "exit", "13")
	probe := tg.watch(r, "method", probeLimit, 1)
	if calls := tg.calls(); len(calls) != 0 {
		t.Fatalf("%d calls returned", len(calls))
	}
	checkOpen(t, probe, 0)
	if told := readProbes(t, r, tg.pid(), nil); len(told) != 0 {
		t.Errorf("told %v", told)
	}
	noLoss(t, r)
}

// TestProbeTwo checks two probes at one method and one at another, with limits of their own; one of them is closed
// between two runs.
func TestProbeTwo(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	tg := startProbed(t, programs(t)["traced"], "calls", "13")
	limits := map[uint32]time.Duration{1: probeLimit, 2: 0, 3: time.Hour, 4: 0}
	first := tg.watch(r, "method", limits[1], 1)
	tg.watch(r, "method", limits[2], 2)
	tg.watch(r, "method", limits[3], 3)
	tg.watch(r, "tail", limits[4], 4)
	calls := tg.calls()
	told := readProbes(t, r, tg.pid(), limits)
	if one, two := checkCalls(t, calls, told[1], limits[1]), checkCalls(t, calls, told[2], 0); one < 2 || two != 13 || len(told) != 2 {
		t.Errorf("told %d and %d of 13 calls, by %d probes", one, two, len(told))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	calls = tg.calls()
	told = readProbes(t, r, tg.pid(), limits)
	if two := checkCalls(t, calls, told[2], 0); two != 13 || len(told) != 1 {
		t.Errorf("after closing one: told %d of 13 calls, by %d probes", two, len(told))
	}
	noLoss(t, r)
}

// TestProbeWakes checks that a long call ends the reader's wait.
func TestProbeWakes(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	tg := startProbed(t, programs(t)["plain"], "recursion", "1")
	tg.watch(r, "method", probeLimit, 1)
	tg.run()
	deadline := time.Now().Add(100 * time.Second)
	buf, err := r.Read(make([]byte, 0, 4096), deadline)
	if err != nil || len(decode(t, buf)) != 1 || !time.Now().Before(deadline) {
		t.Errorf("read %d bytes, error %v", len(buf), err)
	}
}

// code reads a method's bytes in a process, with the breakpoints that are in it.
func (p *probed) code(m Method, size int) []byte {
	p.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	e, err := elf.Open(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer e.Close()
	var base uint64
	if e.Type == elf.ET_DYN {
		fmt.Sscanf(string(maps), "%x-", &base)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer mem.Close()
	code := make([]byte, size)
	if _, err := mem.ReadAt(code, int64(base+m.Address)); err != nil {
		p.t.Fatal(err)
	}
	return code
}

// TestProbeCloses checks that closing a probe, with threads within the method, leaves no breakpoint, no program and no
// open file; that so does the Recorder's end; and that a probed process which is killed needs no more than Close.
func TestProbeCloses(t *testing.T) {
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	tg := startProbed(t, programs(t)["plain"], "stay", "1")
	m := methodOf(t, tg.path, "method")
	clean := tg.code(m, 64)
	tg.run()
	tg.expect("staying")
	tg.watch(r, "method", 0, 1).Close() // opens what the library keeps
	before := openFiles(t)
	for range 7 {
		probe := tg.watch(r, "method", 0, 1)
		if bytes.Equal(tg.code(m, 64), clean) {
			t.Error("no breakpoint is there")
		}
		ids := probeIDs(t, probe)
		for range 2 {
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(tg.code(m, 64), clean) {
			t.Error("a breakpoint is left")
		}
		if after := openFiles(t); after != before {
			t.Fatalf("%d open files before, %d after", before, after)
		}
		checkGone(t, ids)
	}
	killed := tg.watch(r, "method", time.Hour, 1)
	last := tg.watch(r, "method", time.Hour, 2)
	ids := append(probeIDs(t, killed), probeIDs(t, last)...)
	tg.kill()
	checkOpen(t, last, 0)
	if err := killed.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := r.WatchMethod(os.Getpid(), m, 0, 1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Stop: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := last.Close(); err != nil {
		t.Errorf("after the Recorder: %v", err)
	}
	checkGone(t, ids)
}

func probeIDs(t *testing.T, p *Probe) (ids []uint32) {
	t.Helper()
	for _, prog := range p.progs {
		info, err := prog.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		ids = append(ids, uint32(id))
	}
	if len(ids) != 3 {
		t.Fatalf("a probe has %d programs", len(ids))
	}
	return ids
}
