package bpf

import (
	"os/exec"
	"slices"
	"testing"

	"braid/internal/kevent"
)

// tgidOf returns the process that an event of the unit process is of.
func tgidOf(e event) (tgid uint32, ok bool) {
	switch e.Kind {
	case kevent.KindFork:
		return kevent.DecodeFork(e.body).Tgid, true
	case kevent.KindExec:
		return kevent.DecodeExec(e.body).Tgid, true
	case kevent.KindExit:
		return kevent.DecodeExit(e.body).Tgid, true
	case kevent.KindRename:
		return kevent.DecodeRename(e.body).Tgid, true
	}
	return 0, false
}

// TestAdopt checks that a process that takes a name, or executes a file of that name, is recorded from that very event
// on, and that nothing is recorded of others.
func TestAdopt(t *testing.T) {
	path, name := ownName(t, "adopt")
	for kernel, btf := range map[string]string{"tp_btf": "", "raw_tp": "/sys/kernel/btf/vmlinux"} {
		t.Run(kernel, func(t *testing.T) {
			r := load(t, Options{Units: []string{UnitSched}, BTFPath: btf, Watch: &WatchOptions{Match: Match{Names: []string{name}}, Adopt: true}})
			renamed := startTarget(t, "rename", "3", name)
			renamed.run()
			renamed.results()
			other := startTarget(t, "rename", "3", "somebody")
			other.run()
			other.results()
			executed := run(t, exec.Command(path, "threads", "2"))
			checkEmpty(t, r, "announced")

			got := map[uint32][]kevent.Kind{}
			switches := 0
			for _, e := range stopAndRead(t, r) {
				if e.Kind == kevent.KindSwitch {
					switches++
				}
				if tgid, ok := tgidOf(e); ok {
					got[tgid] = append(got[tgid], e.Kind)
				}
			}
			if switches == 0 {
				t.Error("no switches of processes that were adopted")
			}
			children := 0
			for pid, kinds := range got {
				switch {
				case pid == uint32(executed):
					if kinds[0] != kevent.KindExec || kinds[len(kinds)-1] != kevent.KindExit {
						t.Errorf("the executed one: %v, want exec first and exit last", kinds)
					}
				case slices.Equal(kinds, []kevent.Kind{kevent.KindRename, kevent.KindExit}):
					children++
				default:
					t.Errorf("process %d: %v", pid, kinds)
				}
			}
			if children != 3 || got[uint32(executed)] == nil {
				t.Errorf("%d renamed children, want 3; executed: %v", children, got[uint32(executed)])
			}
			if targets, err := r.Targets(); err != nil || len(targets) != 4 {
				t.Errorf("targets %v (%v), want the three children and the executed one", targets, err)
			}
		})
	}
}
