package constructs

import (
	"path/filepath"
	"strings"
	"testing"
)

// optionSets change how compilers make functions, or what stands beside the stubs. A compiler's name in front limits a
// set to that one.
var optionSets = []string{
	"-ffunction-sections -fdata-sections -Wl,--gc-sections", "-fPIC", "-fPIE -pie", "-fno-pic -no-pie", "-fno-plt",
	"-static", "-static-pie -fPIE", "-fcf-protection=full", "-fcf-protection=none",
	"-fstack-protector-all", "-fstack-clash-protection", "-mno-red-zone", "-mcmodel=large -fno-pic -no-pie", "-mcmodel=large -fPIC",
	"-mcmodel=medium", "-masm=intel", "-fomit-frame-pointer", "-fno-omit-frame-pointer", "-fpatchable-function-entry=5",
	"gcc -fpatchable-function-entry=5,2", "-pg", "-pg -mfentry", "gcc -pg -mfentry -mrecord-mcount -fno-pic -no-pie",
	"-finstrument-functions", "-fsanitize=address", "-fsanitize=undefined", "-fsanitize=thread", "-fsanitize=leak",
	"-fsanitize=address,undefined -fno-omit-frame-pointer", "--coverage", "-fprofile-generate", "gcc -flto", "gcc -flto -ffat-lto-objects",
	"-g", "-g3 -gdwarf-4", "-g -gsplit-dwarf", "-fno-asynchronous-unwind-tables", "gcc -fno-dwarf2-cfi-asm", "-fverbose-asm",
	"clang -fno-verbose-asm", "clang -fno-integrated-as", "-march=native", "-fexceptions",
	"gcc -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none", "clang -mretpoline", "clang -mspeculative-load-hardening",
	"clang -mlvi-hardening", "gcc -mharden-sls=all", "gcc -fzero-call-used-regs=all", "-falign-functions=64", "-fno-jump-tables",
	"gcc -fno-toplevel-reorder", "gcc -fwhole-program", "-save-temps", "-pipe", "gcc -fipa-ra", "gcc -dA", "gcc -dp", "gcc -dP -fverbose-asm",
	"-fno-ident", "gcc -mtls-dialect=gnu2 -fPIC", "gcc -fno-section-anchors -fcommon", "-fno-optimize-sibling-calls", "-fwrapv -ftrapv",
	"gcc -mstackrealign -mincoming-stack-boundary=4", "-fvisibility=hidden", "gcc -freorder-blocks-algorithm=simple -fno-reorder-functions",
	"gcc -fsanitize=address -static-libasan", "clang -moutline", "clang -fbasic-block-sections=all", "gcc -fno-stack-check -fstack-usage",
	"clang -fxray-instrument -fxray-instruction-threshold=1", "clang -mllvm -hot-cold-split=true", "gcc -fopenmp", "clang -fprofile-instr-generate -fcoverage-mapping",
	"clang -fsanitize-coverage=trace-pc-guard -fsanitize=undefined",
}

// TestOptions builds a program of C and one of C++ with each set of options.
func TestOptions(t *testing.T) {
	for _, file := range []string{"options.c", "options.cc"} {
		s, err := readSpec(filepath.Join("testdata", "parts", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range optionSets {
			words := strings.Fields(set)
			compilers := []string{"gcc", "clang"}
			if words[0] == "gcc" || words[0] == "clang" {
				compilers, words = words[:1], words[1:]
			}
			for _, cc := range compilers {
				for _, level := range levels() {
					if !everything() && (level == "-O0" || s.plus()) {
						continue
					}
					c := setting{cc, level, words}
					t.Run(file+" "+c.String(), func(t *testing.T) {
						t.Parallel()
						check(t, s, c)
					})
				}
			}
		}
	}
}
