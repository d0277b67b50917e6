package arms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/result"
	"braid/compare/workload"
)

// Probes on all functions of a program at once, as tracers use them that know nothing of the program: on Lua's, and on those of the
// user's command that were chosen. With one link for all where the kernel has that, else with perf events.
func init() {
	for i, a := range []covering{
		{kind: probe.Pair, title: "uprobe+uretprobe, count, all functions"},
		{kind: probe.Pair, title: "uprobe+uretprobe, record, all functions", record: true},
		{kind: probe.Session, title: "uprobe session, count, all functions"},
		{kind: probe.Session, title: "uprobe session, record, all functions", record: true},
	} {
		name, workloads := "count", []string{workload.Startup, workload.Command}
		if a.record {
			name, workloads = "record", []string{workload.Command}
		}
		arm.Register(&arm.Arm{
			Name: fmt.Sprintf("%s-%s-all", a.kind, name), Title: a.title, Group: result.GroupProbe, Order: 100 + i, Points: 2, Workloads: workloads,
			Check: probeArm{kind: a.kind}.check, Open: a.open,
		})
	}
}

// covering is an arm.
type covering struct {
	kind   probe.Kind
	title  string
	record bool
}

// mostCoverRing holds what a whole run records: nobody empties it meanwhile.
const mostCoverRing = 64 << 20

// attached is the kind that the arm really takes.
func (a covering) attached() probe.Kind {
	if a.kind == probe.Pair && probe.Supported(probe.Multi) == nil {
		return probe.Multi
	}
	return a.kind
}

func (a covering) open(ctx context.Context, env *arm.Env, w arm.Work) (_ arm.Session, err error) {
	s := &covered{facts: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp(env.Dir, "probes-"); err != nil {
		return nil, err
	}
	start := workload.Start{Workload: w.Workload, CPU: w.CPU, Aligns: w.Aligns, Command: w.Command}
	var targets []target
	if w.Workload == workload.Startup {
		targets, err = luaTarget(env)
	} else {
		targets, err = commandTargets(w, s.dir)
	}
	for _, t := range targets {
		s.copies = append(s.copies, t.copy)
	}
	if err != nil {
		return nil, err
	}
	if w.Workload == workload.Startup {
		start.Path = targets[0].copy
		if s.calls, err = env.Workloads.StartupCalls(); err != nil {
			return nil, err
		}
	} else {
		start.Instead = map[string]string{}
		for _, t := range targets {
			start.Instead[t.path] = t.copy
		}
	}
	if err := s.describe(targets); err != nil {
		return nil, err
	}
	s.facts["attached by"] = map[probe.Kind]string{probe.Multi: "uprobe_multi", probe.Session: "uprobe_multi"}[a.attached()]
	if s.facts["attached by"] == "" {
		s.facts["attached by"] = "perf events"
	}
	if w.Workload == workload.Command {
		if s.facts["expected"], err = agree(ctx, env, a.attached(), start, targets); err != nil {
			return nil, err
		}
	}
	s.ring = min(2*max(env.Ring, leastProbeRing), mostCoverRing)
	if s.tracer, err = probe.Open(probe.Options{Kind: a.attached(), Record: a.record, RingBytes: s.ring}); err != nil {
		return nil, err
	}
	for _, t := range targets {
		if err := s.tracer.AttachFile(t.copy, t.sites); err != nil {
			return nil, err
		}
	}
	s.process, err = env.Workloads.Start(ctx, start)
	return s, err
}

// target is a file with functions to put probes on. The probes are put into a copy that only the measured program runs.
type target struct {
	path, copy string
	sites      []probe.Site
}

// newTarget copies a file and finds its functions.
func newTarget(path, dir string, match func(name string) bool) (t target, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	f, err := os.CreateTemp(dir, "lua_")
	if err != nil {
		return t, err
	}
	t = target{path: path, copy: f.Name()}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err == nil {
		t.sites, err = probe.Functions(t.copy, match)
	}
	if err != nil {
		return target{}, errors.Join(err, os.Remove(t.copy))
	}
	return t, nil
}

// luaTarget copies Lua beside the others: how long its name is decides how many calls it makes.
func luaTarget(env *arm.Env) ([]target, error) {
	names, err := env.Workloads.StartupFunctions()
	if err != nil {
		return nil, err
	}
	path := env.Workloads.Path(workload.Startup, workload.Plain)
	t, err := newTarget(path, filepath.Dir(path), func(name string) bool { return slices.Contains(names, name) })
	if err != nil {
		return nil, err
	}
	return []target{t}, nil
}

// commandTargets are the files of the user's command that have functions which were chosen.
func commandTargets(w arm.Work, dir string) (targets []target, err error) {
	patterns := map[string][]string{} // by file
	for _, f := range w.Functions {
		file, glob, ok := strings.Cut(f, ":")
		if !ok {
			file, glob = "", f
		}
		path, err := fileOf(w.Command[0], file)
		if err != nil {
			return nil, err
		}
		patterns[path] = append(patterns[path], glob)
	}
	for path, globs := range patterns {
		t, err := newTarget(path, dir, func(name string) bool {
			return slices.ContainsFunc(globs, func(g string) bool { return fits(g, name) })
		})
		if err != nil {
			return nil, &arm.Unavailable{Why: err.Error(), Next: "name a program or library with symbols: --functions FILE:GLOB"}
		}
		if len(t.sites) == 0 {
			return nil, &arm.Unavailable{Why: fmt.Sprintf("%s has no functions %s", path, strings.Join(globs, ", ")), Next: "see nm " + path}
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.path, b.path) })
	return targets, nil
}

