package workload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a process may take to end after its input has ended. A tracer that wraps it may have much to write then.
const patience = 30 * time.Second

// Process is a workload that runs and waits for requests. It is used by one goroutine.
type Process struct {
	start  Start
	path   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
	pid    int
	calls  int64 // of one run, for Startup
	closed bool
	died   error
	names  []string
}

// Start starts a workload and waits until it is pinned and ready. The context's end kills it.
func (s *Set) Start(ctx context.Context, st Start) (*Process, error) {
	if st.Variant == "" {
		st.Variant = Plain
	}
	if !Has(st.Workload, st.Variant) {
		return nil, fmt.Errorf("there is no workload %q in the variant %q", st.Workload, st.Variant)
	}
	p := &Process{start: st, path: st.Path}
	if p.path == "" {
		p.path = s.Path(st.Workload, st.Variant)
	}
	command, err := s.command(p)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	if st.Workload != Command {
		p.cmd.Dir = s.dir
	}
	p.cmd.Env = os.Environ()
	if !st.whole() {
		p.cmd.Env = append(p.cmd.Env, st.Env...)
	}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = patience
	// A wrapper may have started it: all of them end together.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("starting the workload %s: %w", st.Workload, err)
	}
	f, err := p.answer("ready", 1)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.pid = int(f[0])
	return p, nil
}

// whole says that a run is a whole process.
func (st *Start) whole() bool { return st.Workload == Startup || st.Workload == Command }

func (s *Set) command(p *Process) ([]string, error) {
	st := &p.start
	args := []string{st.Workload, string(st.Variant), strconv.Itoa(st.CPU)}
	switch {
	case !st.whole():
		for _, a := range p.aligns() {
			p.names = append(p.names, Function(st.Workload, st.Variant, a))
		}
		return append(append(slices.Clone(st.Wrap), p.path), args...), nil
	case st.Workload == Startup:
		calls, names, err := s.startup(st.Variant)
		if err != nil {
			return nil, err
		}
		p.calls, p.names = calls, names
	case len(st.Command) == 0:
		return nil, errors.New("no command to measure")
	default:
		p.path = st.Command[0]
	}
	args = append(append(slices.Clone(s.emulator), s.driver()), args...)
	args = append(args, st.Env...)
	args = append(args, "--")
	args = append(args, st.Wrap...)
	if st.Workload == Startup {
		// The same arguments and as little environment as when its calls were counted: it copies them, and makes more calls for a name of
		// 24 bytes than for one of 18.
		path, err := filepath.Rel(s.dir, p.path)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
		return append(args, path, "-E", "startup.lua"), nil
	}
	return append(args, st.Command...), nil
}

func (p *Process) aligns() []int {
	if p.start.Aligns != nil {
		return p.start.Aligns
	}
	return Aligns()
}

// Function returns the symbol of the function that a workload traces, in a variant at an alignment. Call has Listing's.
func Function(workload string, v Variant, align int) string {
	if workload == Call {
		workload = Listing
	}
	return fmt.Sprintf("%s_%s_%d", workload, v, align)
}

// PID returns the id of the process that has the traced functions; of the one that starts them, for Startup and Command.
func (p *Process) PID() int { return p.pid }

// Path returns the executable that has the traced functions.
func (p *Process) Path() string { return p.path }

// Functions returns the symbols of the traced functions that a request at an alignment calls, for probes. For Startup
// these are all functions of Lua, without those of the C library; for Command there are none.
func (p *Process) Functions(align int) []string {
	switch p.start.Workload {
	case Startup:
		return p.names
	case Command:
		return nil
	}
	return []string{Function(p.start.Workload, p.start.Variant, align)}
}

// Run makes one measurement. The error says what the workload said, or how it ended.
func (p *Process) Run(r Request) (Reply, error) {
	if p.died != nil {
		return Reply{}, p.died
	}
	if p.start.Workload == Startup { // each run has this many
		r.Calls = max(1, (r.Calls+p.calls-1)/p.calls)
	}
	if _, err := fmt.Fprintf(p.in, "run %d %d %d %d\n", r.Parameter, r.Align, r.Calls, r.Skip); err != nil {
		return Reply{}, p.dead(err)
	}
	f, err := p.answer("done", 6)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Calls: f[0], WallNS: f[1], CPUNS: f[2], CacheMisses: uint64(f[3]), Bytes: uint64(f[4]), Recorded: uint64(f[5])}
	if p.start.Workload == Startup {
		reply.Calls *= p.calls
	}
	return reply, nil
}

// answer reads the line that answers, and its numbers. Lines of a wrapper on the same output are passed over.
func (p *Process) answer(word string, n int) ([]int64, error) {
	for {
		l, err := p.out.ReadString('\n')
		if err != nil {
			return nil, p.dead(err)
		}
		l, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "workload: ")
		if !ok {
			continue
		}
		if text, ok := strings.CutPrefix(l, "error "); ok {
			return nil, fmt.Errorf("the workload %s: %s", p.start.Workload, text)
		}
		f := strings.Fields(l)
		if len(f) != n+1 || f[0] != word {
			return nil, fmt.Errorf("the workload %s answers %q", p.start.Workload, l)
		}
		out := make([]int64, n)
		for i := range out {
			if out[i], err = strconv.ParseInt(f[i+1], 10, 64); err != nil {
				return nil, fmt.Errorf("the workload %s answers %q", p.start.Workload, l)
			}
		}
		return out, nil
	}
}

// dead waits for a process that has closed its pipes, and says how it ended.
func (p *Process) dead(cause error) error {
	p.in.Close()
	err := p.wait()
	if err == nil {
		err = cause
	}
	p.died = fmt.Errorf("the workload %s ended: %w", p.start.Workload, err)
	if text := p.stderr.text(); text != "" {
		p.died = fmt.Errorf("%w: %s", p.died, text)
	}
	p.closed = true
	return p.died
}

// wait waits for the process's end; after some patience it kills it and what it has started.
func (p *Process) wait() error {
	t := time.AfterFunc(patience, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	defer t.Stop()
	io.Copy(io.Discard, p.out) // what a wrapper still says must not fill the pipe
	return p.cmd.Wait()
}

// Close ends the process's input and waits for its end; after some patience it kills it. The error says that it ended
// otherwise than it should, now or before.
func (p *Process) Close() error {
	if p.closed {
		err := p.died
		p.died = nil
		return err
	}
	p.closed = true
	p.in.Close()
	if err := p.wait(); err != nil {
		return fmt.Errorf("the workload %s ended: %w: %s", p.start.Workload, err, p.stderr.text())
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b) - 2048; n > 0 {
		t.b = t.b[n:]
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
