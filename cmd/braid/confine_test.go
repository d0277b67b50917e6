package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confineEnv makes this test binary take something away from itself, and then execute its arguments.
const confineEnv = "BRAID_TEST_CONFINE"

// The ways of confine.
const (
	noBPF        = "no bpf"        // a seccomp filter that refuses the bpf system call, as containers' do
	noPerf       = "no perf"       // the same for perf_event_open
	noPrivileges = "no privileges" // user 0 without any capability
	noTracefs    = "no tracefs"    // in mounts of its own
	noCgroups    = "no cgroups"    // of version 2, in mounts of its own
	pidNamespace = "pid namespace" // a new one
)

// confined is braid with something taken away.
func confined(t *testing.T, how string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("/proc/self/exe", append([]string{braidBin}, args...)...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), confineEnv+"="+how)
	if how == pidNamespace {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	}
	return c
}

// confine is the test binary's own main function then. It returns only if it failed.
func confine(how string) int {
	runtime.LockOSThread()
	os.Unsetenv(confineEnv)
	var err error
	switch how {
	case noBPF:
		err = refuse(unix.SYS_BPF)
	case noPerf:
		err = refuse(unix.SYS_PERF_EVENT_OPEN)
	case noPrivileges:
		err = dropCapabilities()
	case noTracefs:
		err = hideTracefs()
	case noCgroups:
		err = unmountCgroups()
	case pidNamespace:
		if err = ownMounts(); err == nil {
			err = unix.Mount("proc", "/proc", "proc", 0, "")
		}
	}
	if err == nil {
		err = unix.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintf(os.Stderr, "confine %s: %v\n", how, err)
	return 99
}

// refuse makes a system call fail with EPERM from now on.
func refuse(nr uint32) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // struct seccomp_data, nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

// dropCapabilities also keeps them from coming back when a program is executed.
func dropCapabilities() error {
	const noRoot, noSetuidFixup = 1 << 0, 1 << 2 // SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP, include/uapi/linux/securebits.h
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noSetuidFixup, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// ownMounts keeps what is mounted from now on in this namespace.
func ownMounts() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }

func hideTracefs() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := ownMounts(); err != nil {
		return err
	}
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug"} {
		if err := unix.Mount("nothing", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
	}
	return nil
}

