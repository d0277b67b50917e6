package stacks

import "braid/internal/timeline"

// threadNames finds the names of samples' threads and processes.
type threadNames struct {
	processes map[uint32]string
	threads   map[[2]uint32]string
}

func namesOf(tr *timeline.Trace) *threadNames {
	n := &threadNames{processes: map[uint32]string{}, threads: map[[2]uint32]string{}}
	add := func(pid, tid uint32, name string) {
		if k := [2]uint32{pid, tid}; name != "" && n.threads[k] == "" {
			n.threads[k] = name
		}
	}
	for _, a := range tr.Kernel.Threads() {
		add(a.Tgid, a.Tid, a.Name)
	}
	for _, th := range tr.Threads {
		add(th.Pid, th.Tid, th.Name)
	}
	for _, th := range tr.Processes.Threads {
		if len(th.Names) > 0 {
			add(uint32(th.Pid), uint32(th.Tid), th.Names[len(th.Names)-1])
		}
	}
	for _, p := range tr.Processes.Processes {
		n.processes[uint32(p.Pid)] = p.Name
	}
	return n
}

// Thread is a thread's name, or its process's, or "thread".
func (j *Join) Thread(pid, tid uint32) string {
	n := j.names
	for _, name := range []string{n.threads[[2]uint32{pid, tid}], n.processes[pid], n.threads[[2]uint32{pid, pid}]} {
		if name != "" {
			return name
		}
	}
	return "thread"
}

// Process is a process's name: its own, or its main thread's.
func (j *Join) Process(pid uint32) string {
	if name := j.names.processes[pid]; name != "" {
		return name
	}
	return j.Thread(pid, pid)
}
