package capture

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"braid/internal/counter"
	"braid/internal/tracefile"
)

// Describe reads what /proc says of a process; what can't be read stays empty, as it may be gone.
func Describe(pid int) tracefile.Process {
	p := tracefile.Process{Pid: pid}
	dir := fmt.Sprintf("/proc/%d/", pid)
	if b, err := os.ReadFile(dir + "comm"); err == nil {
		p.Name = strings.TrimSuffix(string(b), "\n")
	}
	if b, err := os.ReadFile(dir + "cmdline"); err == nil && len(b) > 0 {
		for _, a := range bytes.Split(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
			p.Cmdline = append(p.Cmdline, string(a))
		}
	}
	if f := stat(dir + "stat"); len(f) > 1 {
		p.PPid, _ = strconv.Atoi(f[1])
	}
	return p
}

// stat returns the fields of a stat file from the state on (field 3), or nil.
func stat(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return nil
	}
	return strings.Fields(string(b[i+1:]))
}

// ThreadsOf reads what every thread of a process is doing right now: where the kernel side begins.
func ThreadsOf(pid int) []tracefile.Thread {
	dir := fmt.Sprintf("/proc/%d/task/", pid)
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []tracefile.Thread
	for _, e := range es {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		t := tracefile.Thread{Tid: tid, Pid: pid}
		if f := stat(dir + e.Name() + "/stat"); len(f) > 0 {
			t.State = f[0]
			t.StateNs, _ = counter.Boottime()
		}
		if b, err := os.ReadFile(dir + e.Name() + "/comm"); err == nil {
			t.Names = []string{strings.TrimSuffix(string(b), "\n")}
		}
		out = append(out, t)
	}
	return out
}

// Gone reports whether there is no process of this id any more.
func Gone(pid int) bool {
	_, err := os.Lstat("/proc/" + strconv.Itoa(pid))
	return err != nil
}
