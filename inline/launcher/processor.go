package launcher

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// processor is the processor that the compiler makes code for with these arguments, in Go's names, or "" and why
// there are no stubs for it.
func (c *compiler) processor(cl *commandLine) (arch, why string) {
	triple := c.target
	if cl.target != "" {
		triple = cl.target
	}
	arch, why = tripleArch(triple)
	switch {
	case why != "":
		return "", why
	case cl.otherABI:
		return "", "no stubs for this ABI"
	case arch == "arm":
		return c.armProfile(cl)
	}
	return arch, ""
}

// tripleArch reads a target triple. The empty triple is the machine that this runs on.
func tripleArch(triple string) (arch, why string) {
	if triple == "" {
		return runtime.GOARCH, ""
	}
	first, rest, _ := strings.Cut(triple, "-")
	switch {
	case first == "x86_64" || first == "amd64":
		arch = "amd64"
	case first == "aarch64" || first == "arm64":
		arch = "arm64"
	case strings.HasPrefix(first, "arm") || strings.HasPrefix(first, "thumb"):
		if !strings.HasPrefix(first, "arm64") && !strings.HasPrefix(first, "armeb") && !strings.HasPrefix(first, "thumbeb") {
			arch = "arm"
		}
	}
	switch {
	case arch == "":
		return "", "no stubs for this processor"
	case !strings.Contains(rest, "linux"): // bare metal, Windows, Darwin: other thread-local storage, other objects
		return "", "no stubs for this system"
	case strings.Contains(rest, "gnux32"), strings.Contains(rest, "ilp32"):
		return "", "no stubs for this ABI"
	}
	return arch, ""
}

// leastLDREX are the bits of __ARM_FEATURE_LDREX for words and double words (ARM C language extensions, 5.5.4).
const leastLDREX = 4 | 8

// armProfile asks the compiler which 32-bit processor it is set up for, since neither its name nor the options say
// what it was configured with: Debian's armhf is ARMv7, Raspbian's of the same name ARMv6. The stubs need ARMv7's movw
// and ldrexd, so no older ones and none of the M profile.
func (c *compiler) armProfile(cl *commandLine) (arch, why string) {
	last := c.command[len(c.command)-1]
	words := append(append([]string{}, cl.machine...), "-dM", "-E", "-x", "c", "/dev/null")
	out, err := exec.Command(last, words...).Output()
	if err != nil {
		return "", "the compiler does not say which ARM processor it is for"
	}
	macros := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "#define" {
			macros[f[1]] = f[2]
		}
	}
	number := func(name string) int {
		n, _ := strconv.ParseInt(macros[name], 0, 32)
		return int(n)
	}
	profile := macros["__ARM_ARCH_PROFILE"] // gcc gives the character's code
	_, bigEndian := macros["__ARMEB__"]
	switch {
	case number("__ARM_ARCH") < 7, profile == "'M'", profile == strconv.Itoa('M'),
		number("__ARM_FEATURE_LDREX")&leastLDREX != leastLDREX:
		return "", "no stubs for ARM processors before ARMv7-A"
	case macros["__ARM_EABI__"] == "", bigEndian, macros["__ARM_32BIT_STATE"] == "":
		return "", "no stubs for this ABI"
	}
	return "arm", ""
}
