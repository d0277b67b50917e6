package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"braid/internal/recorder"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

type recordOptions struct {
	streams
	output  string
	pid     int
	choice  choiceOptions
	kernel  string
	demand  bool // --kernel was given
	threads string
	ring    string
	buffer  string
	btf     string
	dur     time.Duration
	sample  sampleFlags
	command []string
	flags   map[string]string
}

func newRecord(st streams) *cobra.Command {
	o := recordOptions{streams: st}
	c := &cobra.Command{
		Use:   "record [options] (-p PID | --package NAME | -- COMMAND ARGS...)",
		Short: "Record a program's methods and kernel events",
		Long: `Record what a program's methods did, and what the kernel did to its threads,
until it ends. The program gets braid's own stdin, stdout and stderr, and braid
ends with its exit code. braid's messages go to stderr; the last one says what
was recorded and what was lost.

Methods need a program built with "braid cc"; any other is recorded from the
kernel's side alone. Kernel events need root; without it, methods are recorded.`,
		Example: `  braid record -o app.braid -- ./app args
  braid record -p 1234 --for 10s
  braid record --package com.example.app     running, or when it starts
  braid record --threads all --ring 64M -- ./server
  braid record --sample 99 -- ./app         with stacks, 99 times a second
  braid record --kernel none -- ./app       no root needed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = args
			o.demand = cmd.Flags().Changed("kernel")
			o.choice.hasWait = cmd.Flags().Changed("wait")
			o.flags = map[string]string{}
			cmd.Flags().Visit(func(f *pflag.Flag) { o.flags[f.Name] = f.Value.String() })
			return runRecord(o)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&o.output, "output", "o", "", "trace file (default: the program's name with .braid)")
	f.IntVarP(&o.pid, "pid", "p", 0, "record the running process PID")
	o.choice.flags(f)
	f.StringVar(&o.kernel, "kernel", "sched,io", "kernel events: sched, io, wait, sample, or none (without root: none)")
	f.StringVar(&o.threads, "threads", "main", "threads whose methods are recorded: main, all, or names and ids with * and ?")
	f.StringVar(&o.ring, "ring", "32M", "memory for each thread's newest records, 8 bytes each")
	f.StringVar(&o.buffer, "kernel-buffer", "8M", "buffer between kernel and braid; more if kernel events are lost")
	f.StringVar(&o.btf, "btf", "", "FILE with this kernel's types, if the kernel has none (BTF)")
	o.sample.add(f)
	f.DurationVar(&o.dur, "for", 0, "stop recording after this long, such as 10s")
	return c
}

func runRecord(o recordOptions) error {
	ro, err := o.resolve()
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	ro.Interrupt = stop
	defer catchSignals(&ro, stop)()
	res, err := recorder.Run(ro)
	if res == nil {
		var se *recorder.StartError
		if errors.As(err, &se) {
			return &codeError{se.Code, err}
		}
		return err
	}
	for _, n := range res.Notes {
		fmt.Fprintf(o.err, "braid: note: %s\n", n)
	}
	if err != nil {
		fmt.Fprintf(o.err, "braid: no trace was written: %v\n", err)
	} else {
		fmt.Fprintf(o.err, "braid: %s\n", res.Summary(ro.Output))
	}
	code := res.Wait()
	if err != nil && code == 0 {
		code = exitFailure
	}
	if code != 0 {
		return &codeError{code: code}
	}
	return nil
}

// resolve checks the flags and turns them into a recording's options.
func (o recordOptions) resolve() (recorder.Options, error) {
	ro := recorder.Options{Command: o.command, Pid: o.pid, Output: o.output, For: o.dur, Demand: o.demand,
		Stdin: o.in, Stdout: o.outFile, Stderr: o.errFile, Version: versionString(), Flags: o.flags}
	switch {
	case o.pid < 0:
		return ro, usageError("-p %d: not a process id", o.pid)
	case ways(o.pid != 0, o.choice.given(), len(o.command) > 0) != 1:
		return ro, usageError("give either a command, or -p PID, or --package NAME or --uid USER")
	case o.dur < 0:
		return ro, usageError("--for %s: must not be negative", o.dur)
	}
	err := o.choice.resolve(&ro, o.err)
	if err != nil {
		return ro, err
	}
	if ro.Threads, err = recorder.ParseThreads(o.threads); err != nil {
		return ro, usageError("%w", err)
	}
	if ro.RingBytes, err = recorder.ParseSize(o.ring); err != nil {
		return ro, usageError("--ring: %w", err)
	}
	buffer, err := recorder.ParseSize(o.buffer)
	if err != nil || buffer > 1<<30 {
		return ro, usageError("--kernel-buffer %s: want a size of at most 1G, such as 8M", o.buffer)
	}
	ro.KernelBuffer, ro.BTF = int(buffer), o.btf
	if o.kernel != "none" {
		for u := range strings.SplitSeq(o.kernel, ",") {
			if u == sampleUnit {
				o.sample.unit = true
				continue
			}
			if u != "sched" && u != "io" && u != "wait" {
				return ro, usageError("--kernel %s: want sched, io, wait, sample or none", o.kernel)
			}
			ro.Units = append(ro.Units, u)
		}
	}
	if ro.Sample, err = o.sample.resolve(); err != nil {
		return ro, err
	}
	if ro.Output == "" {
		if o.choice.given() {
			ro.Output = o.choice.fileName()
		} else if o.pid != 0 {
			ro.Output = "pid-" + strconv.Itoa(o.pid) + ".braid"
		} else {
			ro.Output = filepath.Base(o.command[0]) + ".braid"
		}
	}
	return ro, nil
}

// catchSignals makes Ctrl-C and SIGTERM end the recording cleanly. A launched program gets the first one, from the
// terminal itself or passed on, and the recording ends with it; the second one ends the recording alone.
func catchSignals(ro *recorder.Options, stop chan struct{}) (undo func()) {
	sigs := make(chan os.Signal, 4)
	kill := make(chan os.Signal, 4)
	ro.Kill = kill
	signal.Notify(sigs, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	attached := len(ro.Command) == 0
	go func() {
		stopped := false
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-sigs:
				if attached || n > 0 {
					if !stopped {
						stopped = true
						close(stop)
					}
					continue
				}
				if s != syscall.SIGINT || !inForeground() {
					kill <- s
				}
			}
		}
	}()
	return func() {
		signal.Stop(sigs)
		close(done)
	}
}

// inForeground reports whether a terminal's Ctrl-C goes to this process's group, and so to the program launched from it.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
