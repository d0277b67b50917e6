package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"braid/internal/demo"
	"braid/internal/export"
	"braid/internal/recorder"
	"braid/internal/report"
	"braid/internal/timeline"

	"github.com/spf13/cobra"
)

func newDemo(st streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Record a program that comes with braid, and show what one sees",
		Long: `Record a small program that computes, competes for a CPU, waits for a lock,
sleeps, writes and fsyncs, each in a method of its own. Shows the report and
writes a trace file and a Perfetto file. Needs no compiler; root, for the
kernel's side.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runDemo(st, dir) },
	}
	c.Flags().StringVar(&dir, "dir", ".", "where to write demo.braid and demo.pftrace")
	return c
}

func runDemo(st streams, dir string) error {
	tmp, err := os.MkdirTemp(dir, ".braid-demo-")
	if err != nil {
		return fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(tmp)
	bin, err := demo.Extract(tmp, runtime.GOARCH)
	if err != nil {
		return err
	}
	threads, err := recorder.ParseThreads("all")
	if err != nil {
		return err
	}
	o := recorder.Options{Command: []string{bin, filepath.Join(tmp, "scratch")}, Output: filepath.Join(dir, "demo.braid"),
		Threads: threads, Units: []string{"sched", "io"}, Stdin: st.in, Stdout: st.errFile, Stderr: st.errFile, Version: versionString()}
	stop := make(chan struct{})
	o.Interrupt = stop
	defer catchSignals(&o, stop)()
	res, err := recorder.Run(o)
	if err != nil {
		return err
	}
	if code := res.Wait(); code != 0 {
		return fmt.Errorf("the demo program ended with %d", code)
	}
	perfetto := filepath.Join(dir, "demo.pftrace")
	err = withTrace(o.Output, st.err, func(tr *timeline.Trace) error {
		r, err := report.Build(tr, report.Options{Top: 12})
		if err != nil {
			return err
		}
		if err := r.WriteText(st.out); err != nil {
			return err
		}
		if err := checkDemo(tr); err != nil {
			return err
		}
		_, err = exportTo(perfetto, tr, export.Perfetto)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(st.out, `
%s
The demo program called step %d times, and so it was recorded.

%s   braid report, braid dump
%s   open https://ui.perfetto.dev and drop it there
`, res.Summary(o.Output), demo.Steps, o.Output, perfetto)
	if res.KernelEvents == 0 {
		fmt.Fprint(st.out, "\nThe kernel's side is missing, so times are not divided: run it as root, or see braid doctor.\n")
	}
	return nil
}

// checkDemo compares the calls that were recorded with those that the program makes.
func checkDemo(tr *timeline.Trace) error {
	all, err := report.Build(tr, report.Options{})
	if err != nil {
		return err
	}
	got := map[string]uint64{}
	for _, m := range all.Methods {
		got[m.Name] += m.Calls
	}
	var errs []error
	for name, n := range demo.Calls() {
		if got[name] != n {
			errs = append(errs, fmt.Errorf("%s was recorded %d times, and called %d times", name, got[name], n))
		}
	}
	return errors.Join(errs...)
}
