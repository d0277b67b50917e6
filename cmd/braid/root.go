package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes. record ends with its target's instead, as a shell would report it.
const (
	exitOK      = 0
	exitFailure = 1 // something went wrong; stderr says what and what to do
	exitUsage   = 2 // the command line makes no sense
	exitDamaged = 3 // a trace file was damaged; what could be read was shown
)

// codeError carries an exit code. Its message, if any, is printed.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// usageError marks errors about the command line: they print the command's usage line.
func usageError(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

type streams struct {
	in       *os.File
	out, err io.Writer
	outFile  *os.File // what a launched program gets
	errFile  *os.File
}

func systemStreams() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, outFile: os.Stdout, errFile: os.Stderr}
}

// version is set by the release build; a plain build takes it from the module.
var version = ""

func versionString() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel " + s.Value[:12]
			}
		}
	}
	return "devel"
}

func newRoot(st streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "braid",
		Short: "Record a program's methods and what the kernel did to them, on one timeline",
		Long: `braid records what a program's methods did and what the kernel did to its
threads, on one timeline. Build with "braid cc", run under "braid record", look
with "braid report" or in Perfetto.`,
		Example: `  braid demo                                see it work
  braid cc gcc -O2 -o app app.c             build with trace stubs
  braid record -o app.braid -- ./app        record it
  braid report app.braid                    where did the time go?
  braid export app.braid -o app.pftrace     open in ui.perfetto.dev`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionString(),
	}
	root.SetOut(st.out)
	root.SetErr(st.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	root.AddCommand(newCC(st), newRecord(st), newReport(st), newExport(st), newDump(st), newDoctor(st), newDemo(st), newWatch(st), newCompare(st))
	root.AddCommand(newControl(st)...)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true // each says [options] itself
	}
	return root
}

// run executes one command line and returns the exit code.
func run(args []string, st streams) int {
	root := newRoot(st)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	code := exitFailure
	var ce *codeError
	if errors.As(err, &ce) {
		code = ce.code
	} else if cmd == root || strings.HasPrefix(err.Error(), "unknown command") {
		code = exitUsage
	}
	msg := err.Error()
	if msg == "" { // the exit code is the target's or the compiler's
		return code
	}
	fmt.Fprintf(st.err, "braid: %s\n", msg)
	if code == exitUsage {
		fmt.Fprintf(st.err, "usage: %s\nSee %s --help.\n", cmd.UseLine(), cmd.CommandPath())
	}
	return code
}
