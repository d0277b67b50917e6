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

// probed starts a workload for the probes of another's tool. Its functions begin as most do, with a push; the facts say so. The
// executable is a copy in the folder, because probes of several arms in one file would make each other slower.
func probed(ctx context.Context, env *arm.Env, w arm.Work, dir string) (p *workload.Process, facts map[string]string, err error) {
	b, err := os.ReadFile(env.Workloads.Path(w.Workload, workload.Push))
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "probed")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		return nil, nil, err
	}
	p, err = env.Workloads.Start(ctx, workload.Start{Workload: w.Workload, Variant: workload.Push, CPU: w.CPU, Aligns: w.Aligns, Path: path})
	if err != nil {
		return nil, nil, err
	}
	facts, err = site(path, p.Functions(w.Aligns[0]))
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return p, facts, nil
}

// site says which instruction a probe at a function's entry is on, and what the kernel does with it.
func site(path string, functions []string) (map[string]string, error) {
	sites, err := probe.Entries(path, functions)
	if err != nil {
		return nil, err
	}
	kernel, err := probe.KernelVersion()
	if err != nil {
		return nil, err
	}
	class, err := probe.Classify(runtime.GOARCH, sites[0].Code, sites[0].Address, kernel)
	if err != nil {
		return nil, err
	}
	text := sites[0].Text(runtime.GOARCH)
	return map[string]string{arm.FactSite: text, arm.FactClass: class.Describe(text)}, nil
}
