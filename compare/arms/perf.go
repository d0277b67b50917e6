package arms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// perf: the kernel's own probes at entries and returns, which perf stat counts and perf record writes to a file.
func init() {
	for _, p := range []perf{
		{mode: "stat", title: "perf stat", order: 50, most: 10_000_000, count: countStat},
		{mode: "record", title: "perf record", order: 51, most: 200_000, count: countRecord},
	} {
		arm.Register(&arm.Arm{
			Name: "perf-" + p.mode, Title: p.title, Group: result.GroupExternal, Order: p.order, Points: 2,
			Workloads: nested,
			Check: func(ctx context.Context, env *arm.Env) error {
				if err := missing(need{"perf", "linux-perf"}); err != nil {
					return err
				}
				return rooted(env)
			},
			Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
				return openPerf(ctx, p, env, w)
			},
		})
	}
}

// perf is a session: its probes are there all the time, and a perf of its own watches each measurement.
type perf struct {
	mode, title string
	order       int
	most        int64
	count       func(ctx context.Context, file string) (uint64, error)

	p     *workload.Process
	dir   string
	group string // of the probes' names
	facts map[string]string
}

func openPerf(ctx context.Context, s perf, env *arm.Env, w arm.Work) (_ arm.Session, err error) {
	if s.dir, err = os.MkdirTemp(env.Dir, "perf-"); err != nil {
		return nil, err
	}
	if s.p, s.facts, err = probed(ctx, env, w, s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.facts["counted by"] = map[string]string{"stat": "perf stat", "record": "perf report --stats"}[s.mode]
	sweep(ctx)
	s.group = fmt.Sprintf("braid_%s_%d", s.mode, s.p.PID())
	command := []string{"perf", "--buildid-dir", s.dir, "probe", "-q", "-x", s.p.Path()}
	for _, align := range w.Aligns {
		for _, f := range s.p.Functions(align) {
			// perf wants names that no other group has.
			name := fmt.Sprintf("%d_%s", s.p.PID(), f)
			command = append(command, "--add="+s.group+":entry_"+name+"="+f, "--add="+s.group+":return_"+name+"="+f+"%return")
		}
	}
	if _, err := output(ctx, nil, command...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &s, nil
}

var left = regexp.MustCompile(`(braid_(?:stat|record)_(\d+)):`)

// sweep removes probes of sessions that were killed. They do nothing, but they stay until someone removes them.
func sweep(ctx context.Context) {
	list, err := output(ctx, nil, "perf", "probe", "-l")
	if err != nil {
		return // without probes there is nothing to remove
	}
	for _, found := range left.FindAllStringSubmatch(list, -1) {
		if pid, err := strconv.Atoi(found[2]); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			output(ctx, nil, "perf", "probe", "-q", "--del="+found[1]+":*")
		}
	}
}

// Run starts perf with its events off, and turns them on for the measured calls alone.
func (s *perf) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	dir, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "out")
	// perf keeps copies of programs, in the user's home unless it is told otherwise.
	args := []string{"perf", "--buildid-dir", dir, s.mode, "--event=" + s.group + ":*", "--pid=" + strconv.Itoa(s.p.PID()), "--output=" + file, "--delay=-1"}
	if s.mode == "stat" {
		args = append(args, "--field-separator=,")
	} else {
		// Room for all that a measurement records, so that nothing is lost if perf is slow.
		args = append(args, "--quiet", "--no-buildid", "--no-buildid-cache", "--mmap-pages=32M")
	}
	control, err := steer(dir)
	if err != nil {
		return m, err
	}
	defer control.close()
	tool, err := serve(exec.Command(args[0], append(args[1:], control.option)...))
	if err != nil {
		return m, err
	}
	r.Calls = min(r.Calls, s.most)
	if err = control.say(tool, "enable"); err == nil {
		if m.Reply, err = s.p.Run(r); err == nil {
			err = control.say(tool, "disable")
		}
	}
	if ended := tool.end(syscall.SIGINT); err != nil {
		return m, errors.Join(err, ended)
	} else if !interrupted(tool.err) {
		return m, ended
	}
	m.Expected = 2 * uint64(m.Calls)
	m.Recorded, err = s.count(ctx, file)
	return m, err
}

// interrupted says that a tool ended as it should after an interrupt: perf sends it to itself again when it is done.
func interrupted(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err == nil
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}

// countStat adds up perf stat's lines: count, unit, event and more.
func countStat(_ context.Context, file string) (events uint64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		count, _, _ := strings.Cut(line, ",")
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("perf stat says %q", line)
		}
		events += n
	}
	return events, nil
}

var samples = regexp.MustCompile(`SAMPLE events: +(\d+)`)

func countRecord(ctx context.Context, file string) (uint64, error) {
	out, err := output(ctx, nil, "perf", "--buildid-dir", filepath.Dir(file), "report", "--stats", "--input="+file)
	if err != nil {
		return 0, err
	}
	// The first line is of all events together.
	found := samples.FindStringSubmatch(out)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseUint(found[1], 10, 64)
}

func (s *perf) Facts() map[string]string { return s.facts }

// Close removes the probes also when the study is broken off.
func (s *perf) Close() error {
	err := s.p.Close()
	_, gone := output(context.Background(), nil, "perf", "probe", "-q", "--del="+s.group+":*")
	return errors.Join(err, gone, os.RemoveAll(s.dir))
}

// steering is how perf is told to turn its events on and off: two pipes with names.
type steering struct {
	orders, answers *os.File
	option          string
}

func steer(dir string) (*steering, error) {
	names := [2]string{filepath.Join(dir, "orders"), filepath.Join(dir, "answers")}
	var files [2]*os.File
	for i, name := range names {
		err := syscall.Mkfifo(name, 0o600)
		if err == nil {
			// For both directions, so that opening doesn't wait for perf.
			files[i], err = os.OpenFile(name, os.O_RDWR, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	return &steering{files[0], files[1], "--control=fifo:" + names[0] + "," + names[1]}, nil
}

// say gives an order and waits until it is done.
func (c *steering) say(tool *service, order string) error {
	if _, err := c.orders.WriteString(order + "\n"); err != nil {
		return err
	}
	done := make(chan error, 1)
	c.answers.SetReadDeadline(time.Now().Add(patience))
	go func() {
		var answer string
		for b := make([]byte, 16); !strings.Contains(answer, "ack\n"); {
			n, err := c.answers.Read(b)
			if err != nil {
				done <- fmt.Errorf("perf doesn't answer: %w", err)
				return
			}
			answer += string(b[:n])
		}
		done <- nil
	}()
	select {
	case err := <-done:
		return err
	case <-tool.ended:
		c.answers.SetReadDeadline(time.Now())
		<-done
		return tool.failure()
	}
}

func (c *steering) close() {
	c.orders.Close()
	c.answers.Close()
}
