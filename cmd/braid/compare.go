package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"braid/compare/arm"
	_ "braid/compare/arms" // registers them
	"braid/compare/estimate"
	"braid/compare/machine"
	"braid/compare/render"
	"braid/compare/result"
	"braid/compare/study"
	"braid/compare/workload"
	"braid/internal/counter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

type compareOptions struct {
	streams
	quick, list            bool
	json, html             string
	arms, workloads, cpus  []string
	margin, seconds, width float64
	seed                   uint64
	command, functions     []string
}

func newCompare(st streams) *cobra.Command {
	o := compareOptions{streams: st}
	c := &cobra.Command{
		Use:   "compare [options] [-- COMMAND [ARG...]]",
		Short: "Measure what tracing costs on this machine, inline against probes",
		Long: `Measure what a trace point costs here: braid's stubs, the kernel's probes, what
a compiler inserts, and other tracers that are installed, all on the same
programs, which come with braid. Says what the figures mean, how sure they are,
and why they may not be trusted. With a command it is that program's time which
is compared, with and without tracing.

Takes up to ten minutes, with --quick one. Ctrl-C ends it with what is known by
then. As root it measures the kernel's probes too. Leave the machine alone
meanwhile.`,
		Example: `  braid compare --quick
  braid compare --json study.json --html study.html
  braid compare --arms stub-on,clock --workload listing
  braid compare -- ./app --work
  braid compare --functions 'parse_*,libz:*' -- ./app --work
  braid compare show study.json --html study.html
  braid compare diff phone.json server.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usageError("unexpected argument %q: a command stands behind --", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.command = args
			if o.list {
				return listArms(o)
			}
			return runCompare(o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.quick, "quick", false, "one minute: the most telling arms, one workload")
	f.StringVar(&o.json, "json", "", "write the result with every sample to this file (- for stdout)")
	f.StringVar(&o.html, "html", "", "write a page with tables and figures to this file")
	f.StringSliceVar(&o.arms, "arms", nil, "compare only these (names as in --list)")
	f.StringSliceVar(&o.workloads, "workload", nil, "run only these: "+strings.Join(loadNames(), ", "))
	f.StringSliceVar(&o.functions, "functions", nil, "put probes on these functions of the command: [FILE:]GLOB,...")
	f.StringSliceVar(&o.cpus, "cpus", nil, "measure on these processors: numbers, or kinds like big and little; default is one of each kind")
	f.Float64Var(&o.margin, "margin", 3, "how much slower is still as good, in percent")
	f.Float64Var(&o.seconds, "seconds", 0, "limit of the study (default 540, with --quick 50)")
	f.Float64Var(&o.width, "width", 2, "a figure is good enough when it is known to so many percent")
	f.Uint64Var(&o.seed, "seed", 0, "decides the order of measurements (default: drawn)")
	f.BoolVar(&o.list, "list", false, "list arms, and why some can't run here")
	c.AddCommand(newCompareShow(st), newCompareDiff(st))
	return c
}

func loadNames() (out []string) {
	for _, l := range study.Loads(false) {
		out = append(out, l.Name)
	}
	return out
}

// loads returns the workloads that were asked for.
func (o *compareOptions) loads() ([]study.Load, error) {
	if len(o.command) > 0 {
		if len(o.workloads) > 0 {
			return nil, usageError("--workload names braid's own programs: it does not go with a command")
		}
		return []study.Load{study.CommandLoad(o.command, o.functions)}, nil
	}
	if len(o.workloads) == 0 {
		return study.Loads(o.quick), nil
	}
	var out []study.Load
	for _, l := range study.Loads(false) {
		if slices.Contains(o.workloads, l.Name) {
			l.Without = nil // who asks for it gets it
			out = append(out, l)
		}
	}
	for _, n := range o.workloads {
		if !slices.Contains(loadNames(), n) {
			return nil, usageError("there is no workload %q: there are %s", n, strings.Join(loadNames(), ", "))
		}
	}
	return out, nil
}

// references are always measured: others are compared with them.
var references = []string{estimate.Baseline, estimate.Again, estimate.Clock}

// cast returns the arms that were asked for, and those that they are compared with.
func (o *compareOptions) cast(loads []study.Load) ([]*arm.Arm, error) {
	all := arm.All()
	find := func(name string) *arm.Arm {
		if i := slices.IndexFunc(all, func(a *arm.Arm) bool { return a.Name == name }); i >= 0 {
			return all[i]
		}
		return nil
	}
	var out []*arm.Arm
	add := func(a *arm.Arm) {
		if a != nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, n := range o.arms {
		if find(n) == nil {
			return nil, usageError("there is no arm %q: see braid compare --list", n)
		}
		add(find(n))
	}
	if len(o.arms) == 0 {
		for _, a := range all {
			runs := slices.ContainsFunc(loads, func(l study.Load) bool { return l.Has(a) })
			if runs && (a.Quick || !o.quick) {
				add(a)
			}
		}
	}
	for _, a := range slices.Clone(out) {
		add(find(a.Baseline))
	}
	for _, n := range references {
		if a := find(n); a != nil && slices.ContainsFunc(loads, func(l study.Load) bool { return l.Has(a) }) {
			add(a)
		}
	}
	arm.Sort(out)
	return out, nil
}

// environment makes the folder and unpacks the programs.
func (o *compareOptions) environment(m *result.Machine) (env *arm.Env, undo func(), err error) {
	dir, err := scratch()
	if err != nil {
		return nil, nil, err
	}
	undo = func() { os.RemoveAll(dir) }
	set, err := workload.Unpack(dir, runtime.GOARCH)
	if err != nil {
		undo()
		return nil, nil, err
	}
	ring := uint64(32 << 20)
	for m.MemoryBytes > 0 && ring > 1<<20 && ring > m.MemoryBytes/256 {
		ring /= 2
	}
	return &arm.Env{Dir: dir, Workloads: set, Root: os.Geteuid() == 0, Ring: ring, Cache: map[string]string{}}, undo, nil
}

// scratch makes an empty folder from which programs can be run. Phones have no /tmp.
func scratch() (string, error) {
	var last error
	for _, parent := range []string{os.TempDir(), "/data/local/tmp", "/var/tmp", "."} {
		var fs unix.Statfs_t
		if err := unix.Statfs(parent, &fs); err != nil || fs.Flags&unix.ST_NOEXEC != 0 {
			continue
		}
		parent, err := filepath.Abs(parent)
		if err == nil {
			var dir string
			if dir, err = os.MkdirTemp(parent, "braid-compare-"); err == nil {
				return dir, nil
			}
		}
		last = err
	}
	if last == nil {
		last = fmt.Errorf("no folder was found from which programs can be run: set TMPDIR to one")
	}
	return "", fmt.Errorf("making a scratch folder: %w", last)
}

func (o *compareOptions) check() error {
	switch {
	case o.margin <= 0 || o.margin >= 100:
		return usageError("--margin is a percentage between 0 and 100")
	case o.width <= 0 || o.width >= 100:
		return usageError("--width is a percentage between 0 and 100")
	case len(o.functions) > 0 && len(o.command) == 0:
		return usageError("--functions names functions of a command: put one behind --")
	case o.seconds < 0:
		return usageError("--seconds is a time from now on")
	}
	for _, path := range []string{o.json, o.html} { // better now than in ten minutes
		if path == "" || path == "-" {
			continue
		}
		f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		f.Close()
		os.Remove(f.Name())
	}
	return nil
}

func describe() result.Machine {
	m := machine.Local(runtime.GOARCH, counter.Hz()).Describe()
	m.PMU = machine.HasPMU()
	return m
}

func runCompare(o compareOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	loads, err := o.loads()
	if err != nil {
		return err
	}
	arms, err := o.cast(loads)
	if err != nil {
		return err
	}
	m := describe()
	clusters, err := machine.Choose(m.Clusters, o.cpus)
	if err != nil {
		return usageError("--cpus: %w", err)
	}
	for _, c := range clusters {
		m.Clusters[slices.IndexFunc(m.Clusters, func(k result.Cluster) bool { return k.Name == c.Name })].PinnedTo = c.PinnedTo
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second one ends braid at once
	env, undo, err := o.environment(&m)
	if err != nil {
		return err
	}
	defer undo()
	so := study.Options{Arms: arms, Loads: loads, Clusters: clusters, Machine: m, Env: env, Watch: machine.Local(runtime.GOARCH, 0).Watch(), Syscall: machine.SyscallNS,
		Version: versionString(), Quick: o.quick, Seconds: o.seconds, Margin: o.margin / 100, Width: o.width / 100, Seed: o.seed, Command: o.command, Functions: o.functions}
	if so.Seconds == 0 {
		so.Seconds = map[bool]float64{false: 540, true: 50}[o.quick]
	}
	if so.Seed == 0 {
		so.Seed = rand.Uint64() >> 11 // a number that survives JSON readers that know only floats
	}
	var measured []int
	for _, c := range clusters {
		measured = append(measured, c.PinnedTo)
	}
	back, err := study.StepAside(measured)
	if err != nil {
		fmt.Fprintf(o.err, "braid: note: %v\n", err)
	}
	line := &statusLine{w: o.err, on: isTerminal(o.errFile)}
	so.Progress = line.show
	s, err := study.Run(ctx, so)
	back()
	line.clear()
	return o.write(s, err)
}

// write shows a result. It is written also after an error, as far as there is one: its samples were dear.
func (o *compareOptions) write(s *result.Study, studied error) error {
	if o.json == "-" {
		if err := result.Write(o.out, s); err != nil {
			return err
		}
	} else if o.json != "" {
		if err := result.WriteFile(o.json, s); err != nil {
			return err
		}
	}
	if studied != nil {
		return studied
	}
	e := estimate.Of(s)
	if o.html != "" {
		if err := writeAside(o.html, func(w io.Writer) error { return render.HTML(w, s, e) }); err != nil {
			return err
		}
	}
	if o.json == "-" {
		return nil
	}
	return render.Text(o.out, s, e)
}

// writeAside writes a file aside and renames it when it is whole.
func writeAside(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	for _, step := range []func() error{func() error { return write(f) }, func() error { return f.Chmod(0o644) }, f.Close,
		func() error { return os.Rename(f.Name(), path) }} {
		if err = step(); err != nil {
			return err
		}
	}
	return nil
}

// listArms says which arms there are, and which of them can run.
func listArms(o compareOptions) error {
	m := describe()
	env, undo, err := o.environment(&m)
	if err != nil {
		return err
	}
	defer undo()
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ARM\tGROUP\tQUICK\tWHAT\n")
	for _, a := range arm.All() {
		what := a.Title
		if a.Check != nil {
			if err := a.Check(context.Background(), env); err != nil {
				what = "not here: " + err.Error()
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, a.Group, map[bool]string{true: "yes", false: ""}[a.Quick], what)
	}
	return w.Flush()
}

// statusLine says on a terminal how far a study is, in one line that is written over.
type statusLine struct {
	w    io.Writer
	on   bool
	last time.Time
}

func (l *statusLine) show(p study.Progress) {
	if !l.on || time.Since(l.last) < 200*time.Millisecond {
		return
	}
	l.last = time.Now()
	text := p.Step
	if p.Workload != "" {
		text = fmt.Sprintf("%s on %s, launch %d: %s", p.Workload, p.Cluster, p.Launch+1, p.Step)
	}
	fmt.Fprintf(l.w, "\r\x1b[K%3.0f %%  %.70s", p.Share*100, text)
}

func (l *statusLine) clear() {
	if l.on {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
