package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// native is the kernel that this runs on.
const native = "native"

// The marks that a guest's script writes between what the tests print.
const (
	markRun   = "=== kernels: run "
	markFiles = "=== kernels: files"
	markEnd   = "=== kernels: end"
)

// wanted returns the tests of each run, in the order of runs.
func (c choice) wanted() map[string][]string {
	tests := map[string][]string{}
	for _, f := range c.features() {
		for _, name := range f.tests {
			if !slices.Contains(tests[f.run], name) {
				tests[f.run] = append(tests[f.run], name)
			}
		}
	}
	return tests
}

func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// boots returns the runs of each boot of a guest that have tests.
func (c choice) boots() (groups [][]run) {
	var usual, own []run
	for _, r := range runs {
		switch {
		case len(c.wanted()[r.name]) == 0:
		case r.ownTime:
			own = append(own, r)
		default:
			usual = append(usual, r)
		}
	}
	for _, g := range [][]run{usual, own} {
		if len(g) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// inGuest runs the tests under a kernel and returns what they printed. Files that they left are in dir.
func (d *driver) inGuest(kernel, dir string, log io.Writer) (string, error) {
	var all strings.Builder
	for _, group := range d.choice.boots() {
		text, err := d.boot(kernel, dir, group, log)
		all.WriteString(text)
		if err != nil {
			return all.String(), err
		}
	}
	return all.String(), nil
}

func (d *driver) boot(kernel, dir string, group []run, log io.Writer) (string, error) {
	script := filepath.Join(dir, "run")
	if err := os.WriteFile(script, []byte(d.choice.script(group)), 0o600); err != nil {
		return "", err
	}
	args := []string{"arm64", kernel, "--seconds", "1500", "--file", filepath.Join(dir, "..", "test") + ":/test", "--file", script + ":/run-tests"}
	if group[0].ownTime {
		args = append(args, "--own-time")
	}
	for _, m := range modules {
		args = append(args, "--module", m)
	}
	var out bytes.Buffer
	c := exec.CommandContext(d.ctx, d.guest, append(args, "--", "sh", "/run-tests")...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // its emulator goes with it
	c.WaitDelay = 10 * time.Second
	c.Stdout, c.Stderr = io.MultiWriter(&out, log), log
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("the guest: %w", err)
	}
	text, files, ok := strings.Cut(out.String(), markFiles+"\n")
	files, _, ended := strings.Cut(files, markEnd)
	if !ok || !ended {
		return text, errors.New("the guest's script did not come to its end")
	}
	return text, unpack(files, filepath.Join(dir, "perfetto"))
}

// script is what the guest's shell does.
func (c choice) script(group []run) string {
	var script strings.Builder
	script.WriteString(prepare)
	for _, r := range group {
		fmt.Fprintf(&script, "echo '%s%s'\n%s /test/%s -test.v -test.timeout 15m -test.run '%s'\n", markRun, r.name,
			strings.Join(r.env, " "), binaryOf(r.pkg), pattern(c.wanted()[r.name]))
	}
	// Through the serial port, which is slow: packed.
	fmt.Fprintf(&script, "echo '%s'\ntar -c -C /tmp/perfetto . | gzip | uuencode -m files\necho '%s'\n", markFiles, markEnd)
	return script.String()
}

// unpack takes a packed tar file out of what uuencode made of it: some of the kernels' busybox have no base64.
func unpack(text, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, text, _ = strings.Cut(text, "\n") // begin-base64
	text, _, _ = strings.Cut(text, "====")
	packed, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	if err != nil {
		return fmt.Errorf("the guest's files: %w", err)
	}
	c := exec.Command("tar", "-xz", "-C", dir)
	c.Stdin = bytes.NewReader(packed)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("the guest's files: %w\n%s", err, out)
	}
	return nil
}

// here runs the same tests on this machine.
func (d *driver) here(log io.Writer) (string, error) {
	var all bytes.Buffer
	for _, r := range runs {
		tests := d.choice.wanted()[r.name]
		if r.guest || len(tests) == 0 {
			continue
		}
		fmt.Fprintf(&all, "%s%s\n", markRun, r.name)
		c := exec.CommandContext(d.ctx, "go", "test", "-count=1", "-v", "-run", pattern(tests), "./"+r.pkg)
		c.Stdout, c.Stderr = io.MultiWriter(&all, log), log
		var failed *exec.ExitError // told by the tests' lines
		if err := c.Run(); err != nil && !errors.As(err, &failed) {
			return "", err
		}
	}
	return all.String(), nil
}

// imported checks here what braid exported there.
func (d *driver) imported(dir string, log io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "perfetto", "*.pftrace"))
	if err != nil || len(files) == 0 {
		return err // the tests that were tried export nothing
	}
	c := exec.CommandContext(d.ctx, "go", "test", "-count=1", "-v", "-run", "^TestPerfettoFromElsewhere$", "./cmd/braid")
	c.Env = append(os.Environ(), "BRAID_TEST_PERFETTO="+filepath.Join(dir, "perfetto"))
	c.Stdout, c.Stderr = log, log
	if err := c.Run(); err != nil {
		return fmt.Errorf("what the guest exported for Perfetto: %w", err)
	}
	return nil
}
