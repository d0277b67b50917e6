package analysis

import (
	"slices"

	"braid/internal/timeline"
)

// wake sums the sleeps that one thread ended.
type wake struct {
	ns      int64 // of all
	longest int64
	at      int64 // when the longest ended
}

func (w wake) and(o wake) wake {
	w.ns += o.ns
	if o.longest > w.longest {
		w.longest, w.at = o.longest, o.at
	}
	return w
}

// wokenBy names the threads that ended sleeps, those with the most first, with what they were doing then.
func (a *analyzer) wokenBy(c *cpus, wakers map[uint32]wake) ([]Who, error) {
	sum := make(map[uint32]int64, len(wakers))
	for tid, w := range wakers {
		sum[tid] = w.ns
	}
	all := c.who(sum)
	for i := range all {
		at := wakers[all[i].Tid].at
		other := a.trace.Kernel.Thread(all[i].Tid)
		all[i].foreign = other == nil || other.Tgid != a.result.Moment.Pid
		thread := slices.IndexFunc(a.trace.Threads, func(th *timeline.Thread) bool {
			return th.Tid == all[i].Tid && th.Begin <= at && at <= th.End
		})
		if thread < 0 {
			continue
		}
		v := doing{at: at}
		if err := a.walk(thread, &v); err != nil {
			return nil, err
		}
		if v.known {
			all[i].Method = a.methods.names[v.method].Name
		}
	}
	return all, nil
}

// doing is a pass over one thread, for the method that it was in at a time.
type doing struct {
	at     int64
	method uint32
	known  bool
	passed bool
}

func (d *doing) enter(w *walker, f *frame) { d.look(w, w.stack[:len(w.stack)-1]) }

func (d *doing) leave(w *walker, f *frame, _ timeline.SliceFlags) { d.look(w, w.stack) }

// look gets the calls that were open until now.
func (d *doing) look(w *walker, stack []frame) {
	if d.passed || w.now < d.at {
		return
	}
	d.passed = true
	if top := stack[len(stack)-1]; len(stack) > 1 {
		d.method, d.known = top.method, true
	}
}
