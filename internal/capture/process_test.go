package capture

import (
	"os"
	"testing"
)

// TestForkedBy: a process's parent is the one that forked it under trace, also if it has ended since and /proc names
// another: the fork's methods have that one's names.
func TestForkedBy(t *testing.T) {
	const ended = 1 << 22 // no process has this id
	if got := NewProcess(os.Getpid(), ended).Info.PPid; got != ended {
		t.Errorf("parent of a fork: %d, want %d", got, ended)
	}
	if got := NewProcess(os.Getpid(), 0).Info.PPid; got != os.Getppid() {
		t.Errorf("parent of a process that was not forked under trace: %d, want %d", got, os.Getppid())
	}
}
