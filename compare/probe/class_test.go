package probe

import (
	"encoding/hex"
	"strings"
	"testing"
)

var (
	linux510 = Version{5, 10}
	linux612 = Version{6, 12}
	linux618 = Version{6, 18}
)

// The classes that uprobes.c of Linux 6.18 and, before its changes, of 6.12 give to instructions.
func TestClassesOfX86(t *testing.T) {
	for _, test := range []struct {
		name, code string
		now, old   Class
	}{
		{"nop", "90", Emulated, Emulated},
		{"nop of 2 bytes", "6690", Emulated, Emulated},
		{"nop of 3 bytes", "0f1f00", Emulated, Stepped},
		{"nop of 4 bytes", "0f1f4000", Emulated, Stepped},
		{"nop of 5 bytes", "0f1f440000", Call, Stepped},
		{"the same with another address", "0f1f440800", Call, Stepped},
		{"nop of 5 bytes by prefixes", "6666666690", Call, Emulated},
		{"nop of 6 bytes", "660f1f440000", Emulated, Stepped},
		{"nop of 7 bytes", "0f1f8000000000", Emulated, Stepped},
		{"nop of 8 bytes", "0f1f840000000000", Emulated, Stepped},
		{"nop of 9 bytes", "660f1f840000000000", Stepped, Stepped},
		{"nop of 10 bytes", "662e0f1f840000000000", Refused, Refused},
		{"not quite a nop", "0f1f480000", Stepped, Stepped}, // reg is 1
		{"push rax", "50", Emulated, Emulated},
		{"push rbp", "55", Emulated, Emulated},
		{"push r12", "4154", Emulated, Emulated},
		{"push rbp, wide", "4855", Stepped, Stepped},
		{"push of a constant", "6a01", Stepped, Stepped},
		{"pop", "5d", Stepped, Stepped},
		{"jump, short", "eb05", Emulated, Emulated},
		{"jump", "e900000000", Emulated, Emulated},
		{"call", "e800000000", Emulated, Emulated},
		{"call with a prefix", "66e80000", Refused, Refused},
		{"branch, short", "7405", Emulated, Emulated},
		{"branch", "0f8405000000", Emulated, Emulated},
		{"loop", "e2fe", Stepped, Stepped},
		{"indirect jump", "ffe0", Stepped, Stepped},
		{"return", "c3", Stepped, Stepped},
		{"endbr64", "f30f1efa", Stepped, Stepped},
		{"mov", "4889f8", Stepped, Stepped},
		{"lea of the instruction pointer", "488d0500000000", Stepped, Stepped},
		{"system call", "0f05", Stepped, Stepped},
		{"breakpoint", "cc", Refused, Refused},
		{"hlt", "f4", Refused, Refused},
		{"locked", "f0830c2400", Refused, Refused},
		{"of a segment", "2e8b00", Refused, Refused},
		{"of thread's segment", "64488b042528000000", Stepped, Stepped},
		{"VEX of 2 bytes", "c5f858c0", Stepped, Stepped},
		{"VEX of 3 bytes", "c4e27918c0", Stepped, Stepped},
		{"VEX whose opcode alone is bad", "c5fa6f00", Refused, Refused},
		{"EVEX", "62f17c4858c0", Stepped, Stepped},
	} {
		code, err := hex.DecodeString(test.code)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, 0xcc, 0xcc, 0xcc) // what follows does not matter
		for kernel, want := range map[Version]Class{linux618: test.now, linux612: test.old} {
			if got, err := Classify("amd64", code, 0x401000, kernel); err != nil || got != want {
				t.Errorf("%s on %v: %q, %v, want %q", test.name, kernel, got, err, want)
			}
		}
	}
}

// No call is written across the end of a page.
func TestClassAtEndOfPage(t *testing.T) {
	code := []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}
	for address, want := range map[uint64]Class{0x401ffb: Call, 0x401ffc: Emulated, 0x401fff: Emulated, 0x402000: Call} {
		if got, err := Classify("amd64", code, address, linux618); err != nil || got != want {
			t.Errorf("at %#x: %q, %v, want %q", address, got, err, want)
		}
	}
}

