package address

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"braid/symbols"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct {
		arch       string
		bits       int
		addr, want uint64
	}{
		{"arm64", 48, 0x0000_7fff_1234_5678, 0x0000_7fff_1234_5678},
		{"arm64", 48, 0xb400_7fff_1234_5678, 0x0000_7fff_1234_5678}, // Android's tag of heap pointers
		{"arm64", 48, 0x0f00_7fff_1234_5678, 0x0000_7fff_1234_5678}, // MTE
		{"arm64", 48, 0x0035_aaaa_bbbb_cccc, 0x0000_aaaa_bbbb_cccc}, // signed, where the top byte is ignored
		{"arm64", 48, 0x7f7f_aaaa_bbbb_cccc, 0x0000_aaaa_bbbb_cccc}, // signed and tagged
		{"arm64", 39, 0x003c_92fa_bbbb_cccc, 0x0000_007a_bbbb_cccc}, // signed on Android: from bit 39 on
		{"arm64", 39, 0x0000_007a_bbbb_cccc, 0x0000_007a_bbbb_cccc},
		{"arm64", 52, 0x0057_aaaa_bbbb_cccc, 0x0007_aaaa_bbbb_cccc},
		{"arm64", 52, 0x000f_ffff_ffff_fffc, 0x000f_ffff_ffff_fffc},
		{"arm64", 42, 0x0020_03ff_0000_0000, 0x0000_03ff_0000_0000},
		{"arm64", 0, 0x0035_aaaa_bbbb_cccc, 0x0000_aaaa_bbbb_cccc},
		{"arm64", 48, 0xffff_8000_1234_5678, 0xffff_8000_1234_5678}, // the kernel's
		{"arm64", 48, 0x5bb5_8000_1234_5678, 0xffff_8000_1234_5678}, // the same, signed
		{"arm64", 39, 0xffff_ffc0_1234_5678, 0xffff_ffc0_1234_5678},
		{"arm64", 39, 0x12b4_56c0_1234_5678, 0xffff_ffc0_1234_5678},
		{"arm64", 48, 0, 0},
		{"amd64", 0, 0x0000_7fff_1234_5678, 0x0000_7fff_1234_5678},
		{"amd64", 0, 0x7e00_7fff_1234_5678, 0x0000_7fff_1234_5678}, // LAM_U57
		{"amd64", 0, 0x00ff_7fff_1234_5678, 0x00ff_7fff_1234_5678}, // five levels of tables
		{"amd64", 0, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_0000},
		{"arm", 0, 0xffff_0000, 0xffff_0000},
	} {
		if got := Strip(c.arch, c.bits, c.addr); got != c.want {
			t.Errorf("%s, %d bits: %#x becomes %#x, want %#x", c.arch, c.bits, c.addr, got, c.want)
		}
		if got := Strip(c.arch, c.bits, c.want); got != c.want {
			t.Errorf("%s, %d bits: the plain address %#x becomes %#x", c.arch, c.bits, c.want, got)
		}
	}
	for _, c := range []struct {
		arch       string
		addr, want uint64
		tag        uint8
	}{
		{"arm64", 0xb400_0079_1234_5678, 0x0000_0079_1234_5678, 0xb4},
		{"arm64", 0x0007_ffff_1234_5678, 0x0007_ffff_1234_5678, 0},
		{"arm64", 0xffff_8000_1234_5678, 0xffff_8000_1234_5678, 0},
		{"amd64", 0x7e00_7fff_1234_5678, 0x0000_7fff_1234_5678, 0},
	} {
		if got, tag := Untag(c.arch, c.addr), Tag(c.arch, c.addr); got != c.want || tag != c.tag {
			t.Errorf("%s %#x: address %#x, tag %#x, want %#x and %#x", c.arch, c.addr, got, tag, c.want, c.tag)
		}
	}
}

// TestBits checks that no address of this process has more bits than the machine's have.
func TestBits(t *testing.T) {
	n := Bits()
	if n != 39 && n != 42 && n != 47 && n != 48 && n != 52 {
		t.Errorf("%d bits", n)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	most := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var from, to uint64
		if _, err := fmt.Sscanf(sc.Text(), "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if from>>63 == 0 { // amd64's vsyscall page is the kernel's
			most = max(most, bits.Len64(to-1))
		}
	}
	t.Logf("%s: %d bits, the highest address here has %d", runtime.GOARCH, n, most)
	if most > n {
		t.Errorf("%d bits, and there is an address with %d", n, most)
	}
}

// TestSigned strips what a processor has signed and tagged: the return address of a program that was compiled so, as it lies
// on its stack, must be in the function that was called from.
func TestSigned(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "signed")
	build := exec.Command("aarch64-linux-gnu-gcc", "-O1", "-static", "-fno-omit-frame-pointer", "-mbranch-protection=standard",
		"-march=armv8.5-a+memtag", "-Wl,--build-id=none", "-Wall", "-Werror", "-o", bin, "testdata/signed.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	signatures := 0
	for range 4 { // keys are new for each process: one signature may be zero by chance
		out, err := exec.Command("qemu-aarch64", "-cpu", "max", bin).Output()
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]uint64{}
		for line := range strings.Lines(string(out)) {
			var what string
			var addr uint64
			if _, err := fmt.Sscanf(line, "%s 0x%x", &what, &addr); err != nil {
				t.Fatal(err)
			}
			said[what] = addr
		}
		signed := said["signed"]
		if signed>>48 != 0 {
			signatures++
		}
		table := symbols.NewTable([]symbols.Module{symbols.Registered(bin, 0, nil)}, symbols.Options{})
		s, ok := table.Lookup(Strip("arm64", 48, signed))
		if !ok || s.Name != "the_caller" {
			t.Errorf("return address %#x, stripped %#x, is in %q, want the_caller", signed, Strip("arm64", 48, signed), s.Name)
		}
		if signed>>48 != 0 {
			if s, ok := table.Lookup(signed); ok {
				t.Errorf("the signed address itself is in %q", s.Name)
			}
		}
		plain, tagged := said["plain"], said["tagged"]
		if Tag("arm64", tagged)&0xf == 0 || Strip("arm64", 48, tagged) != plain || Untag("arm64", tagged) != plain {
			t.Errorf("tagged pointer %#x to %#x: %#x without its tag %#x", tagged, plain, Untag("arm64", tagged), Tag("arm64", tagged))
		}
		if ignored := said["ignored"]; Untag("arm64", ignored) != plain || Tag("arm64", ignored) != 0xb4 {
			t.Errorf("pointer %#x to %#x: %#x", ignored, plain, Untag("arm64", ignored))
		}
	}
	if signatures == 0 {
		t.Error("no return address was signed")
	}
}
