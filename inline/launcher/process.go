package launcher

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exitStatus is how a child ended.
type exitStatus struct {
	code   int            // as a shell would say it: 128+n for signal n
	signal syscall.Signal // 0 unless it was killed
}

func (s exitStatus) ok() bool { return s.code == 0 }

// report is the exit code to end with. It does not return if the child died by a signal and this process can die of
// the same one.
func (s exitStatus) report() int {
	if s.signal != 0 {
		dieBy(s.signal)
	}
	return s.code
}

// runCommand runs a child to its end. The error is that it could not be run.
func runCommand(cmd *exec.Cmd) (exitStatus, error) {
	if err := cmd.Start(); err != nil {
		return exitStatus{code: 127}, err
	}
	return wait(cmd)
}

func wait(cmd *exec.Cmd) (exitStatus, error) {
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		// Broken pipes too: a child that does not read all of its input.
		if cmd.ProcessState == nil || !errors.Is(err, syscall.EPIPE) {
			return exitStatus{code: 1}, err
		}
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return exitStatus{code: 128 + int(ws.Signal()), signal: ws.Signal()}, nil
	}
	return exitStatus{code: ws.ExitStatus()}, nil
}

// endings are the signals that end a compiler, and after which temporary files must be gone.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE}

// catch holds back the signals that would end this process, except those that it ignores, as its child will. The
// channel must be given to signal.Stop.
func catch() chan os.Signal {
	caught := make(chan os.Signal, len(endings))
	for _, s := range endings {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	return caught
}

// runForwarding runs a child and sends it the signals that come in meanwhile. A signal from a terminal reaches the
// child by itself, too; twice does no harm.
func runForwarding(cmd *exec.Cmd, caught <-chan os.Signal) (exitStatus, error) {
	if err := cmd.Start(); err != nil {
		return exitStatus{code: 127}, err
	}
	done := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case s := <-caught:
				_ = cmd.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	status, err := wait(cmd)
	close(done)
	<-forwarded
	return status, err
}

// dieBy ends this process by a signal, so that its parent sees what the compiler's parent would have. It returns if
// the signal does not kill.
func dieBy(s syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // the child has dumped its own
	signal.Reset(s)
	// The Go runtime keeps handlers for some signals in spite of Reset: set the default action behind its back.
	// struct sigaction of the kernel: handler, flags, restorer, mask (arch/*/include/uapi/asm/signal.h, Linux 6.12).
	var action [4]uintptr
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	// To this very thread, unblocked, so that it arrives before the call returns.
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[(uint(s)-1)/64] |= 1 << ((uint(s) - 1) % 64)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
}
