package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"braid/internal/wording"
)

// What a thread is for, as far as its number and name tell. On Android the main thread draws what the user sees together
// with RenderThread, and binder threads answer other processes.
const (
	roleMain   = "main"
	roleRender = "render"
	roleBinder = "binder"
)

// roleOf returns a thread's role, or "".
func roleOf(pid, tid uint32, name string) string {
	_, pooled, binder := strings.Cut(name, "inder:") // Binder:PID_N, HwBinder:PID_N
	switch {
	case pid == tid:
		return roleMain
	case name == "RenderThread":
		return roleRender
	case binder && strings.HasPrefix(pooled, fmt.Sprintf("%d_", pid)):
		return roleBinder
	}
	return ""
}

// label is a thread's name in width columns. A main thread, which has its program's name, is marked where others of its
// process are listed.
func (r *Report) label(t *Thread, width int) string {
	name := wording.Printable(t.Name)
	others := func(u Thread) bool { return u.Pid == t.Pid && u.Tid != t.Tid }
	if t.Role != roleMain || name == roleMain || !slices.ContainsFunc(r.Threads, others) {
		return wording.Fit(name, width)
	}
	const mark = " main"
	return wording.Fit(name, width-len(mark)) + mark
}

// pool is the binder threads of one process.
type pool struct {
	pid                         uint32
	threads                     int
	running, runnable, sleeping int64 // ns
}

// textPools says what the binder threads of each process did together, where there are several.
func (r *Report) textPools(w io.Writer) {
	pools := map[uint32]*pool{}
	for i := range r.Threads {
		t := &r.Threads[i]
		if t.Role != roleBinder {
			continue
		}
		p := pools[t.Pid]
		if p == nil {
			p = &pool{pid: t.Pid}
			pools[t.Pid] = p
		}
		p.threads++
		p.running, p.runnable, p.sleeping = p.running+t.RunningNs, p.runnable+t.RunnableNs, p.sleeping+t.SleepingNs
	}
	var all []*pool
	for _, p := range pools {
		if p.threads > 1 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pool) int { return cmp.Or(cmp.Compare(b.running, a.running), cmp.Compare(a.pid, b.pid)) })
	for _, p := range all {
		fmt.Fprintf(w, "%d binder threads of process %d: running %s, runnable %s, sleeping %s\n", p.threads, p.pid,
			wording.Duration(p.running), wording.Duration(p.runnable), wording.Duration(p.sleeping))
	}
}