// fits says whether a name matches a pattern, in which * stands for anything.
func fits(glob, name string) bool {
	ok, err := filepath.Match(strings.ReplaceAll(glob, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return ok && err == nil
}

// covered is the session of a covering arm.
type covered struct {
	calls   int64 // of the start-up program's functions in a run; of a command nobody knows them
	dir     string
	copies  []string
	ring    uint64
	process *workload.Process
	tracer  *probe.Tracer
	facts   map[string]string
}

// describe leaves out functions that the kernel takes no probe on, and counts the others by what it does with their first instructions.
func (s *covered) describe(targets []target) error {
	kernel, err := probe.KernelVersion()
	if err != nil {
		return err
	}
	n, by := 0, map[probe.Class]int{}
	for i := range targets {
		t := &targets[i]
		var bad error
		t.sites = slices.DeleteFunc(t.sites, func(x probe.Site) bool {
			class, err := probe.Classify(runtime.GOARCH, x.Code, x.Address, kernel)
			if err != nil {
				bad = err
			}
			by[class]++
			return class == probe.Refused
		})
		if bad != nil {
			return bad
		}
		n += len(t.sites)
	}
	if refused := by[probe.Refused]; refused > 0 {
		s.facts["left out"] = fmt.Sprintf("%d functions that the kernel takes no probe on", refused)
	}
	var parts []string
	for _, c := range []probe.Class{probe.Call, probe.Emulated, probe.Stepped} {
		if by[c] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[c], c.Text()))
		}
	}
	s.facts["functions"] = fmt.Sprint(n)
	s.facts[arm.FactClass] = fmt.Sprintf("%d functions: %s", n, strings.Join(parts, ", "))
	s.facts["return"] = probe.Returns(runtime.GOARCH, kernel)
	return nil
}

func (s *covered) Run(_ context.Context, r workload.Request) (m arm.Measured, err error) {
	if m.Reply, err = s.process.Run(r); err != nil {
		return m, err
	}
	counts, err := s.tracer.Take()
	if err != nil {
		return m, err
	}
	if counts.Dropped > 0 {
		return m, fmt.Errorf("the program's events did not fit into a ring buffer of %d bytes: %d were lost (choose fewer functions)", s.ring, counts.Dropped)
	}
	m.Recorded, m.Expected = counts.Events, counts.Events
	if s.calls > 0 {
		m.Expected = 2 * uint64(m.Calls)
	} else if counts.Events == 0 {
		return m, errors.New("the program calls none of the functions")
	}
	return m, nil
}

func (s *covered) Facts() map[string]string { return s.facts }

// Close takes the probes out first, so that the process ends without them.
func (s *covered) Close() error {
	var errs []error
	if s.tracer != nil {
		errs = append(errs, s.tracer.Close())
	}
	if s.process != nil {
		errs = append(errs, s.process.Close())
	}
	for _, c := range s.copies {
		errs = append(errs, os.Remove(c))
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
