package probe

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Class is how the kernel goes on after a probe's program has run: what it does in place of the instruction that it put
// the breakpoint on. It decides what a probe costs.
type Class string

// The classes.
const (
	Call     Class = "call"     // the instruction becomes a call to a page of the kernel's: no breakpoint from the second time on
	Emulated Class = "emulated" // a breakpoint; the kernel itself does what the instruction does
	Stepped  Class = "stepped"  // a breakpoint; a copy of the instruction runs alone, which ends with a second exception
	Refused  Class = "refused"  // the kernel takes no probe there
)

// Text says in words what the class means.
func (c Class) Text() string {
	switch c {
	case Call:
		return "turned into a call"
	case Emulated:
		return "emulated"
	case Stepped:
		return "single-stepped"
	case Refused:
		return "refused"
	}
	return string(c)
}

// Describe names the class of a site together with the kind of instruction: "emulated push".
func (c Class) Describe(instruction string) string {
	words := strings.Fields(strings.ReplaceAll(instruction, "data16", ""))
	if len(words) == 0 {
		return c.Text()
	}
	kind := words[0]
	if strings.HasPrefix(kind, "nop") {
		kind = "nop"
	}
	if c == Call {
		return kind + " " + c.Text()
	}
	return c.Text() + " " + kind
}

// Version is that of a kernel.
type Version struct{ Major, Minor int }

// Since says whether a kernel is of that version or newer.
func (v Version) Since(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// KernelVersion returns the version of the running kernel.
func KernelVersion() (Version, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Version{}, fmt.Errorf("read the kernel's version: %w", err)
	}
	return parseVersion(unix.ByteSliceToString(name.Release[:]))
}

func parseVersion(release string) (v Version, err error) {
	if _, err := fmt.Sscanf(strings.ReplaceAll(release, ".", " "), "%d %d", &v.Major, &v.Minor); err != nil {
		return Version{}, fmt.Errorf("read the kernel's version: it is called %q", release)
	}
	return v, nil
}

// Classify says what a kernel of a version does with a probe on the instruction that code begins with. goarch is "amd64" or
// "arm64". The address is needed because the kernel writes no call across the end of a page.
//
// Kernels are built and patched in many ways; where it matters, Look says what this one really did.
func Classify(goarch string, code []byte, address uint64, kernel Version) (Class, error) {
	switch goarch {
	case "amd64":
		return classifyX86(code, address, kernel)
	case "arm64":
		return classifyArm64(code, kernel)
	}
	return "", fmt.Errorf("how the kernel probes instructions of %s is not known", goarch)
}

// Returns says how a return probe gets from a function's return into the kernel: by a system call on a page of the kernel's
// (amd64 since Linux 6.11, uretprobe_trampoline_entry in arch/x86/kernel/uprobes.c), or by a breakpoint there.
func Returns(goarch string, kernel Version) string {
	if goarch == "amd64" && kernel.Since(6, 11) {
		return "system call"
	}
	return "breakpoint"
}
