package stub

import (
	"io"
	"strings"
	"testing"
)

// TestDoors records through other doors than the thread-local variable, and compares what was recorded.
func TestDoors(t *testing.T) {
	for _, c := range []struct {
		tc             toolchain
		fixed          string
		slot, register string
	}{
		{arm64GCCs, "-ffixed-x28", "slot:2", "reg:x28+24"}, {arm64Clangs, "-ffixed-x28", "slot:2", "reg:x28+24"},
		{nativeGCC, "-ffixed-r15", "slot:10", "reg:r15+24"},
	} {
		want := ""
		for _, block := range []string{"", c.slot, c.register} {
			door := "-DRING_WORD"
			if block == "" {
				door = "-DRING_MAIN"
			}
			ring := c.tc.ring(t, door, "-fno-pic", c.fixed)
			bin, _ := c.tc.build(t, Options{Block: block}, "constructs.c", []string{ring, "-lm"}, "-O2", "-fno-pic", "-no-pie", c.fixed, "-Dmain=program")
			_, slots := c.tc.recorded(t, bin)
			got := tree(t, slots, functions(t, bin))
			if want == "" {
				want = got
			}
			if got != want || !strings.Contains(got, "thrower!") {
				t.Errorf("%s, %q:\n%s\nwant\n%s", c.tc.compiler, block, got, want)
			}
		}
	}
}

func TestDoorsThatDoNotExist(t *testing.T) {
	text := []byte("\t.text\n\t.addrsig\n")
	for arch, blocks := range map[string][]string{
		"amd64": {"slot", "slot:", "slot:-1", "slot:600", "slot:x", "reg:", "reg:rax", "reg:x19", "reg:rbx+4", "reg:rbx+", "word:1", "tls:1"},
		"arm64": {"slot:512", "reg:x0", "reg:x29", "reg:x19+12", "reg:x19+4096", "reg:r15"},
		"arm":   {"slot:2000", "reg:x19", "reg:r9+5000"},
	} {
		for _, block := range blocks {
			if _, err := Insert(io.Discard, text, Options{Arch: arch, Block: block}); err == nil {
				t.Errorf("%s: %q is accepted", arch, block)
			}
		}
	}
	for arch, blocks := range map[string][]string{"amd64": {"", "tls", "slot:2", "reg:r15+16"}, "arm64": {"", "tls", "slot:2", "reg:x19", "reg:x19+192"}} {
		for _, block := range blocks {
			if _, err := Insert(io.Discard, text, Options{Arch: arch, Block: block}); err != nil {
				t.Errorf("%s: %q: %v", arch, block, err)
			}
		}
	}
}
