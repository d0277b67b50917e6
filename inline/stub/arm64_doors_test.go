package stub

import (
	"io"
	"strings"
	"testing"
)

// TestArm64Doors records through other doors than the thread-local variable, and compares what was recorded.
func TestArm64Doors(t *testing.T) {
	for _, tc := range []toolchain{arm64GCCs, arm64Clangs} {
		flags := []string{"-O2", "-fno-pic", "-no-pie", "-ffixed-x28", "-Dmain=program"}
		want := ""
		for _, door := range []struct{ block, ring string }{{"", "-DRING_MAIN"}, {"slot:2", "-DRING_WORD=2"}, {"reg:x28+24", "-DRING_WORD=3"}} {
			ring := tc.ring(t, door.ring, "-fno-pic", "-ffixed-x28")
			bin, _ := tc.build(t, Options{Block: door.block}, "constructs.c", []string{ring, "-lm"}, flags...)
			_, slots := tc.recorded(t, bin)
			got := tree(t, slots, functions(t, bin))
			if want == "" {
				want = got
			}
			if got != want || !strings.Contains(got, "thrower!") {
				t.Errorf("%s, %q:\n%s\nwant\n%s", tc.compiler, door.block, got, want)
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
