package torture

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed testdata/end.c
var endSource []byte

// Verdict is how a case ended.
type Verdict string

// The verdicts, from what fails first.
const (
	Unsupported Verdict = "unsupported" // it fails without stubs
	BuildFails  Verdict = "build"       // with stubs only, as all that follow
	OffFails    Verdict = "off"         // run with tracing off
	OnFails     Verdict = "on"          // run with tracing on
	TraceWrong  Verdict = "trace"       // it passes, what was recorded is wrong
	Passed      Verdict = "passed"
)

// Result is what was found out about a case.
type Result struct {
	Key       string
	Suite     string
	Compiler  string
	Level     string
	Verdict   Verdict
	Detail    string   // what is wrong, one line
	Functions int      // with stubs
	Skipped   []string // "symbol: reason", without stubs
	Records   uint64
}

// Runner judges cases. Any number of goroutines may call Judge at the same time.
type Runner struct {
	Braid   string // path of the braid command
	Target  Target
	Scratch string // an empty folder

	mu       sync.Mutex
	known    map[string]string // program and compiler -> its output without stubs, once asked for
	hopeless map[string]string // program and compiler -> why it fails without stubs at every level
	ends     map[string]string // compiler -> testdata/end.c compiled by it
}

// buildLimit bounds one compilation. A program may take runLimit at first, and ten times what it takes without stubs
// and another runLimit if that is not enough.
const (
	buildLimit = 5 * time.Minute
	runLimit   = 10 * time.Second
)

// NewRunner compiles what goes with every program.
func NewRunner(braid, scratch string, t Target) (*Runner, error) {
	r := &Runner{Braid: braid, Target: t, Scratch: scratch, known: map[string]string{}, hopeless: map[string]string{}, ends: map[string]string{}}
	source := filepath.Join(scratch, "end.c")
	if err := os.WriteFile(source, endSource, 0o666); err != nil {
		return nil, err
	}
	for _, cc := range t.Compilers {
		object := filepath.Join(scratch, "end-"+cc.Name+".o")
		words := append(slices.Concat(cc.C, t.Flags), "-O2", "-fno-lto", "-c", "-o", object, source)
		o, err := run(buildLimit, nil, scratch, nil, words...)
		if err != nil || o.code != 0 {
			return nil, fmt.Errorf("%q: %v\n%s", words, err, o.stderr)
		}
		r.ends[cc.Name] = object
	}
	return r, nil
}

// trial is the work on one case.
type trial struct {
	*Runner
	c   *Case
	dir string
	res Result
}

// Judge builds and runs one case. The error is of this machine, not of the case.
func (r *Runner) Judge(c *Case) (Result, error) {
	t := &trial{Runner: r, c: c, res: Result{Key: c.Key(), Suite: c.Program.Suite, Compiler: c.Compiler.Name, Level: c.Level}}
	if why := r.isHopeless(c); why != "" {
		t.res.Verdict, t.res.Detail = Unsupported, why
		return t.res, nil
	}
	if p := c.Program.Prepare; p != nil {
		if err := p(); err != nil {
			return Result{}, err
		}
	}
	dir, err := os.MkdirTemp(r.Scratch, "case-")
	if err != nil {
		return Result{}, err
	}
	t.dir = dir
	defer func() {
		filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { os.Chmod(path, 0o777); return nil })
		os.RemoveAll(dir)
	}()
	err = t.judge()
	return t.res, err
}

func (c *Case) family() string { return c.Program.Suite + "/" + c.Program.Name + " " + c.Compiler.Name }

func (r *Runner) isHopeless(c *Case) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hopeless[c.family()]
}

// build compiles the program to dir/name, with words before the compiler's.
func (t *trial) build(name string, before ...string) (outcome, error) {
	cc := t.c.Compiler.C
	if t.c.Program.Plus {
		cc = t.c.Compiler.Plus
	}
	level := []string{t.c.Level}
	if t.c.Level == OwnLevel {
		level = nil
	}
	words := slices.Concat(before, cc, t.Target.Flags, level, t.c.Program.Flags,
		[]string{"-Wl,--wrap=__libc_start_main,--wrap=exit,--wrap=_exit", "-o", filepath.Join(t.dir, name)}, t.c.Program.Sources,
		[]string{t.ends[t.c.Compiler.Name], "-lm"})
	for i, f := range words {
		if strings.HasPrefix(f, "-l") && f != "-lm" { // libraries that a test asks for go behind it
			words = append(append(words[:i:i], words[i+1:]...), f)
		}
	}
	return run(buildLimit, nil, t.dir, []string{"BRAID_CC_VERBOSE=1"}, words...)
}

// execute runs dir/name in a folder of its own.
func (t *trial) execute(name string, limit time.Duration, between func(), env ...string) (outcome, error) {
	dir, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return outcome{}, err
	}
	return run(limit, between, dir, env, append(slices.Clone(t.Target.Emulator), filepath.Join(t.dir, name))...)
}

// plain is what the program does without stubs. err is why it can't be had, as a verdict's detail.
type plainRun struct {
	outcome
	fails string
}

