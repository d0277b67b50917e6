package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build makes, below dir, what a guest's /test holds: a test binary for each run, braid and the programs of its tests.
func build(dir string) error {
	b := builder{dir: dir}
	b.mkdir("arm64", "arm", "probes", "braid-arm64", "braid-arm", "keep")
	made := map[string]string{}
	for _, r := range runs {
		if made[r.pkg] == "" {
			made[r.pkg] = binaryOf(r.pkg)
			b.command([]string{"GOARCH=arm64"}, "go", "test", "-tags", tags, "-ldflags=-s -w", "-c", "-o", filepath.Join(dir, made[r.pkg]), "./"+r.pkg)
		}
	}
	const cross = "aarch64-linux-gnu-"
	for _, p := range []struct{ name, source, flags string }{
		{"target", "bpf/testdata/target.c", "-O1"},
		{"binder", "bpf/testdata/binder.c", "-O1"},
		{"chains", "internal/sample/testdata/chains.c", "-O2 -fomit-frame-pointer"},
		{"chains-fp", "internal/sample/testdata/chains.c", "-O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer"},
	} {
		b.command(nil, append([]string{cross + "gcc", "-static", "-pthread", "-o", filepath.Join(dir, "arm64", p.name), p.source},
			strings.Fields(p.flags)...)...)
	}
	b.command(nil, "arm-linux-gnueabihf-gcc", "-O1", "-static", "-pthread", "-o", filepath.Join(dir, "arm/target"), "bpf/testdata/target.c")
	host := filepath.Join(dir, "keep/braid")
	b.command(nil, "go", "build", "-o", host, "./cmd/braid")
	probe := []string{cross + "g++", "-O2", "-static", "-pthread", "bpf/testdata/probe.cc", "-o"}
	b.command(nil, append(probe, filepath.Join(dir, "probes/plain"))...)
	b.command(nil, append(append([]string{host, "cc"}, probe...), filepath.Join(dir, "probes/traced"))...)
	b.command([]string{"GOARCH=arm64"}, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "braid-arm64/braid"), "./cmd/braid")
	b.command(nil, "sh", "-c", `truncate -s 128M "$1" && PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F "$1" && gzip -1 "$1"`, "sh", filepath.Join(dir, "disk"))
	b.command([]string{"BRAID_TEST_KEEP=" + filepath.Join(dir, "keep")}, "go", "test", "-count=1", "-run=^TestBuildForOtherProcessors$", "./cmd/braid")
	for _, arch := range []string{"arm64", "arm"} {
		programs, err := filepath.Glob(filepath.Join(dir, "keep", arch, "*"))
		if err != nil || len(programs) == 0 {
			b.fail(fmt.Errorf("no programs for %s: %w", arch, err))
		}
		for _, p := range programs {
			b.rename(p, filepath.Join(dir, "braid-"+arch, filepath.Base(p)))
		}
	}
	if b.err == nil {
		b.fail(os.RemoveAll(filepath.Join(dir, "keep")))
	}
	return b.err
}

// binaryOf names a package's test binary.
func binaryOf(pkg string) string { return strings.ReplaceAll(pkg, "/", "-") + ".test" }

// builder keeps the first error.
type builder struct {
	dir string
	err error
}

func (b *builder) fail(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}

func (b *builder) mkdir(names ...string) {
	for _, name := range names {
		b.fail(os.MkdirAll(filepath.Join(b.dir, name), 0o755))
	}
}

func (b *builder) rename(from, to string) {
	if b.err == nil {
		b.fail(os.Rename(from, to))
	}
}

func (b *builder) command(env []string, args ...string) {
	if b.err != nil {
		return
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := c.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
}
