package launcher

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

type family int

const (
	familyUnknown family = iota
	familyGCC
	familyClang
)

// compiler is what the name of a compiler says about it.
type compiler struct {
	command []string // how it is called: its name as given, after ccache's if that is used
	family  family
	cplus   bool   // the C++ driver
	fortran bool   // gcc's Fortran driver
	version int    // major, 0 if the name does not say
	target  string // the target triple, "" if the name does not say
	ccache  bool
}

// compilerName matches gcc, gfortran, x86_64-linux-gnu-g++-12, clang-19, aarch64-linux-android30-clang++ and the like.
var compilerName = regexp.MustCompile(`^(?:(.+)-)?(gcc|g\+\+|gfortran|clang|clang\+\+|cc|c\+\+)(?:-([0-9]+)(?:\.[0-9.]+)?(?:-posix|-win32)?)?$`)

// identify takes the compiler off the front of a command line and returns the arguments that follow. The name decides;
// where it does not (cc), or says too little (the version), the file that it leads to through symbolic links does.
func identify(command []string) (c compiler, args []string) {
	n := 1
	if base := filepath.Base(command[0]); (base == "ccache" || base == "sccache") && len(command) > 1 &&
		!strings.HasPrefix(command[1], "-") {
		c.ccache, n = true, 2
	}
	c.command, args = command[:n], command[n:]
	base := filepath.Base(command[n-1])
	given := compilerName.FindStringSubmatch(base)
	if given == nil {
		return c, args
	}
	c.cplus = strings.HasSuffix(given[2], "++")
	c.fortran = given[2] == "gfortran"
	c.take(given)
	path, err := exec.LookPath(command[n-1])
	if err != nil {
		return c, args
	}
	// Through every link of the chain: /usr/bin/cc, /etc/alternatives/cc, gcc, gcc-12, x86_64-linux-gnu-gcc-12.
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		if filepath.Base(resolved) == "ccache" { // ccache under the compiler's name
			c.ccache = true
			return c, args
		}
		if m := compilerName.FindStringSubmatch(filepath.Base(resolved)); m != nil {
			c.take(m)
		}
		if m := llvmDirectory.FindStringSubmatch(resolved); m != nil && c.version == 0 && c.family == familyClang {
			c.version, _ = strconv.Atoi(m[1])
		}
	}
	return c, args
}

var llvmDirectory = regexp.MustCompile(`/llvm-([0-9]+)(?:\.[0-9.]+)?/bin/`)

// take adds what one name says to what is not known yet.
func (c *compiler) take(m []string) {
	if c.family == familyUnknown {
		switch m[2] {
		case "gcc", "g++", "gfortran":
			c.family = familyGCC
		case "clang", "clang++":
			c.family = familyClang
		}
	}
	if c.version == 0 {
		c.version, _ = strconv.Atoi(m[3])
	}
	if c.target == "" && m[1] != "musl" { // musl-gcc is the machine's own gcc with another libc
		c.target = m[1]
	}
}

// probe asks a compiler that is called cc or c++, and is no link to a better name, what it is.
func (c *compiler) probe() {
	last := c.command[len(c.command)-1]
	m := compilerName.FindStringSubmatch(filepath.Base(last))
	if c.family != familyUnknown || m == nil {
		return
	}
	// "clang version 14.0.6 ..." or "cc (Debian 12.2.0-14) 12.2.0" and the Free Software Foundation's copyright.
	out, err := exec.Command(last, "--version").Output()
	switch {
	case err != nil:
	case strings.Contains(string(out), "clang version"):
		c.family = familyClang
	case strings.Contains(string(out), "Free Software Foundation"):
		c.family = familyGCC
	}
}
