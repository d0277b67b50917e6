package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// LaunchArg is the first argument that makes this executable the child that waits and then becomes the target.
const LaunchArg = "__launch"

// launched is a program that waits at the gate until the kernel side knows it.
type launched struct {
	cmd    *exec.Cmd
	gate   *os.File // a byte lets it go
	status *os.File // a byte once it waits; then why it could not execute; closed by a successful exec
}

// launch starts a copy of this executable that will become the target: its process id is known, and nothing of the
// target has run.
func launch(o Options, env []string) (*launched, error) {
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		if errors.Is(err, exec.ErrDot) {
			err = nil
		} else {
			return nil, fmt.Errorf("starting the program: %w", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding my own executable: %w", err)
	}
	gateR, gateW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		gateR.Close()
		gateW.Close()
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	defer gateR.Close()
	defer statusW.Close()
	c := exec.Command(self)
	c.Args = append([]string{"braid", LaunchArg, path}, o.Command...)
	c.Env = env
	c.ExtraFiles = []*os.File{gateR, statusW}
	c.Stdin, c.Stdout, c.Stderr = o.Stdin, o.Stdout, o.Stderr
	if err := c.Start(); err != nil {
		gateW.Close()
		statusR.Close()
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	t := &launched{cmd: c, gate: gateW, status: statusR}
	// Start returns while the kernel still executes the copy. The kernel side must not take that for the target's exec.
	statusW.Close()
	if _, err := io.ReadFull(statusR, make([]byte, 1)); err != nil {
		t.drop()
		return nil, fmt.Errorf("starting the program: its launcher ended: %w", err)
	}
	return t, nil
}

// release lets the target execute and returns once it has, or with why it could not.
func (t *launched) release() error {
	defer t.status.Close()
	_, err := t.gate.Write([]byte{1})
	t.gate.Close()
	if err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	msg, err := io.ReadAll(io.LimitReader(t.status, 4096))
	if err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	if len(msg) > 0 {
		return errors.New(string(msg))
	}
	return nil
}

// drop ends a target that was never let go.
func (t *launched) drop() {
	t.gate.Close()
	t.status.Close()
	t.cmd.Wait()
}

// Launched is what the executable does when its first argument is LaunchArg: wait for the gate, then become
// the program. It returns the exit status for when it could not.
func Launched(args []string) int {
	const gate, status = 3, 4
	syscall.CloseOnExec(gate)
	syscall.CloseOnExec(status)
	if len(args) < 2 {
		return 2
	}
	var b [1]byte
	if n, err := syscall.Write(status, b[:]); n != 1 || err != nil {
		return 125
	}
	if n, err := syscall.Read(gate, b[:]); n != 1 || err != nil {
		return 125 // the recorder has gone
	}
	err := syscall.Exec(args[0], args[1:], os.Environ())
	syscall.Write(status, fmt.Appendf(nil, "executing %s: %v", args[0], err))
	if errors.Is(err, syscall.ENOENT) {
		return 127
	}
	return 126
}

// exitCode translates how a process ended as a shell does.
func exitCode(st *os.ProcessState) (code, signal int) {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return st.ExitCode(), 0
}