func TestClassesOfArm64(t *testing.T) {
	for _, test := range []struct {
		name string
		word uint32
		now  Class
		old  Class
	}{
		{"nop", 0xd503201f, Emulated, Stepped},
		{"stp x29, x30, [sp, #-16]!", 0xa9bf7bfd, Stepped, Stepped},
		{"paciasp", 0xd503233f, Stepped, Stepped},
		{"autiasp", 0xd50323bf, Refused, Refused},
		{"bti c", 0xd503245f, Stepped, Stepped},
		{"yield", 0xd503203f, Refused, Refused},
		{"b", 0x14000002, Emulated, Emulated},
		{"bl", 0x94000002, Emulated, Emulated},
		{"b.eq", 0x54000040, Emulated, Emulated},
		{"cbz", 0xb4000040, Emulated, Emulated},
		{"cbnz", 0x35000040, Emulated, Emulated},
		{"tbz", 0x36000040, Emulated, Emulated},
		{"tbnz", 0xb7000040, Emulated, Emulated},
		{"adr", 0x10000000, Emulated, Emulated},
		{"adrp", 0xb0000000, Emulated, Emulated},
		{"br", 0xd61f0200, Emulated, Emulated},
		{"blr", 0xd63f0200, Emulated, Emulated},
		{"ret", 0xd65f03c0, Emulated, Emulated},
		{"retaa", 0xd65f0bff, Refused, Refused},
		{"braa", 0xd71f0a11, Refused, Refused},
		{"svc", 0xd4000001, Refused, Refused},
		{"brk", 0xd42000a0, Refused, Refused},
		{"mrs cntvct", 0xd53be040, Stepped, Stepped},
		{"mrs daif", 0xd53b4225, Refused, Refused},
		{"msr", 0xd51bd040, Refused, Refused},
		{"dmb", 0xd5033bbf, Stepped, Stepped},
		{"ldr of a literal", 0x58000040, Refused, Refused},
		{"ldrsw of a literal", 0x98000040, Refused, Refused},
		{"ldxr", 0xc85f7fe1, Refused, Refused},
		{"stlxr", 0xc801fc02, Refused, Refused},
		{"ldar", 0xc8dffc01, Stepped, Stepped},
		{"cpyfp", 0x19010440, Refused, Refused},
		{"mov", 0xaa0103e0, Stepped, Stepped},
		{"sub sp", 0xd10043ff, Stepped, Stepped},
		{"ldr", 0xf9400000, Stepped, Stepped},
	} {
		code := []byte{byte(test.word), byte(test.word >> 8), byte(test.word >> 16), byte(test.word >> 24), 0xff}
		for kernel, want := range map[Version]Class{linux618: test.now, linux612: test.old} {
			if got, err := Classify("arm64", code, 0x401000, kernel); err != nil || got != want {
				t.Errorf("%s on %v: %q, %v, want %q", test.name, kernel, got, err, want)
			}
		}
	}
}

func TestClassOfTooLittle(t *testing.T) {
	for goarch, codes := range map[string][]string{
		"amd64": {"", "66", "48", "0f", "0f1f", "c5", "c4e2"},
		"arm64": {"", "1f2003"},
		"arm":   {"00000000"},
	} {
		for _, c := range codes {
			code, _ := hex.DecodeString(c)
			if class, err := Classify(goarch, code, 0, linux618); err == nil {
				t.Errorf("%s %q is %q", goarch, c, class)
			}
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte{0x0f, 0x1f, 0x44, 0, 0}, uint64(0x401ffe))
	f.Add([]byte{0x66, 0x66, 0xc4, 0xe2}, uint64(0))
	f.Fuzz(func(t *testing.T, code []byte, address uint64) {
		for _, goarch := range []string{"amd64", "arm64"} {
			for _, kernel := range []Version{linux510, linux618} {
				class, err := Classify(goarch, code, address, kernel)
				if (class == "") != (err != nil) {
					t.Errorf("%s %x: %q, %v", goarch, code, class, err)
				}
				s := Site{Code: code, Address: address}
				if text := s.Text(goarch); text == "" && len(code) > 0 || strings.Contains(text, "\n") {
					t.Errorf("%s %x is %q", goarch, code, text)
				}
			}
		}
	})
}

func TestTexts(t *testing.T) {
	for _, test := range []struct{ goarch, code, want, class string }{
		{"amd64", "0f1f440000", "nopl (%rax,%rax)", "nop turned into a call"},
		{"amd64", "6666666690", "data16 data16 data16 data16 nop", "nop turned into a call"},
		{"amd64", "55", "push %rbp", "emulated push"},
		{"amd64", "f30f1efa", "endbr64", "single-stepped endbr64"},
		{"amd64", "4889f8", "mov %rdi,%rax", "single-stepped mov"},
		{"amd64", "c5fa6f00", "vmovdqu (%rax),%xmm0", "refused vmovdqu"},
		{"amd64", "0f01f9", "rdtscp", "single-stepped rdtscp"},
		{"amd64", "06aabbccdd", "06aabbcc", "refused 06aabbcc"},
		{"arm64", "1f2003d5", "nop", "emulated nop"},
		{"arm64", "fd7bbfa9", "stp x29, x30, [sp,#-16]!", "single-stepped stp"},
	} {
		code, _ := hex.DecodeString(test.code)
		s := Site{Code: code}
		class, err := Classify(test.goarch, code, 0, linux618)
		if text := s.Text(test.goarch); text != test.want || err != nil || class.Describe(text) != test.class {
			t.Errorf("%s: %q, %q, %v", test.code, text, class.Describe(text), err)
		}
	}
}

func TestVersions(t *testing.T) {
	for release, want := range map[string]Version{
		"6.18.44-fc-v657": {6, 18}, "5.10.0-30-arm64": {5, 10}, "6.1.0": {6, 1}, "5.15.148-android14-11-gabc": {5, 15}, "7.0": {7, 0}, "6.19-rc1": {6, 19},
	} {
		if got, err := parseVersion(release); err != nil || got != want {
			t.Errorf("%s: %v, %v", release, got, err)
		}
	}
	if v, err := parseVersion("linux"); err == nil {
		t.Errorf("a kernel has the version %v", v)
	}
	if v := (Version{6, 6}); !v.Since(5, 18) || !v.Since(6, 6) || v.Since(6, 7) || v.Since(7, 0) {
		t.Error("6.6 is in no place")
	}
}
