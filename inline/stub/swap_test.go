package stub

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"braid/inline/runtime"
)

// TestSwap has a traced program change its own rings, under signals whose handler has trace points: no record is lost or
// twice there. It also calls all of braid.h.
func TestSwap(t *testing.T) {
	dir := t.TempDir()
	emulate := filepath.Join(dir, "emulate.o")
	command(t, "arm-linux-gnueabihf-gcc", "-O1", "-c", "-o", emulate, armEmulate)
	var headers []string
	for _, d := range []string{"../runtime/src", "../include"} {
		abs, err := filepath.Abs(d)
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, "-I"+abs)
	}
	for _, c := range []struct {
		tc   toolchain
		sets [][]string
		link []string
	}{
		{nativeGCC, [][]string{{"-O2"}, {"-O0", "-static"}}, nil},
		{nativeClang, [][]string{{"-O2"}}, nil},
		{arm64GCCs, [][]string{{"-O2", "-DSWAPS=40"}, {"-O2", "-fPIE", "-static-pie", "-DSWAPS=40"}}, nil},
		{armGCC, [][]string{{"-O2", "-marm", "-DSWAPS=40"}, {"-O2", "-mthumb", "-DSWAPS=40"}}, []string{emulate}},
	} {
		object, err := runtime.Object(c.tc.arch)
		if err != nil {
			t.Fatal(err)
		}
		rt := filepath.Join(dir, c.tc.arch+".o")
		if err := os.WriteFile(rt, object, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, flags := range c.sets {
			bin, r := c.tc.build(t, Options{}, "testdata/swap.c", append([]string{rt, "-pthread"}, c.link...), append(headers, flags...)...)
			if r.Entries != 4 {
				t.Errorf("%s %v: stubs in %d functions, want 4", c.tc.compiler, flags, r.Entries)
			}
			words := []string{bin}
			if c.tc.run != nil { // one instruction at a time, so that a signal can come between any two
				words = append(append(c.tc.run[:len(c.tc.run):len(c.tc.run)], "-singlestep"), bin)
			}
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil || string(out) != "all there\n" {
				t.Errorf("%s %v: %v\n%s", c.tc.compiler, flags, err, out)
			}
		}
	}
}
