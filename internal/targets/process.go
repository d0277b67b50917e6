package targets

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// Process is what /proc says of a process, as it was when it was read.
type Process struct {
	Pid    int
	Comm   string // name of the main thread, at most 15 bytes
	Name   string // first argument of the command line: on Android the package, with ":component" if it has one
	Exe    string // path of the executed file, links followed; "" where it may not be looked at
	Cgroup string // path in the hierarchy of cgroup version 2, "" without
	UID    int    // effective
}

// Read reads a process. False: it is gone, or a kernel thread.
func Read(pid int) (p Process, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	comm, err := os.ReadFile(dir + "comm")
	if err != nil {
		return p, false
	}
	p = Process{Pid: pid, Comm: strings.TrimSuffix(string(comm), "\n")}
	if p.UID, ok = owner(dir); !ok {
		return p, false
	}
	if p.Exe, err = os.Readlink(dir + "exe"); errors.Is(err, os.ErrNotExist) {
		return p, false // a kernel thread has none
	}
	p.Exe = strings.TrimSuffix(p.Exe, " (deleted)")
	if b, err := os.ReadFile(dir + "cmdline"); err == nil {
		p.Name, _, _ = strings.Cut(string(b), "\x00")
	}
	if b, err := os.ReadFile(dir + "cgroup"); err == nil {
		for line := range strings.Lines(string(b)) {
			if path, ok := strings.CutPrefix(line, "0::"); ok {
				p.Cgroup = strings.TrimSuffix(path, "\n")
			}
		}
	}
	return p, true
}

// owner is the effective user id of a process's main thread. False: it is gone.
func owner(dir string) (uid int, ok bool) {
	b, err := os.ReadFile(dir + "status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(ids); len(f) > 1 {
				uid, err := strconv.Atoi(f[1])
				return uid, err == nil
			}
		}
	}
	return 0, false
}

// All lists the ids of all processes but this one.
func All() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}