// plain builds and runs the program without stubs.
func (t *trial) plain() (plainRun, error) {
	o, err := t.build("plain")
	if err != nil {
		return plainRun{}, err
	}
	if o.code != 0 {
		t.remember(t.hopeless, "it does not build: "+firstLine(o.stderr))
		return plainRun{fails: "it does not build: " + firstLine(o.stderr)}, nil
	}
	o, err = t.execute("plain", runLimit, nil)
	switch {
	case err != nil:
		return plainRun{}, err
	case o.timedOut:
		t.remember(t.hopeless, "it takes too long")
		return plainRun{fails: "it takes too long"}, nil
	case o.code != 0:
		return plainRun{o, fmt.Sprintf("it ends with %d", o.code)}, nil
	}
	t.remember(t.known, o.stdout)
	return plainRun{outcome: o}, nil
}

func (t *trial) remember(m map[string]string, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m[t.c.family()] = value
}

// expected is what the program is known to print without stubs, possibly at another level.
func (t *trial) expected() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[t.c.family()]
}

// fail decides that what differs is our fault, if the program passes without stubs.
func (t *trial) fail(v Verdict, detail string) error {
	p, err := t.plain()
	if err != nil {
		return err
	}
	if p.fails != "" {
		v, detail = Unsupported, p.fails
	}
	t.res.Verdict, t.res.Detail = v, detail
	return nil
}

func (t *trial) judge() error {
	o, err := t.build("stubs", t.Braid, "cc")
	if err != nil {
		return err
	}
	t.count(o.stderr)
	if o.code != 0 {
		return t.fail(BuildFails, firstLine(withoutNotes(o.stderr)))
	}
	for line := range strings.Lines(o.stderr) {
		if strings.Contains(line, "please report this") { // it builds, but without some or all stubs
			return t.fail(BuildFails, firstLine(line))
		}
	}
	off, err := t.execute("stubs", runLimit, nil)
	if err != nil {
		return err
	}
	if wrong, err := t.differs(&off, "stubs"); wrong != "" || err != nil {
		return t.failOr(err, OffFails, wrong)
	}
	return t.traced()
}

func (t *trial) failOr(err error, v Verdict, detail string) error {
	if err != nil {
		return err
	}
	return t.fail(v, detail)
}

// traced runs the program with every thread recording.
func (t *trial) traced() error {
	rec, err := newRecording(len(t.Target.Emulator) > 0)
	if err != nil {
		return err
	}
	defer func() { rec.close() }()
	file := filepath.Join(t.dir, "ends")
	attempt := func(limit time.Duration) (outcome, error) {
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			return outcome{}, err
		}
		return t.execute("stubs", limit, rec.look, rec.session.Env(), "TORTURE_END="+file)
	}
	on, err := attempt(runLimit)
	if err != nil {
		return err
	}
	if on.timedOut {
		p, err := t.plain()
		if err != nil {
			return err
		}
		rec.close()
		if rec, err = newRecording(len(t.Target.Emulator) > 0); err != nil {
			return err
		}
		if on, err = attempt(10*p.took + runLimit); err != nil {
			return err
		}
	}
	if wrong, err := t.differs(&on, ""); wrong != "" || err != nil {
		return t.failOr(err, OnFails, wrong)
	}
	threads, err := rec.threads()
	if err != nil {
		return t.fail(TraceWrong, err.Error())
	}
	for i := range threads {
		t.res.Records += threads[i].records
	}
	ends, err := readEnds(file)
	if err != nil {
		return err
	}
	program := filepath.Join(t.dir, "stubs")
	f, err := readFunctions(program)
	if err != nil {
		return t.fail(TraceWrong, err.Error())
	}
	if wrong := checkThreads(threads, ends, program, f); wrong != "" {
		return t.fail(TraceWrong, wrong)
	}
	t.res.Verdict = Passed
	return nil
}

// differs says how an outcome differs from that without stubs, if it does. A program that has run out of time is run
// again, named again, with more of it.
func (t *trial) differs(o *outcome, again string) (string, error) {
	if o.timedOut && again != "" {
		p, err := t.plain()
		if err != nil || p.fails != "" {
			return "it takes too long", err
		}
		if *o, err = t.execute(again, 10*p.took+runLimit, nil); err != nil {
			return "", err
		}
	}
	switch {
	case o.timedOut:
		return "it takes too long", nil
	case o.code != 0:
		return fmt.Sprintf("it ends with %d: %s", o.code, firstLine(o.stderr+o.stdout)), nil
	case o.stdout == "" || o.stdout == t.expected():
		return "", nil
	}
	p, err := t.plain()
	if err != nil || p.fails != "" || o.same(p.outcome) {
		return "", err
	}
	if q, err := t.execute("plain", runLimit, nil); err != nil || q.stdout != p.stdout {
		return "", err // it prints something else each time
	}
	return fmt.Sprintf("it prints %q in place of %q", firstDifference(o.stdout, p.stdout), firstDifference(p.stdout, o.stdout)), nil
}

var stubsIn = regexp.MustCompile(`: stubs in (\d+) functions`)

// count reads what braid cc says that it did.
func (t *trial) count(messages string) {
	for line := range strings.Lines(messages) {
		if m := stubsIn.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			t.res.Functions += n
		}
		if _, what, ok := strings.Cut(line, ": no stub in "); ok {
			t.res.Skipped = append(t.res.Skipped, strings.TrimSpace(what))
		}
	}
}

// withoutNotes leaves out the lines that braid cc writes because it is to be verbose.
func withoutNotes(messages string) string {
	var b strings.Builder
	for line := range strings.Lines(messages) {
		if !strings.HasPrefix(line, "braid cc: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line[:min(len(line), 200)]
}

// firstDifference is some of a from where it differs from b.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[i:min(len(a), i+40)]
}
