package bpf

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ownName returns a copy of the target program under a name that no other process of the machine has, so that nothing
// else is announced.
func ownName(t testing.TB, kind string) (path, name string) {
	t.Helper()
	name = "b" + kind + strconv.Itoa(os.Getpid())
	dir, err := os.MkdirTemp("", "braid-name-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(targetBinary)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path, name
}

// told is what was announced of a process, in order, those that match in capitals.
func told(t *testing.T, events []event) map[uint32][]string {
	t.Helper()
	by := map[uint32][]string{}
	for _, e := range events {
		if e.Kind != kevent.KindAnnounce {
			t.Errorf("an event of a process that is not recorded: %v", e)
			continue
		}
		a := kevent.DecodeAnnounce(e.body)
		what := a.What.String()
		if e.Flags&kevent.FlagMatch != 0 {
			what = strings.ToUpper(what)
		}
		by[a.Tgid] = append(by[a.Tgid], what+" "+string(kevent.Comm(&a.Comm)))
	}
	return by
}

func checkTold(t *testing.T, got map[uint32][]string, want map[int][]string) {
	t.Helper()
	for pid, w := range want {
		if !slices.Equal(got[uint32(pid)], w) {
			t.Errorf("told of process %d: %q, want %q", pid, got[uint32(pid)], w)
		}
		delete(got, uint32(pid))
	}
	if len(got) != 0 {
		t.Errorf("told of others: %v", got)
	}
}

// checkEmpty fails if a map still holds something. The kernel frees processes a moment after their end, with the hooks
// still attached, so it waits.
func checkEmpty(t *testing.T, r *Recorder, names ...string) {
	t.Helper()
	for _, name := range names {
		keys := mapKeys(t, r.maps[name])
		for try := 0; len(keys) != 0 && try < 500; try++ {
			time.Sleep(10 * time.Millisecond)
			keys = mapKeys(t, r.maps[name])
		}
		if len(keys) != 0 {
			t.Errorf("map %s still holds %v", name, keys)
		}
	}
}

func mapKeys(t *testing.T, m *ebpf.Map) (keys []uint32) {
	t.Helper()
	var key uint32
	value := make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		keys = append(keys, key)
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// run runs a command to its end and returns its process.
func run(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return cmd.Process.Pid
}

// TestAnnounce checks what is told of processes that match by name, from exec to exit, and that nothing is told of
// others, whatever they do.
func TestAnnounce(t *testing.T) {
	path, name := ownName(t, "ann")
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for what, match := range map[string]string{"exact": name, "prefix": name[:len(name)-1] + "*"} {
		for kernel, btf := range map[string]string{"tp_btf": "", "raw_tp": "/sys/kernel/btf/vmlinux"} {
			t.Run(what+"/"+kernel, func(t *testing.T) {
				r := load(t, Options{Units: []string{}, BTFPath: btf, Watch: &WatchOptions{Match: Match{Names: []string{match}}}})
				want := map[int][]string{}
				want[run(t, exec.Command(path, "threads", "3"))] = []string{"EXEC " + name, "EXIT " + name}
				run(t, exec.Command(targetBinary, "threads", "1"))
				want[run(t, exec.Command(link, "threads", "1"))] = []string{"EXEC link", "exit link"}

				// A process that matches and executes something else is told of a last time.
				out := startWith(t, exec.Command(path, "exec", targetBinary, "threads", "1"))
				out.run()
				if err := out.cmd.Wait(); err != nil {
					t.Fatal(err)
				}
				want[out.pid()] = []string{"EXEC " + name, "exec target"}
				checkEmpty(t, r, "announced")
				checkTold(t, told(t, stopAndRead(t, r)), want)
			})
		}
	}
}

// TestAnnounceRename checks a launcher's children, which take their name after their birth; and that one that was told
// of is told of until its end, under whatever name.
func TestAnnounceRename(t *testing.T) {
	_, name := ownName(t, "ren")
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{Match: Match{Names: []string{name}}}})
	tg := startTarget(t, "rename", "3", name)
	tg.run()
	tg.results()
	other := startTarget(t, "rename", "3", "somebody")
	other.run()
	other.results()

	// Children of a process that was added are told of without matching.
	parent := startTarget(t, "rename", "2", "child")
	if err := r.AddTarget(parent.pid()); err != nil {
		t.Fatal(err)
	}
	parent.run()
	parent.results()
	parent.finish()
	checkEmpty(t, r, "announced")

	var renamed, children int
	for pid, what := range told(t, announcements(stopAndRead(t, r))) {
		switch {
		case slices.Equal(what, []string{"RENAME " + name, "EXIT " + name}):
			renamed++
		case slices.Equal(what, []string{"fork target", "rename child", "exit child"}):
			children++
		case pid == uint32(parent.pid()) && slices.Equal(what, []string{"exit target"}):
		default:
			t.Errorf("told of process %d: %q", pid, what)
		}
	}
	if renamed != 3 || children != 2 {
		t.Errorf("told of %d renamed processes and %d children, want 3 and 2", renamed, children)
	}
}

