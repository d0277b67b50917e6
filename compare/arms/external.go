package arms

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"braid/compare/arm"
	"braid/compare/workload"
)

// What other tracers need besides the workloads' own source.
//
//go:embed source
var sources embed.FS

// need is a command that an arm runs, and the Debian package that has it.
type need struct{ command, debian string }

// missing is nil if all commands are in the PATH, and otherwise an *arm.Unavailable.
func missing(needs ...need) error {
	var commands, packages []string
	for _, n := range needs {
		if _, err := exec.LookPath(n.command); err != nil {
			commands, packages = append(commands, n.command), append(packages, n.debian)
		}
	}
	switch len(commands) {
	case 0:
		return nil
	case 1:
		return &arm.Unavailable{Why: commands[0] + " is not installed", Next: "apt-get install " + packages[0]}
	}
	return &arm.Unavailable{Why: strings.Join(commands, ", ") + " are not installed", Next: "apt-get install " + strings.Join(packages, " ")}
}

// output runs a tool to its end and returns what it prints. The error has the end of what it complains about.
func output(ctx context.Context, env []string, command ...string) (string, error) {
	var out strings.Builder
	var complaint tail
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(command[0]), err, complaint.text())
	}
	return out.String(), nil
}

// tail keeps the end of what a tool complains about.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-1000):]
	return len(b), nil
}

func (t *tail) text() string { return strings.Join(strings.Fields(string(t.b)), " ") }

// links says whether a compiler can link an empty program with these options, which it can't if a library of a tool is missing.
func links(ctx context.Context, env *arm.Env, command ...string) error {
	dir, err := os.MkdirTemp(env.Dir, "links-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		return err
	}
	command = append([]string{command[0], "-o", filepath.Join(dir, "empty"), source}, command[1:]...)
	_, err = output(ctx, nil, command...)
	return err
}

// build compiles the workloads' source in a folder and returns the program's path. Only the traced functions are compiled with
// the options that trace, so that nothing else is recorded. The link's options may be files of the folder.
func build(ctx context.Context, env *arm.Env, dir, compiler string, trace []string, link ...string) (string, error) {
	names, err := env.Workloads.Source(dir)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "traced")
	last := []string{compiler, "-o", program}
	for _, source := range names {
		object := source + ".o"
		command := []string{compiler, "-O2", "-fno-optimize-sibling-calls", "-c", "-o", object, source}
		if filepath.Base(source) == "external.c" {
			command = append(command, trace...)
		}
		if _, err := output(ctx, nil, command...); err != nil {
			return "", fmt.Errorf("compiling the workload: %w", err)
		}
		last = append(last, object)
	}
	if _, err := output(ctx, nil, append(append(last, link...), "-lpthread")...); err != nil {
		return "", fmt.Errorf("linking the workload: %w", err)
	}
	return program, nil
}

// place writes files of sources into a folder.
func place(dir string, names ...string) error {
	for _, n := range names {
		b, err := sources.ReadFile("source/" + n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// filer is a tracer that traces a program from its start to its end and leaves files.
type filer interface {
	// start makes ready to trace so many calls into the empty folder, and says how to start the program.
	start(ctx context.Context, dir string, calls int64) (workload.Start, error)
	// count returns the entries and returns of the functions that the files in the folder have, after the program's end.
	count(ctx context.Context, dir string, functions []string) (events uint64, err error)
	// close ends what the tracer still runs.
	close() error
}

// files is the session of a filer. Each measurement is a process of its own with files of its own, which are removed as soon as
// they are counted: so it is known of each how many events it has, and the disk is not filled.
type files struct {
	env   *arm.Env
	work  arm.Work
	dir   string
	tool  filer
	most  int64 // calls in one measurement, so that its files stay below 50 MB
	facts map[string]string
}

// open makes an arm's folder and its session; prepare builds the program in that folder.
func open(ctx context.Context, env *arm.Env, w arm.Work, name string, most int64, prepare func(dir string) (filer, map[string]string, error)) (arm.Session, error) {
	dir, err := os.MkdirTemp(env.Dir, name+"-")
	if err != nil {
		return nil, err
	}
	tool, facts, err := prepare(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &files{env: env, work: w, dir: dir, tool: tool, most: most, facts: facts}, nil
}

// warmed are the calls that a new process makes at least before it is measured.
const warmed = 2000

// Run measures after some calls that warm the process and the tracer up. These are recorded too, so they are among the events
// that are expected.
func (s *files) Run(ctx context.Context, r workload.Request) (m arm.Measured, err error) {
	dir, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.Calls = min(r.Calls, s.most)
	first := r
	first.Calls = max(warmed, r.Calls/8)
	start, err := s.tool.start(ctx, dir, first.Calls+r.Calls)
	if err != nil {
		return m, err
	}
	start.Workload, start.CPU, start.Aligns = s.work.Workload, s.work.CPU, s.work.Aligns
	p, err := s.env.Workloads.Start(ctx, start)
	if err != nil {
		return m, err
	}
	warm, err := p.Run(first)
	if err == nil {
		m.Reply, err = p.Run(r)
	}
	functions := p.Functions(r.Align)
	if err := errors.Join(err, p.Close()); err != nil {
		return m, err
	}
	m.Expected = 2 * uint64(warm.Calls+m.Calls)
	if m.Recorded, err = s.tool.count(ctx, dir, functions); err != nil {
		return m, fmt.Errorf("counting what was recorded: %w", err)
	}
	return m, nil
}

func (s *files) Facts() map[string]string { return s.facts }

func (s *files) Close() error { return errors.Join(s.tool.close(), os.RemoveAll(s.dir)) }

// service is a tool that runs beside the workload.
type service struct {
	cmd       *exec.Cmd
	complaint tail
	ended     chan struct{} // closed after the tool's end
	err       error         // set before
}

// serve starts a tool; what it prints goes to the command's own Stdout.
func serve(c *exec.Cmd) (*service, error) {
	s := &service{cmd: c, ended: make(chan struct{})}
	c.Stderr = &s.complaint
	c.WaitDelay = patience
	// Ctrl-C is for the study, which ends its tools in its own order.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = c.Wait()
		close(s.ended)
	}()
	return s, nil
}

// patience is how long a tool may take for what it does at once.
const patience = 20 * time.Second

// end asks the tool to end, and kills it if it doesn't.
func (s *service) end(sig syscall.Signal) error {
	s.cmd.Process.Signal(sig)
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.cmd.Process.Kill()
		<-s.ended
	}
	if s.err != nil {
		return s.failure()
	}
	return nil
}

// failure says how the tool ended. Only after its end.
func (s *service) failure() error {
	return fmt.Errorf("%s ended: %v: %s", filepath.Base(s.cmd.Path), s.err, s.complaint.text())
}
