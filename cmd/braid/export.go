package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"braid/internal/export"
	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/spf13/cobra"
)

type exportOptions struct {
	streams
	input, output, format string
	width                 int
}

func newExport(st streams) *cobra.Command {
	o := exportOptions{streams: st}
	c := &cobra.Command{
		Use:   "export [options] FILE",
		Short: "Convert a trace file: for Perfetto, for pprof, or to a picture",
		Long: `Convert a trace file: to Perfetto's format, which ui.perfetto.dev opens, or to
a picture in SVG: each thread's states and methods, and the devices' requests.

A trace with samples can be converted to a flame graph, to folded stacks for
other tools that draw those, and to a profile for pprof. Each sample's stack
holds methods, native frames and kernel frames.`,
		Example: `  braid export app.braid -o app.pftrace     open it in ui.perfetto.dev
  braid export --format svg app.braid       a picture, app.svg
  braid export --format flame app.braid     a flame graph, app.flame.svg
  braid export --format pprof app.braid     go tool pprof -http : app.pb.gz
  braid export app.braid -o -               to stdout`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.input = args[0]
			suffix := suffixes[o.format]
			switch {
			case suffix == "":
				return usageError("--format %s: want perfetto, svg, flame, folded or pprof", o.format)
			case o.format != "svg" && o.format != "flame" && cmd.Flags().Changed("width"):
				return usageError("--width is for --format svg and flame")
			case o.width < export.MinSVGWidth || o.width > export.MaxSVGWidth:
				return usageError("--width %d: want %d to %d", o.width, export.MinSVGWidth, export.MaxSVGWidth)
			}
			if o.output == "" {
				o.output = strings.TrimSuffix(o.input, ".braid") + suffix
			}
			return runExport(o)
		},
	}
	c.Flags().StringVar(&o.format, "format", "perfetto", "what to write: perfetto, svg, flame, folded or pprof")
	c.Flags().StringVarP(&o.output, "output", "o", "", "file to write, - for stdout (default: FILE with the format's suffix)")
	c.Flags().IntVar(&o.width, "width", export.DefaultSVGWidth, "width of a picture in pixels")
	return c
}

// suffixes are the formats, and what their files end in.
var suffixes = map[string]string{"perfetto": ".pftrace", "svg": ".svg", "folded": ".folded", "pprof": ".pb.gz", "flame": ".flame.svg"}

func runExport(o exportOptions) error {
	write := export.Perfetto
	switch o.format {
	case "svg":
		write = func(w io.Writer, tr *timeline.Trace) (export.Counts, error) {
			return export.SVG(w, tr, export.SVGOptions{Width: o.width})
		}
	case "flame":
		write = func(w io.Writer, tr *timeline.Trace) (export.Counts, error) {
			return export.Flame(w, tr, export.SVGOptions{Width: o.width})
		}
	case "folded":
		write = export.Folded
	case "pprof":
		write = export.Pprof
	}
	return withTrace(o.input, o.err, func(tr *timeline.Trace) error {
		var c export.Counts
		var err error
		if o.output == "-" {
			_, err = write(o.out, tr)
		} else {
			c, err = exportTo(o.output, tr, write)
		}
		if errors.Is(err, stacks.ErrNone) {
			return fmt.Errorf("%s: %w; braid record --sample takes them", o.input, err)
		}
		if err != nil || o.output == "-" {
			return err
		}
		fmt.Fprintf(o.err, "braid: %s: %s\n", exported(o.format, &c), o.output)
		return nil
	})
}

// exported says what an export wrote.
func exported(format string, c *export.Counts) string {
	samples := ""
	if c.Samples > 0 {
		samples = fmt.Sprintf("%d samples", c.Samples)
	}
	if c.Cut > 0 {
		samples += fmt.Sprintf(" (%d with a stack that is cut)", c.Cut)
	}
	switch format {
	case "flame", "folded", "pprof":
		return samples
	}
	unwound := ""
	if c.Unwound > 0 {
		unwound = fmt.Sprintf(" (%d ended without an exit)", c.Unwound)
	}
	if samples != "" {
		samples = ", " + samples
	}
	return fmt.Sprintf("%d method slices%s, %d context switches, %d block requests%s", c.Slices, unwound, c.Switches, c.Requests, samples)
}

// exportTo writes a file aside and renames it when it is whole.
func exportTo(path string, tr *timeline.Trace, write func(io.Writer, *timeline.Trace) (export.Counts, error)) (c export.Counts, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return c, fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if c, err = write(w, tr); err != nil {
		return c, err
	}
	for _, step := range []func() error{w.Flush, func() error { return f.Chmod(0o644) }, f.Close, func() error { return os.Rename(f.Name(), path) }} {
		if err = step(); err != nil {
			return c, fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return c, nil
}

// withTrace opens a trace file, puts it on the timeline and, when f is done, says what was damaged.
func withTrace(path string, errs io.Writer, f func(*timeline.Trace) error) error {
	r, err := tracefile.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := f(tr); err != nil {
		return err
	}
	for _, p := range tr.Problems {
		fmt.Fprintf(errs, "braid: %s: %v\n", path, p)
	}
	if ps := r.Problems(); len(ps) > 0 {
		for _, p := range ps {
			fmt.Fprintf(errs, "braid: %s: %v\n", path, p)
		}
		return &codeError{exitDamaged, errors.New("the trace file is damaged; shown is what could be read")}
	}
	return nil
}