func announcements(events []event) []event {
	return slices.DeleteFunc(events, func(e event) bool { return e.Kind != kevent.KindAnnounce })
}

// TestAnnounceByOwner checks the match by user and by cgroup, of a process that no name is given of.
func TestAnnounceByOwner(t *testing.T) {
	const uid = 1_947_311
	path, name := ownName(t, "own")
	root := t.TempDir()
	if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	outer := filepath.Join(root, name)
	inner := filepath.Join(outer, "inner")
	for _, dir := range []string{outer, inner} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}()
	}
	inode := func(dir string) uint64 {
		var st syscall.Stat_t
		if err := syscall.Stat(dir, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}

	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{}})
	run(t, exec.Command(path, "threads", "1")) // nothing is asked for
	if err := r.SetMatch(Match{Uids: []uint32{uid}}); err != nil {
		t.Fatal(err)
	}
	byUser := exec.Command(path, "threads", "1")
	byUser.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	run(t, byUser)
	run(t, exec.Command(path, "threads", "1"))
	if err := r.SetMatch(Match{Names: []string{"nobody"}, Cgroups: []uint64{1 << 60, inode(outer)}}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	byCgroup := exec.Command(path, "threads", "1")
	byCgroup.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	run(t, byCgroup)
	run(t, exec.Command(path, "threads", "1"))
	if err := r.SetMatch(Match{}); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command(path, "threads", "1"))

	events := stopAndRead(t, r)
	for _, e := range events {
		a := kevent.DecodeAnnounce(e.body)
		switch {
		case a.Tgid == uint32(byUser.Process.Pid) && a.UID != uid:
			t.Errorf("user %d: %v", uid, e)
		case a.Tgid == uint32(byCgroup.Process.Pid) && (a.Cgroup != inode(inner) || a.UID != uint32(os.Getuid())):
			t.Errorf("cgroup %d: %v", inode(inner), e)
		case a.ParentTgid != uint32(os.Getpid()):
			t.Errorf("parent %d: %v", os.Getpid(), e)
		}
	}
	by := told(t, events)
	for _, what := range by { // before its exec, a child has this test's name
		what[0] = strings.Fields(what[0])[0]
	}
	checkTold(t, by, map[int][]string{
		byUser.Process.Pid:   {"EXEC", "EXIT " + name},
		byCgroup.Process.Pid: {"FORK", "EXEC " + name, "EXIT " + name},
	})
}

