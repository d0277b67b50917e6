package stub

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// toolchain compiles, links and runs for one processor.
type toolchain struct {
	arch     string
	compiler []string // and what it always gets
	run      []string
}

var (
	nativeGCC   = toolchain{"amd64", []string{"gcc"}, nil}
	nativeClang = toolchain{"amd64", []string{"clang-19"}, nil}
	arm64GCCs   = toolchain{"arm64", []string{"aarch64-linux-gnu-gcc"}, []string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}}
	arm64Clangs = toolchain{"arm64", []string{"clang-19", "--target=aarch64-linux-gnu"}, arm64GCCs.run}
)

// lastLevels are the levels that the tests under an emulator do without the others.
var lastLevels = []string{"-O0", "-O2"}

func testLevels() []string {
	if os.Getenv("BRAID_TEST_PROGRAMS") != "" {
		return levels
	}
	return lastLevels
}

func (tc toolchain) gcc() bool { return !strings.HasPrefix(tc.compiler[0], "clang") }

func command(t *testing.T, words ...string) string {
	t.Helper()
	var errs bytes.Buffer
	c := exec.Command(words[0], words[1:]...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, errs.Bytes())
	}
	return string(out)
}

// build compiles one source file with stubs, links it with more, and returns the program's path.
func (tc toolchain) build(t *testing.T, o Options, source string, link []string, flags ...string) (string, Result) {
	t.Helper()
	dir := t.TempDir()
	src, plain, s, bin := filepath.Join(dir, "a"+filepath.Ext(source)), filepath.Join(dir, "plain.s"), filepath.Join(dir, "a.s"), filepath.Join(dir, "a")
	text := []byte(constructs)
	if _, err := os.Stat(source); err == nil {
		if text, err = os.ReadFile(source); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(src, text, 0o600); err != nil {
		t.Fatal(err)
	}
	words := append(append([]string{}, tc.compiler...), "-w", "-S", "-o", plain, src)
	if tc.gcc() {
		words = append(words, "-dp", "-fno-ipa-ra")
	} else {
		words = append(words, "-fno-integrated-as")
	}
	command(t, append(words, flags...)...)
	asm, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	o.Arch = tc.arch
	r, err := Insert(&b, asm, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	words = append(append([]string{}, tc.compiler...), "-w", "-o", bin, s)
	command(t, append(append(words, flags...), link...)...)
	return bin, r
}

// cxx is the same toolchain for C++.
func (tc toolchain) cxx() toolchain {
	c := append([]string{}, tc.compiler...)
	c[0] = strings.NewReplacer("gcc", "g++", "clang-19", "clang++-19").Replace(c[0])
	tc.compiler = c
	return tc
}

var arm64Modes = [][]string{
	{"-fPIE", "-pie"}, {"-fno-pic", "-no-pie", "-static"}, {"-fPIC", "-fno-plt"}, {"-mbranch-protection=standard"},
	{"-mbranch-protection=pac-ret+leaf+b-key", "-march=armv8.3-a"}, {"-mharden-sls=all", "-static"}, {"-fpatchable-function-entry=4,2"},
}

// TestArm64WithoutRuntime links stubs with no runtime at all.
func TestArm64WithoutRuntime(t *testing.T) {
	for _, tc := range []toolchain{arm64GCCs, arm64Clangs} {
		for _, block := range []string{"", "slot:2"} { // word 2 is within glibc's descriptor of the thread, not used by glibc
			for _, level := range testLevels() {
				for k, mode := range arm64Modes {
					if level != "-O2" && (block != "" || k > 0 && os.Getenv("BRAID_TEST_PROGRAMS") == "") {
						continue
					}
					flags := append([]string{level}, mode...)
					if tc.gcc() {
						flags = append(flags, "-DNESTED")
					}
					bin, r := tc.build(t, Options{Block: block}, "constructs.c", []string{"-lm"}, flags...)
					if len(r.Skipped) > 0 || r.Entries < 25 || r.Exits < r.Entries-3 || r.Resumes < 1 {
						t.Errorf("%s %v: %+v", tc.compiler, flags, r)
					}
					if block == "" {
						command(t, append(tc.run, bin)...)
					}
				}
			}
		}
	}
}

// recorded runs a program that is linked with testdata/ring.c, and returns what it printed and its ring.
func (tc toolchain) recorded(t *testing.T, bin string, run ...string) (string, []uint64) {
	t.Helper()
	var errs bytes.Buffer
	words := append(append(append([]string{}, tc.run...), run...), bin)
	c := exec.Command(words[0], words[1:]...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%.2000s", words, err, errs.Bytes())
	}
	var ring []uint64
	var n, done int
	for l := range strings.Lines(errs.String()) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "ring ") {
			if _, err := fmt.Sscanf(l, "ring %d %d", &n, &done); err != nil {
				t.Fatal(err)
			}
			continue
		}
		v, err := strconv.ParseUint(l, 16, 64)
		if err != nil {
			t.Fatalf("%q", l)
		}
		ring = append(ring, v)
	}
	if n == 0 || len(ring) != n || done != n-1 {
		t.Fatalf("%d slots of %d, the last that is written is %d", len(ring), n, done)
	}
	return string(out), ring
}

// functions are a program's symbols by the low half of their addresses. What compilers append to a name is taken off.
func functions(t *testing.T, bin string) map[uint32]string {
	t.Helper()
	names := map[uint32]string{}
	for l := range strings.Lines(command(t, "llvm-nm-19", bin)) {
		f := strings.Fields(l)
		if len(f) != 3 || !strings.EqualFold(f[1], "t") && !strings.EqualFold(f[1], "w") || f[2][0] == '$' {
			continue
		}
		at, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(f[2], ".")
		if old := names[uint32(at)]; old == "" || name < old { // C2 and C1 of one constructor are one address
			names[uint32(at)] = name
		}
	}
	return names
}

