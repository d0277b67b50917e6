package arms

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/workload"
)

// rooted says that only root may put probes into programs.
func rooted(env *arm.Env) error {
	if !env.Root {
		return &arm.Unavailable{Why: "the kernel lets only root put probes into programs", Next: "run braid compare as root"}
	}
	return nil
}

// alone starts a workload for probes, with its executable copied into the folder: the kernel keeps breakpoints by file, so that
// those of several arms in one file would make each other slower.
func alone(ctx context.Context, env *arm.Env, w arm.Work, v workload.Variant, dir string) (*workload.Process, error) {
	b, err := os.ReadFile(env.Workloads.Path(w.Workload, v))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "probed")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		return nil, err
	}
	return env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, Variant: v, CPU: w.CPU, Aligns: w.Aligns, Path: path})
}

// probed starts a workload for the probes of another's tool. Its functions begin as most do, with a push; the facts say so.
func probed(ctx context.Context, env *arm.Env, w arm.Work, dir string) (p *workload.Process, facts map[string]string, err error) {
	if p, err = alone(ctx, env, w, workload.Push, dir); err != nil {
		return nil, nil, err
	}
	sites, err := probe.Entries(p.Path(), p.Functions(w.Aligns[0]))
	if err == nil {
		facts, err = seat(sites[0])
	}
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return p, facts, nil
}

// seat says which instruction a probe is on, and what the kernel is known to do with it.
func seat(s probe.Site) (map[string]string, error) {
	kernel, err := probe.KernelVersion()
	if err != nil {
		return nil, err
	}
	class, err := probe.Classify(runtime.GOARCH, s.Code, s.Address, kernel)
	if err != nil {
		return nil, err
	}
	return seatOf(s, class), nil
}

func seatOf(s probe.Site, class probe.Class) map[string]string {
	text := s.Text(runtime.GOARCH)
	return map[string]string{arm.FactSite: text, arm.FactClass: class.Describe(text)}
}