// TestShortLived reads the announcements of 1,000 processes that end at once, adds each and removes it when it has
// ended: all are told of, and nothing is left of any.
func TestShortLived(t *testing.T) {
	const children = 1000
	path, name := ownName(t, "shrt")
	r := load(t, Options{Watch: &WatchOptions{Match: Match{Names: []string{name}}, Processes: 64}})
	tg := startWith(t, &exec.Cmd{Path: targetBinary, Args: []string{path, "spawn", strconv.Itoa(children), "1"}})
	tg.run()
	seen := map[string]int{}
	buf := make([]byte, 0, 1<<20)
	for deadline := time.Now().Add(100 * time.Second); seen["exit"] < children && time.Now().Before(deadline); {
		got, err := r.Read(buf, deadline)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range decode(t, got) {
			if e.Kind != kevent.KindAnnounce {
				t.Errorf("not an announcement: %v", e)
				continue
			}
			a := kevent.DecodeAnnounce(e.body)
			seen[a.What.String()]++
			if e.Flags&kevent.FlagMatch == 0 || string(kevent.Comm(&a.Comm)) != name {
				t.Errorf("somebody else: %v", e)
			}
			if a.What == kevent.AnnounceExit {
				err = r.RemoveTarget(int(a.Tgid))
			} else if err = r.AddWatched(int(a.Tgid)); errors.Is(err, ErrNoProcess) {
				seen["gone"]++
				err = nil
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	tg.results()
	tg.finish()
	gone := seen["gone"]
	delete(seen, "gone")
	if want := map[string]int{"exec": children, "exit": children}; !maps.Equal(seen, want) {
		t.Errorf("told %v, want %v", seen, want)
	}
	t.Logf("%d of %d processes had ended when they were to be added", gone, children)
	if lost, err := r.Lost(); err != nil || len(lost) != 0 {
		t.Errorf("lost %v, error %v", lost, err)
	}
	checkEmpty(t, r, "announced", "slots", "threads", "processes", "calls", "reclaims")
	if len(r.watch.owners) != 0 || len(r.watch.free) != 64 {
		t.Errorf("%d processes have slots, %d slots are free", len(r.watch.owners), len(r.watch.free))
	}
}

// TestAddRemove adds and removes a running process 10,000 times while it goes on switching: nothing is left of it, and
// reading all the while takes no memory.
func TestAddRemove(t *testing.T) {
	r := load(t, Options{Watch: &WatchOptions{Processes: 2}})
	tg := startTarget(t, "nap", "3")
	tg.run()
	tg.expect("napping")
	before := openFiles(t)
	buf := make([]byte, 0, 1<<20)
	for i := range 10_000 {
		add := r.AddTarget
		if i%2 == 0 {
			add = r.AddWatched
		}
		if err := add(tg.pid()); err != nil {
			t.Fatal(err)
		}
		if err := r.SetThresholds(tg.pid(), Thresholds{OffCPU: 1}); err != nil {
			t.Fatal(err)
		}
		if err := r.RemoveTarget(tg.pid()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(buf, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Read(buf, time.Now().Add(10*time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
	if got := r.targets.states[tg.pid()]; got != stateNone {
		t.Errorf("the process is still in state %d", got)
	}
	tg.kill()
	checkEmpty(t, r, "announced", "slots", "threads", "processes", "calls", "reclaims")
	if len(r.watch.owners) != 0 || len(r.watch.free) != 2 {
		t.Errorf("%d processes have slots, %d slots are free", len(r.watch.owners), len(r.watch.free))
	}
	if err := r.SetThresholds(tg.pid(), Thresholds{}); !errors.Is(err, ErrNotAdded) {
		t.Errorf("limits of a process that was removed: %v", err)
	}
}

func TestWatchErrors(t *testing.T) {
	for want, opts := range map[string]WatchOptions{
		`without folder, or its beginning`: {Match: Match{Names: []string{"*"}}},
		`named "/bin/sh"`:                  {Match: Match{Names: []string{"/bin/sh"}}},
		"33 names: at most 32":             {Match: Match{Names: slices.Repeat([]string{"x"}, 33)}},
		"33 cgroups: at most 32":           {Match: Match{Cgroups: make([]uint64, 33)}},
		"65 users: at most 64":             {Match: Match{Uids: make([]uint32, 65)}},
		"watch -1 processes":               {Processes: -1},
	} {
		r, err := Load(Options{Watch: &opts})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}

	tg := startTarget(t, "sleep", "1")
	plain := load(t, Options{Units: []string{UnitSched}})
	for _, name := range []string{"slots", "watched", "threads", "announced", "match"} {
		if plain.maps[name] != nil {
			t.Errorf("map %s is there without watching", name)
		}
	}
	_, err := plain.Histograms()
	for _, err := range []error{err, plain.AddWatched(tg.pid()), plain.SetMatch(Match{}), plain.SetThresholds(tg.pid(), Thresholds{})} {
		if !errors.Is(err, ErrNoWatch) {
			t.Errorf("without watching: %v", err)
		}
	}
	if err := plain.RemoveTarget(tg.pid()); err != nil {
		t.Errorf("remove a process that was never added: %v", err)
	}

	r := load(t, Options{Watch: &WatchOptions{Processes: 1}})
	if err := r.AddWatched(tg.pid()); err != nil {
		t.Fatal(err)
	}
	if err := r.AddTarget(os.Getpid()); !errors.Is(err, ErrTooMany) {
		t.Errorf("a second process where there is room for one: %v", err)
	}
	if err := r.SetThresholds(tg.pid(), Thresholds{Fsync: -1}); err == nil || !strings.Contains(err.Error(), "fsync is -1ns") {
		t.Errorf("a negative limit: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = r.Histograms()
	for _, err := range []error{err, r.AddWatched(tg.pid()), r.RemoveTarget(tg.pid())} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := r.Read(make([]byte, 0, 4096), time.Time{}); !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("Read after Close: %v", err)
	}
}

// TestAnnounceSignal checks that the end of a process tells which signal ended it.
func TestAnnounceSignal(t *testing.T) {
	path, name := ownName(t, "sig")
	r := load(t, Options{Units: []string{}, Watch: &WatchOptions{Match: Match{Names: []string{name}}}})
	tg := startWith(t, exec.Command(path, "nap", "2"))
	tg.run()
	tg.expect("napping")
	tg.kill()
	events := stopAndRead(t, r)
	if last := kevent.DecodeAnnounce(events[len(events)-1].body); last.What != kevent.AnnounceExit || last.Signal != uint8(syscall.SIGKILL) {
		t.Errorf("the last of %d announcements is %v, want an exit by SIGKILL", len(events), events[len(events)-1])
	}
}
