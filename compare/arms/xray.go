package arms

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"braid/compare/arm"
	"braid/compare/result"
	"braid/compare/workload"
)

// LLVM XRay: the compiler leaves room at entries and returns, and XRay puts calls of its handlers there when the program starts.
// The basic handler writes 32 bytes to a buffer that goes to a file; the flight recorder ("FDR") writes 8 bytes to buffers in
// memory that go to the file at the end.
func init() {
	for _, x := range []struct {
		mode, title string
		order       int
		most        int64
	}{
		{"basic", "XRay, basic", 20, 200_000},
		{"fdr", "XRay, flight recorder", 21, 200_000},
	} {
		arm.Register(&arm.Arm{
			Name: "xray-" + x.mode, Title: x.title, Group: result.GroupExternal, Order: x.order, Points: 2,
			Workloads: nested,
			Check:     checkXRay,
			Open: func(ctx context.Context, env *arm.Env, w arm.Work) (arm.Session, error) {
				return open(ctx, env, w, "xray-"+x.mode, x.most, func(dir string) (filer, map[string]string, error) {
					return buildXRay(ctx, env, dir, x.mode)
				})
			},
		})
	}
}

// instrument are the options for the traced functions; small ones would be left out.
var instrument = []string{"-fxray-instrument", "-fxray-instruction-threshold=1"}

// xrayTools returns the newest compiler and the llvm-xray of its version: Debian has them side by side.
func xrayTools() (clang, llvm string, err error) {
	for _, version := range []string{"-22", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14", ""} {
		clang, err1 := exec.LookPath("clang" + version)
		llvm, err2 := exec.LookPath("llvm-xray" + version)
		if err1 == nil && err2 == nil {
			return clang, llvm, nil
		}
	}
	return "", "", &arm.Unavailable{Why: "no clang with llvm-xray is installed", Next: "apt-get install clang llvm"}
}

func checkXRay(ctx context.Context, env *arm.Env) error {
	clang, _, err := xrayTools()
	if err != nil {
		return err
	}
	if err := links(ctx, env, append([]string{clang}, instrument...)...); err != nil {
		next := "apt-get install libclang-rt-dev"
		if version, err := output(ctx, nil, clang, "-dumpversion"); err == nil {
			major, _, _ := strings.Cut(version, ".")
			next = "apt-get install libclang-rt-" + major + "-dev"
		}
		return &arm.Unavailable{Why: "clang has no XRay runtime", Next: next}
	}
	return nil
}

func buildXRay(ctx context.Context, env *arm.Env, dir, mode string) (filer, map[string]string, error) {
	clang, llvm, err := xrayTools()
	if err != nil {
		return nil, nil, err
	}
	link := slices.Clone(instrument)
	if mode == "fdr" {
		if err := place(dir, "xray.c"); err != nil {
			return nil, nil, err
		}
		// Its headers are for C++.
		object := filepath.Join(dir, "xray.o")
		_, err := output(ctx, nil, clang, "-x", "c++", "-O2", "-fno-exceptions", "-fno-rtti", "-c", "-o", object, filepath.Join(dir, "xray.c"))
		if err != nil {
			return nil, nil, err
		}
		link = append(link, object)
	}
	program, err := build(ctx, env, dir, clang, instrument, link...)
	facts := map[string]string{"build": "clang " + strings.Join(instrument, " "), "counted by": "llvm-xray convert"}
	return xray{program, llvm, mode}, facts, err
}

type xray struct{ program, llvm, mode string }

// start sets that short calls are kept too, which both modes leave out otherwise.
func (x xray) start(_ context.Context, dir string, calls int64) (workload.Start, error) {
	log := "xray_logfile_base=" + dir + "/log."
	if x.mode == "basic" {
		return workload.Start{Path: x.program, Env: []string{
			"XRAY_OPTIONS=patch_premain=true:xray_mode=xray-basic:" + log,
			"XRAY_BASIC_OPTIONS=func_duration_threshold_us=0:max_stack_depth=64",
		}}, nil
	}
	// The buffers hold all that a measurement records, twice: nothing is overwritten.
	return workload.Start{Path: x.program, Env: []string{
		"XRAY_OPTIONS=" + log,
		fmt.Sprintf("XRAY_ARM=func_duration_threshold_us=0:buffer_size=1048576:buffer_max=%d", 2+calls*32>>20),
	}}, nil
}

// count reads each record: what llvm-xray account says is too few where a log has several buffers.
func (x xray) count(ctx context.Context, dir string, functions []string) (events uint64, err error) {
	logs, err := filepath.Glob(dir + "/log.*")
	if err != nil || len(logs) != 1 {
		return 0, fmt.Errorf("XRay wrote %d logs", len(logs))
	}
	var names []string
	for _, f := range functions {
		names = append(names, ", function: "+f+",")
	}
	out, in := io.Pipe()
	c := exec.CommandContext(ctx, x.llvm, "convert", "--output-format=yaml", "--symbolize", "--instr_map="+x.program, logs[0])
	c.Stdout = in
	tool, err := serve(c)
	if err != nil {
		return 0, err
	}
	go func() {
		<-tool.ended
		in.Close()
	}()
	s := bufio.NewScanner(out)
	for s.Scan() {
		line := s.Text()
		if strings.Contains(line, "kind: function-") && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(line, name) }) {
			events++
		}
	}
	if <-tool.ended; tool.err != nil {
		return 0, tool.failure()
	}
	return events, s.Err()
}

func (x xray) close() error { return nil }
