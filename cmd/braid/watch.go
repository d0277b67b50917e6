package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"braid/internal/android"
	"braid/internal/ctl"
	"braid/internal/trigger"
	"braid/internal/watch"

	"github.com/spf13/cobra"
)

type watchOptions struct {
	streams
	config, socket, metrics, dir string
	btf                          string
	names                        []string
	check                        bool
}

func newWatch(st streams) *cobra.Command {
	o := watchOptions{streams: st}
	c := &cobra.Command{
		Use:   "watch [options]",
		Short: "Keep the last seconds, and write them out when something is wrong",
		Long: `Watch programs that were built with "braid cc": keep the newest records of
their threads and the kernel events of the last seconds, at hardly any cost, and
write both to a trace when a trigger fires. Runs until Ctrl-C or SIGTERM, then
turns everything off.

A file says which programs, which triggers, and what to keep; --check reads it
and says what it would do. Nothing is written without consent: a file that the
user makes (see docs/retention.md).`,
		Example: `  braid watch --config watch.yaml --check
  braid watch --config watch.yaml --metrics localhost:9464
  braid watch --name app                       traces when braid flush asks
  braid status                                 in another terminal`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWatch(o) },
	}
	f := c.Flags()
	f.StringVarP(&o.config, "config", "c", "", "file with programs, triggers and output (YAML)")
	f.BoolVar(&o.check, "check", false, "read the file, say what it means, and end")
	f.StringArrayVar(&o.names, "name", nil, "watch programs of this name, * and ? stand for parts of it (may be repeated)")
	f.StringVar(&o.dir, "dir", "", "folder for traces (default "+trigger.DefaultDir+")")
	f.StringVar(&o.socket, "socket", ctl.DefaultPath(), "control socket, or none")
	f.StringVar(&o.btf, "btf", "", "FILE with this kernel's types, if the kernel has none (BTF)")
	f.StringVar(&o.metrics, "metrics", "", "serve Prometheus metrics on this address")
	return c
}

// resolve reads the configuration and puts the flags over it.
func (o *watchOptions) resolve() (*trigger.Config, error) {
	if o.config == "" && len(o.names) == 0 {
		return nil, usageError("give --config FILE, or --name NAME")
	}
	c, err := o.read()
	if err != nil {
		return nil, err
	}
	if c.Output.Dir == trigger.DefaultDir {
		c.Output.Dir = android.Dir("traces", trigger.DefaultDir)
	}
	if o.dir != "" {
		c.Output.Dir = o.dir
	}
	if o.metrics != "" {
		c.Metrics.Address = o.metrics
	}
	return c, nil
}

// read reads the file. Names without a file make a configuration whose traces are asked for.
func (o *watchOptions) read() (*trigger.Config, error) {
	var programs strings.Builder
	for _, n := range o.names {
		fmt.Fprintf(&programs, "  - name: %q\n", n)
	}
	if o.config == "" {
		return trigger.Parse("--name", []byte("version: 1\nprograms:\n"+programs.String()+"triggers:\n  - {name: socket, socket: true}\n"))
	}
	c, err := trigger.ReadFile(o.config)
	if err != nil || len(o.names) == 0 {
		return c, err
	}
	more, err := trigger.Parse("--name", []byte("version: 1\nprograms:\n"+programs.String()+"triggers:\n  - {name: socket, socket: true}\n"))
	if err == nil {
		c.Programs = append(c.Programs, more.Programs...)
	}
	return c, err
}

func runWatch(o watchOptions) error {
	if o.check {
		if o.config == "" {
			return usageError("--check needs --config FILE")
		}
		return trigger.Check(o.config, o.out)
	}
	c, err := o.resolve()
	if err != nil {
		return err
	}
	socket := o.socket
	if socket == "none" {
		socket = ""
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	log := slog.New(slog.NewTextHandler(o.err, nil))
	return watch.Run(ctx, watch.Options{Config: c, Socket: socket, BTF: o.btf, Version: versionString(), Log: log, Ready: func() {
		log.Info("watching", "programs", len(c.Programs), "triggers", len(c.Rules), "traces", c.Output.Dir)
	}})
}
