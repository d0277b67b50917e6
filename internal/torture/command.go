package torture

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// outputLimit bounds what is kept of a program's output; more is cut off.
const outputLimit = 1 << 22

// outcome is what a finished command left.
type outcome struct {
	code     int // exit status; 128+n if signal n ended it
	stdout   string
	stderr   string
	timedOut bool
	took     time.Duration
}

// same reports whether two runs of a program can not be told apart by who started them.
func (o outcome) same(p outcome) bool {
	return o.code == p.code && o.stdout == p.stdout && o.timedOut == p.timedOut
}

// limited is a buffer that takes in only so much and is told apart by nothing from one that takes all.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := outputLimit - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// start starts a command in a process group of its own, in folder dir, with more environment variables.
func start(dir string, env []string, words ...string) (c *exec.Cmd, out, messages *limited, err error) {
	c = exec.Command(words[0], words[1:]...)
	c.Dir = dir
	c.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	out, messages = new(limited), new(limited)
	c.Stdout, c.Stderr = out, messages
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second // a child that outlives the program may hold its output open
	return c, out, messages, c.Start()
}

// run runs a command and ends it, with all that it has started, when the limit is over. between, if given, is called
// every so often while it runs.
func run(limit time.Duration, between func(), dir string, env []string, words ...string) (outcome, error) {
	c, out, messages, err := start(dir, env, words...)
	if err != nil {
		return outcome{}, err
	}
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	over, tick := time.After(limit), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	var o outcome
	for waiting := true; waiting; {
		select {
		case err := <-ended:
			var failed *exec.ExitError
			if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
				return outcome{}, err
			}
			waiting = false
		case <-over:
			o.timedOut = true
			syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		case <-tick.C:
			if between != nil {
				between()
			}
		}
	}
	syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it has left behind
	o.took = time.Since(begun)
	o.stdout, o.stderr = out.String(), messages.String()
	o.code = c.ProcessState.ExitCode()
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.code = 128 + int(ws.Signal())
	}
	return o, nil
}