// tree writes a ring's calls as text, one a line, indented by depth; what was left without an exit ends in "!".
func tree(t *testing.T, ring []uint64, names map[uint32]string) string {
	t.Helper()
	type frame struct {
		method, sp uint32
		line       int
	}
	var open []frame
	var lines []string
	enter := func(method, sp uint32) {
		name := names[method]
		if name == "" {
			t.Fatalf("no function at %#x\n%s", method, strings.Join(lines, "\n"))
		}
		lines = append(lines, strings.Repeat("  ", len(open))+name)
		open = append(open, frame{method, sp, len(lines) - 1})
	}
	for k := 0; k < len(ring); k++ {
		low := uint32(ring[k])
		if k+1 < len(ring) {
			method, sp := low, uint32(ring[k]>>32)
			switch uint32(ring[k+1]) {
			case wordEntryFramed:
				enter(method, sp)
				k++
				continue
			case wordResumedFramed:
				to := -1
				for i, f := range open {
					if f.method == method && f.sp-sp < 1<<31 && (to < 0 || f.sp-sp <= open[to].sp-sp) {
						to = i
					}
				}
				if to < 0 {
					t.Fatalf("control comes back to %s, which is not open:\n%s", names[method], strings.Join(lines, "\n"))
				}
				for _, f := range open[to+1:] {
					lines[f.line] += "!"
				}
				open = open[:to+1]
				k++
				continue
			}
		}
		switch {
		case low == wordExit:
			if len(open) == 0 {
				t.Fatalf("an exit too many:\n%s", strings.Join(lines, "\n"))
			}
			open = open[:len(open)-1]
		case low < 16:
			t.Fatalf("slot %d is %#x", k, ring[k])
		default:
			enter(low, 0)
		}
	}
	if len(open) != 0 {
		t.Errorf("%d functions are open at the end", len(open))
	}
	return strings.Join(lines, "\n")
}

// withoutSix leaves out a tail call that amd64 can't make, because two of its arguments are on the stack there.
func withoutSix(tree string) string {
	return strings.NewReplacer("  sixtail\n", "", "    six\n", "", "  six\n", "").Replace(tree)
}

func (tc toolchain) ring(t *testing.T, flags ...string) string {
	t.Helper()
	o := filepath.Join(t.TempDir(), "ring.o")
	command(t, append(append(append([]string{}, tc.compiler...), "-O1", "-c", "-o", o, "testdata/ring.c"), flags...)...)
	return o
}

// TestArm64Trees compares what a program records with what the same program records on amd64.
func TestArm64Trees(t *testing.T) {
	for _, c := range []struct{ native, cross toolchain }{{nativeGCC, arm64GCCs}, {nativeClang, arm64Clangs}} {
		for _, source := range []string{"constructs.c", "testdata/throws.cc"} {
			native, cross := c.native, c.cross
			nativeRing, crossRing := native.ring(t), cross.ring(t)
			if source != "constructs.c" {
				native, cross = native.cxx(), cross.cxx()
			}
			for _, level := range testLevels() {
				flags := []string{level, "-static", "-fno-pic", "-no-pie"}
				if c.native.gcc() && source == "constructs.c" {
					flags = append(flags, "-DNESTED")
				}
				bin, _ := native.build(t, Options{}, source, []string{nativeRing, "-lm"}, flags...)
				_, ring := native.recorded(t, bin)
				want := withoutSix(tree(t, ring, functions(t, bin)))
				for _, mode := range []string{"-mbranch-protection=none", "-mbranch-protection=standard"} {
					bin, _ = cross.build(t, Options{}, source, []string{crossRing, "-lm"}, append(flags, mode)...)
					_, ring = cross.recorded(t, bin)
					if got := withoutSix(tree(t, ring, functions(t, bin))); got != want {
						t.Errorf("%s %s %v:\n%s\non amd64:\n%s", cross.compiler, source, append(flags, mode), got, want)
					}
				}
			}
		}
	}
}

// TestArm64Signals interrupts stubs by a traced handler. The emulator runs one instruction at a time, so that a signal can
// come between any two.
func TestArm64Signals(t *testing.T) {
	for _, tc := range []toolchain{arm64GCCs, arm64Clangs} {
		bin, _ := tc.build(t, Options{}, "testdata/handler.c", []string{tc.ring(t, "-DRING_SLOTS=(1ul<<22)")}, "-O2", "-static", "-fno-pic", "-no-pie")
		out, ring := tc.recorded(t, bin, "-singlestep")
		var calls, handled int
		if _, err := fmt.Sscan(out, &calls, &handled); err != nil {
			t.Fatal(err)
		}
		text := tree(t, ring, functions(t, bin))
		count := map[string]int{}
		for l := range strings.Lines(text) {
			count[strings.TrimSpace(l)]++
		}
		if count["leaf"] != calls || count["handler"] < handled || count["inside"] != count["handler"] || handled < 100 {
			t.Errorf("%s: %d calls, %d signals: recorded %v", tc.compiler, calls, handled, count)
		}
		back := 0
		for k := 1; k < len(ring); k++ {
			if int32(uint32(ring[k]>>32)-uint32(ring[k-1]>>32)) < 0 {
				back++
			}
		}
		t.Logf("%s: %d calls, %d signals, %d steps back in time", tc.compiler, calls, handled, back)
	}
}
