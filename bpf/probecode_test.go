package bpf

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// disassembled is a line of objdump: an instruction, and where it goes if it jumps to a fixed address.
type disassembled struct {
	addr, target uint64
	bytes        []byte
	text         string
}

var objdumpLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$`)

// disassemble runs objdump over a file's .text.
func disassemble(t *testing.T, objdump, path string) (lines []disassembled) {
	t.Helper()
	out, err := exec.Command(objdump, "-d", "-w", "-z", "-j", ".text", path).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", objdump, path, err)
	}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		m := objdumpLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		d := disassembled{text: m[3]}
		d.addr, _ = strconv.ParseUint(m[1], 16, 64)
		for _, b := range strings.Fields(m[2]) {
			for i := len(b) - 2; i >= 0; i -= 2 { // arm64's is one little-endian word
				v, _ := strconv.ParseUint(b[i:i+2], 16, 8)
				d.bytes = append(d.bytes, byte(v))
			}
		}
		if fields := strings.Fields(d.text); len(fields) > 1 {
			for _, f := range fields[1:] {
				if v, err := strconv.ParseUint(strings.TrimPrefix(f, "0x"), 16, 64); err == nil {
					d.target = v
				}
			}
		}
		lines = append(lines, d)
	}
	return lines
}

var x86Jumps = regexp.MustCompile(`^((bnd|notrack|repz|data16|rex.W|cs|ds) )*(j[a-z]+(,pn|,pt)?|ret|loop[a-z]*)\b`)

// indirect tells *%rax and *0x8(%rax) from 26300 <*ABS*+0x9d700@plt>.
var indirect = regexp.MustCompile(`jmp\s+\*`)

// x86Kind says what objdump's text means for the flow of control.
func x86Kind(text string) (kind flowKind, known bool) {
	m := x86Jumps.FindStringSubmatch(text)
	switch {
	case m == nil:
		return flowOn, true
	case m[3] == "ret":
		return flowReturn, true
	case m[3] == "jmp" && indirect.MatchString(text):
		return flowIndirect, false // or a jump table's
	case m[3] == "jmp":
		return flowJump, true
	}
	return flowBranch, true
}

// TestX86Code compares the lengths and jumps of every instruction of the C and mathematical libraries, which have all
// that processors can do with vectors, with objdump. Other machines than amd64 do not have them.
func TestX86Code(t *testing.T) {
	paths, err := filepath.Glob("/lib/x86_64-linux-gnu/lib[cm].so.6")
	if err != nil || len(paths) != 2 && runtime.GOARCH == "amd64" {
		t.Fatalf("libraries %q, error %v", paths, err)
	}
	for _, path := range paths {
		bad, n := 0, 0
		for _, d := range disassemble(t, "objdump", path) {
			if strings.Contains(d.text, "(bad)") || strings.HasPrefix(d.text, ".byte") || bad > 10 {
				continue
			}
			if len(d.bytes) > 1 && d.bytes[0] == 0x9b {
				d.bytes = d.bytes[1:] // objdump takes the instruction wait and the next for one
			}
			n++
			f, size, err := x86Next(append(bytes.Clone(d.bytes), make([]byte, 16)...))
			kind, known := x86Kind(d.text)
			if err != nil || size != len(d.bytes) || known && f.kind != kind || !known && f.kind != flowOn && f.kind != kind {
				t.Errorf("%s: %x: %x %s: %d bytes, kind %d, error %v; want kind %d", path, d.addr, d.bytes, d.text, size, f.kind, err, kind)
				bad++
			} else if (kind == flowJump || kind == flowBranch) && d.addr+uint64(f.target) != d.target {
				t.Errorf("%s: %x: %s: to %x", path, d.addr, d.text, d.addr+uint64(f.target))
				bad++
			}
		}
		t.Logf("%s: %d instructions", path, n)
	}
}

// TestX86Cut checks that code which ends within an instruction is refused, whatever it is.
func TestX86Cut(t *testing.T) {
	for _, code := range [][]byte{
		{0xe9, 1, 2, 3, 4}, {0x0f, 0x84, 1, 2, 3, 4}, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 1},
		{0xc5, 0xf8, 0x77}, {0xc4, 0xe3, 0x7d, 0x18, 0xc1, 1}, {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 4},
	} {
		if _, n, err := x86Next(code); err != nil || n != len(code) {
			t.Errorf("%x: %d bytes, error %v", code, n, err)
		}
		for n := range code {
			if _, size, err := x86Next(code[:n]); err == nil {
				t.Errorf("%x: %d bytes of %d", code[:n], size, len(code))
			}
		}
	}
}

// FuzzX86Next checks that no bytes make it read beyond them or stand still.
func FuzzX86Next(f *testing.F) {
	f.Add([]byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 1})
	f.Add([]byte{0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, n, err := x86Next(b); err == nil && (n < 1 || n > len(b) || n > 15) {
			t.Errorf("%x: %d bytes", b, n)
		}
	})
}

// TestArm64Places compares the places found in code for arm64 with objdump.
func TestArm64Places(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probe")
	cmd := exec.Command("aarch64-linux-gnu-g++", "-O2", "-static", "-pthread", "-o", path, "testdata/probe.cc")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	lines := disassemble(t, "aarch64-linux-gnu-objdump", path)
	for _, d := range lines {
		f, _, err := arm64Next(d.bytes)
		if err != nil {
			t.Fatal(err)
		}
		op, _, _ := strings.Cut(d.text, "\t")
		want := flowOn
		switch {
		case op == "ret" || op == "retaa" || op == "retab":
			want = flowReturn
		case op == "br" || strings.HasPrefix(op, "bra"):
			want = flowIndirect
		case op == "b":
			want = flowJump
		case strings.HasPrefix(op, "b.") || op == "cbz" || op == "cbnz" || op == "tbz" || op == "tbnz":
			want = flowBranch
		}
		if f.kind != want {
			t.Errorf("%x: %s: kind %d, want %d", d.addr, d.text, f.kind, want)
		}
		if (want == flowJump || want == flowBranch) && !strings.Contains(d.text, fmt.Sprintf("%x <", d.addr+uint64(f.target))) {
			t.Errorf("%x: %s: to %x", d.addr, d.text, d.addr+uint64(f.target))
		}
	}
	if len(lines) < 10_000 {
		t.Errorf("%d instructions", len(lines))
	}
	for name, want := range map[string]int{"method": 2, "tail": 2} {
		places, err := findPlaces(methodOf(t, path, name), elf.EM_AARCH64)
		if err != nil || len(places.ends) < want {
			t.Errorf("%s ends at %x, error %v; want %d places", name, places.ends, err, want)
		}
	}
	if _, err := findPlaces(methodOf(t, path, "tail"), elf.EM_X86_64); err == nil || !strings.Contains(err.Error(), "EM_AARCH64") {
		t.Errorf("another processor's program: %v", err)
	}
}
