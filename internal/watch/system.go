package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"braid/internal/capture"
	"braid/internal/counter"
	"braid/internal/tracefile"
)

// What a snapshot takes at most.
const (
	maxSnapshotFile    = 64 << 10 // bytes of each file
	maxSnapshotThreads = 512
)

// systemFiles say how CPUs, memory, I/O and pressure are.
var systemFiles = []string{"/proc/stat", "/proc/loadavg", "/proc/meminfo", "/proc/vmstat", "/proc/diskstats",
	"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"}

// processFiles are those of one process. None holds what the program works on.
var processFiles = []string{"status", "statm", "io", "cgroup", "oom_score_adj", "limits"}

// snapshot notes how the system and a process were at this moment. The process may be gone, or may not be looked at: what
// can't be read is named in Missing.
func snapshot(pid int) *tracefile.Snapshot {
	s := &tracefile.Snapshot{Texts: map[string]string{}}
	s.TimeNs, _ = counter.Boottime()
	refused := map[string]bool{}
	read := func(path string) string {
		b, err := readSome(path)
		switch {
		case err == nil:
			return string(b)
		case errors.Is(err, fs.ErrNotExist): // a kernel without it, or a process that is gone
		case !refused[err.Error()]:
			refused[err.Error()] = true
			s.Missing = append(s.Missing, err.Error())
		}
		return ""
	}
	keep := func(path string) {
		if text := read(path); text != "" {
			s.Texts[path] = text
		}
	}
	for _, path := range systemFiles {
		keep(path)
	}
	for _, name := range processFiles {
		keep(fmt.Sprintf("/proc/%d/%s", pid, name))
	}
	threads := capture.ThreadsOf(pid)
	if len(threads) > maxSnapshotThreads {
		s.Missing = append(s.Missing, fmt.Sprintf("%d of %d threads", len(threads)-maxSnapshotThreads, len(threads)))
		threads = threads[:maxSnapshotThreads]
	}
	stacks := true
	for _, t := range threads {
		dir := fmt.Sprintf("/proc/%d/task/%d/", pid, t.Tid)
		st := tracefile.SnapshotThread{Pid: pid, Tid: t.Tid, State: t.State}
		if len(t.Names) > 0 {
			st.Name = t.Names[0]
		}
		if w := read(dir + "wchan"); w != "0" {
			st.Wait = w
		}
		if stacks { // needs CAP_SYS_ADMIN (fs/proc/base.c, proc_pid_stack); asked once
			b, err := readSome(dir + "stack")
			if errors.Is(err, fs.ErrPermission) {
				stacks = false
				s.Missing = append(s.Missing, "kernel stacks: "+err.Error())
			}
			st.Stack = kernelStack(b)
		}
		s.Threads = append(s.Threads, st)
	}
	return s
}

// kernelStack takes the functions out of lines such as "[<0>] futex_wait_queue+0x6a/0x90".
func kernelStack(text []byte) (functions []string) {
	for line := range bytes.Lines(text) {
		_, f, ok := strings.Cut(strings.TrimSpace(string(line)), "] ")
		if !ok {
			continue
		}
		f, _, _ = strings.Cut(f, "+0x")
		functions = append(functions, f)
	}
	return functions
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSnapshotFile))
}