func unmountCgroups() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := ownMounts(); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); strings.Contains(line, " - cgroup2 ") {
			if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkForks checks a recording of "target fork 2": all of its calls, and whether it has kernel events.
func checkForks(t *testing.T, file string, o outcome, kernel bool) {
	t.Helper()
	checkRecorded(t, file, o, 0)
	r := report(t, file)
	r.calls(t, map[string]int{"main": 1, "child": 2, "leaf": 7 + 100 + 101})
	if m := r.method(t, "leaf"); (m.Total.Running > 0) != kernel {
		t.Errorf("kernel events: %v, leaf: %+v", kernel, m.Total)
	}
	if has := strings.Contains(o.stderr, "braid: note: no kernel events: "); has == kernel {
		t.Errorf("kernel events: %v, stderr: %s", kernel, o.stderr)
	}
}

// What the kernel refuses costs what needs it, and a sentence that says what to do. Everything else is recorded.
func TestConfined(t *testing.T) {
	for _, c := range []struct {
		how    string
		kernel bool
		says   string
	}{
		{noBPF, false, "look for SELinux, AppArmor or seccomp denials"},
		{noPerf, true, ""},
		{noPrivileges, false, "CAP_BPF and CAP_PERFMON missing: run as root"},
		{noTracefs, true, ""},
		{pidNamespace, false, "run braid outside of the container"},
	} {
		t.Run(c.how, func(t *testing.T) {
			file := t.TempDir() + "/out.braid"
			o := finish(t, confined(t, c.how, "record", "-o", file, "--", programs["target"], "fork", "2"))
			checkForks(t, file, o, c.kernel)
			if !strings.Contains(o.stderr, c.says) {
				t.Errorf("stderr: %s, want %q", o.stderr, c.says)
			}
			if c.kernel {
				return
			}
			o = finish(t, confined(t, c.how, "record", "-o", file, "--kernel", "sched", "--", programs["target"], "count", "1"))
			if o.code != 1 || !strings.Contains(o.stderr, c.says) {
				t.Errorf("kernel events were asked for: %d, %s", o.code, o.stderr)
			}
		})
	}
}

// A kernel that lacks something is recorded in another way, or says what it wants.
func TestWithout(t *testing.T) {
	const btf = "/sys/kernel/btf/vmlinux"
	for _, c := range []struct {
		without string
		flags   []string
		kernel  bool
		says    string
	}{
		{"ringbuf", nil, true, "no BPF ring buffer"},
		{"ringbuf,tp_btf", nil, true, "raw tracepoints"},
		{"btf", nil, false, "with --btf FILE"},
		{"btf", []string{"--btf", btf}, true, ""},
		{"btf,ringbuf", []string{"--btf", btf}, true, "no BPF ring buffer"},
		{"btf", []string{"--btf", braidBin}, false, "read BTF file"},
	} {
		t.Run(fmt.Sprint(c.without, c.flags), func(t *testing.T) {
			t.Setenv("BRAID_TEST_WITHOUT", c.without)
			file := t.TempDir() + "/out.braid"
			args := append(append([]string{"record", "-o", file}, c.flags...), "--", programs["target"], "fork", "2")
			o := braid(t, args...)
			checkForks(t, file, o, c.kernel)
			if !strings.Contains(o.stderr, c.says) {
				t.Errorf("stderr: %s, want %q", o.stderr, c.says)
			}
			if c.without == "ringbuf,tp_btf" {
				checkPerfetto(t, file)
			}
		})
	}
}

// Two capabilities are enough for kernel events, and a third one where the kernel counts their memory as locked (before
// Linux 5.11).
func TestCapabilities(t *testing.T) {
	dir := t.TempDir()
	openTo(t, dir)
	file := filepath.Join(dir, "out.braid")
	c := exec.Command(braidBin, "record", "-o", file, "--", programs["target"], "fork", "2")
	c.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: nobody, Gid: nobody},
		AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_PERFMON},
	}
	var own [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]); err != nil {
		t.Fatal(err)
	}
	if own[0].Effective>>unix.CAP_SYS_RESOURCE&1 != 0 { // not in every container, and not needed by newer kernels
		c.SysProcAttr.AmbientCaps = append(c.SysProcAttr.AmbientCaps, unix.CAP_SYS_RESOURCE)
	}
	c.Dir = dir
	checkForks(t, file, finish(t, c), true)
}

// newCgroup makes a cgroup of version 2. In a guest, they are mounted first.
func newCgroup(t *testing.T) string {
	t.Helper()
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			root = dir
		}
	}
	if root == "" && testBin != "" {
		root = "/sys/fs/cgroup"
		if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if root == "" {
		t.Fatal("this machine has no cgroups of version 2 under /sys/fs/cgroup: the test needs them, and may write there as root")
	}
	group, err := os.MkdirTemp(root, "braid-test-")
	if err != nil {
		t.Fatalf("the test can't make a cgroup: %v", err)
	}
	t.Cleanup(func() {
		until(t, "the cgroup to be empty", func() bool { return os.Remove(group) == nil })
	})
	return group
}

// A program is found by its cgroup, also if the cgroup comes later. Where there are none of version 2, that is said.
func TestWatchCgroup(t *testing.T) {
	group := newCgroup(t)
	name := "/" + filepath.Base(group)
	config := "programs:\n  - {cgroup: " + name + ", threads: all, rings: 4, ring: 1M}\ntriggers:\n  - {name: died, crash: true}\n"
	if err := os.Remove(group); err != nil {
		t.Fatal(err)
	}
	w := watch(t, config)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := exec.Command(programs["target"], "serve", "1")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	p := start(t, c)
	pid := p.expect("main")
	w.follows(t, pid, 2)
	w.ends(t)
	p.unharmed()

	again := &watcher{dir: w.dir, socket: w.socket}
	file := filepath.Join(t.TempDir(), "watch.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"+config+"output:\n  dir: "+w.dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again.begin(t, confined(t, noCgroups, "watch", "--config", file, "--socket", w.socket))
	again.said(t, "no cgroups of version 2")
	again.said(t, "msg=watching programs=")
	again.ends(t)
}
