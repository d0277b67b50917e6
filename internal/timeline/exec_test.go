package timeline

import (
	"testing"

	"braid/internal/kevent"
)

// TestExecBeginsAThread: a launched program's first event is its exec; it runs from there on, and its time before that
// is not the program's.
func TestExecBeginsAThread(t *testing.T) {
	exec := kevent.AppendExec(nil, kevent.Header{Time: 5000, Tid: 7, CPU: 1}, kevent.Exec{Tgid: 7, OldTid: 7})
	sleep := kevent.AppendSwitch(nil, kevent.Header{Time: 8000, Tid: 7, CPU: 1, Flags: kevent.FlagPrevTarget},
		kevent.Switch{PrevTgid: 7, PrevState: 1, NextTid: 3})
	for name, c := range map[string]struct {
		events []byte
		want   [NumStates]int64
	}{
		"with scheduling":    {append(append([]byte{}, exec...), sleep...), [NumStates]int64{Running: 3000, Sleeping: 2000}},
		"without scheduling": {exec, [NumStates]int64{Unknown: 5000}},
	} {
		k := NewKernel(KernelOptions{Begin: 1000, End: 10000}, nil)
		if err := k.Push(c.events); err != nil {
			t.Fatal(err)
		}
		k.Finish()
		if got := k.Thread(7).States; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
