package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"braid/internal/counter"
	"braid/internal/trigger"

	"golang.org/x/sys/unix"
)

// Root is where /proc and /sys are; "" is "/". Tests use a folder.
type Root string

func (r Root) path(p string) string { return filepath.Join("/", string(r), p) }

// ErrNoPressure says that the kernel has no PSI, or that it is switched off (psi=1 on the kernel's command line).
var ErrNoPressure = errors.New("no pressure information")

// Pressure watches one condition of kind Pressure. It asks the kernel to say when the limit is passed (a PSI trigger: any
// window with CAP_SYS_RESOURCE, else multiples of 2 s); where that is not possible, it reads how the total grows.
func Pressure(ctx context.Context, root Root, c *trigger.Condition, report func(trigger.Observation)) error {
	f, err := os.OpenFile(root.path("proc/pressure/"+c.Resource), os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		f, err = os.Open(root.path("proc/pressure/" + c.Resource))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoPressure, err)
	}
	defer f.Close()
	total, err := stalled(f, c.Full)
	if err != nil {
		return err
	}
	s := &stall{c: c, f: f, total: total, report: report}
	armed := fmt.Sprintf("%s %d %d\x00", word(c.Full), c.Stall.Microseconds(), c.Window.Microseconds())
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != 0 {
		return s.read(ctx) // not a file of procfs
	}
	if _, err := f.WriteString(armed); err != nil {
		return s.read(ctx)
	}
	return s.wait(ctx)
}

func word(full bool) string {
	if full {
		return "full"
	}
	return "some"
}

// stall follows the total of one line.
type stall struct {
	c      *trigger.Condition
	f      *os.File
	total  time.Duration
	report func(trigger.Observation)
}

// wait waits for the kernel, and looks at the context ten times a second.
func (s *stall) wait(ctx context.Context) error {
	fds := []unix.PollFd{{Fd: int32(s.f.Fd()), Events: unix.POLLPRI}}
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, 100)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for pressure: %w", err)
		case n > 0 && fds[0].Revents&unix.POLLERR != 0:
			return fmt.Errorf("%w: the kernel took the file away", ErrNoPressure)
		case n > 0:
			// The kernel does not say how much it was, only that it was enough.
			if err := s.tell(float64(s.c.Stall)); err != nil {
				return err
			}
		}
	}
	return nil
}

// read compares totals that are a window apart.
func (s *stall) read(ctx context.Context) error {
	tick := time.NewTicker(s.c.Window)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := stalled(s.f, s.c.Full)
		if err != nil {
			return err
		}
		grown := now - s.total
		if s.total = now; grown >= s.c.Stall {
			if err := s.tell(float64(grown)); err != nil {
				return err
			}
		}
	}
}

func (s *stall) tell(value float64) error {
	now, err := counter.Boottime()
	if err == nil {
		s.report(trigger.Observation{Time: now, Kind: trigger.Pressure, Condition: s.c.ID, Subject: s.c.Resource, Value: value})
	}
	return err
}

// stalled reads the total of a line such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=7".
func stalled(f *os.File, full bool) (time.Duration, error) {
	buf := make([]byte, 512)
	n, err := f.ReadAt(buf, 0)
	if n == 0 {
		return 0, fmt.Errorf("%w: reading %s: %w", ErrNoPressure, f.Name(), err)
	}
	for line := range strings.Lines(string(buf[:n])) {
		at := strings.LastIndex(line, " total=")
		if at < 0 || !strings.HasPrefix(line, word(full)+" ") {
			continue
		}
		us, err := strconv.ParseUint(strings.TrimSpace(line[at+len(" total="):]), 10, 53)
		if err != nil {
			break
		}
		return time.Duration(us) * time.Microsecond, nil
	}
	return 0, fmt.Errorf("%w: %s has no line %q with a total", ErrNoPressure, f.Name(), word(full))
}
