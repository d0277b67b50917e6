package workload

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// launch starts the process, with other files in place of some if it was asked for: in a mount namespace, which the kernel takes away with
// the last process in it. mount_namespaces(7).
func (p *Process) launch() error {
	if len(p.start.Instead) == 0 {
		return p.cmd.Start()
	}
	done := make(chan error)
	go func() {
		// Never unlocked: the thread must not run anything else in its namespace, and ends with this goroutine.
		runtime.LockOSThread()
		done <- p.apart()
	}()
	return <-done
}

// apart puts the calling thread into a namespace of its own, and starts the process from there.
func (p *Process) apart() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to ourselves: %w", err)
	}
	for place, file := range p.start.Instead {
		if err := unix.Mount(file, place, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("putting %s in the place of %s: %w", file, place, err)
		}
	}
	return p.cmd.Start()
}
