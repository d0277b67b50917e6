package torture

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// Levels are the levels of optimisation that every program is built at.
var Levels = []string{"-O0", "-O1", "-O2", "-O3", "-Os"}

// OwnLevel stands for the level of optimisation that a program's own options have. Others would only repeat it.
const OwnLevel = "own"

// Compiler is a pair of compilers.
type Compiler struct {
	Name    string
	C, Plus []string // commands
	Clang   bool
}

// Target is what programs are built for.
type Target struct {
	Arch      string // in Go's naming
	Compilers []Compiler
	Emulator  []string // words before a program's path
	Flags     []string // for every build
}

// Targets by processor.
var Targets = map[string]Target{
	"amd64": {Arch: "amd64", Compilers: []Compiler{
		{Name: "gcc", C: []string{"gcc"}, Plus: []string{"g++"}},
		{Name: "clang", C: []string{"clang"}, Plus: []string{"clang++"}, Clang: true},
		{Name: "clang-19", C: []string{"clang-19"}, Plus: []string{"clang++-19"}, Clang: true},
	}},
	// qemu takes a second to map the 64 GiB of an arena. The runtime makes a smaller one where the address space is limited.
	"arm64": {Arch: "arm64", Emulator: []string{"prlimit", "--as=8589934592", "qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}, Compilers: []Compiler{
		{Name: "arm64-gcc", C: []string{"aarch64-linux-gnu-gcc"}, Plus: []string{"aarch64-linux-gnu-g++"}},
		{Name: "arm64-clang", C: []string{"clang-19", "--target=aarch64-linux-gnu"}, Plus: []string{"clang++-19", "--target=aarch64-linux-gnu"}, Clang: true},
	}},
	"arm": {Arch: "arm", Emulator: []string{"qemu-arm", "-L", "/usr/arm-linux-gnueabihf"}, Compilers: []Compiler{
		{Name: "arm-gcc", C: []string{"arm-linux-gnueabihf-gcc", "-marm"}, Plus: []string{"arm-linux-gnueabihf-g++", "-marm"}},
		{Name: "thumb-gcc", C: []string{"arm-linux-gnueabihf-gcc", "-mthumb"}, Plus: []string{"arm-linux-gnueabihf-g++", "-mthumb"}},
		{Name: "arm-clang", C: []string{"clang-19", "--target=arm-linux-gnueabihf"}, Plus: []string{"clang++-19", "--target=arm-linux-gnueabihf"}, Clang: true},
	}},
}

// Case is one program, as one compiler makes it at one level.
type Case struct {
	Program  Program
	Compiler Compiler
	Level    string
}

// Key names a case; the same in every run.
func (c *Case) Key() string {
	return c.Program.Suite + "/" + c.Program.Name + " " + c.Compiler.Name + " " + c.Level
}

// order is where a case stands among all in a sample of them: any range of it is a fair one.
func (c *Case) order(seed string) uint64 {
	h := sha256.Sum256([]byte(seed + c.Key()))
	return binary.LittleEndian.Uint64(h[:])
}

// Selection says which cases are wanted. A list that is empty means all.
type Selection struct {
	Suites, Compilers, Levels []string
	Every                     int    // one in so many; below 2: all
	Seed                      string // chooses which
}

func wanted(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// Cases lists the cases of a target that are selected, in an order that is the same each time and mixes all suites, so
// that a run that is broken off has seen some of each.
func Cases(r Roots, t Target, s Selection) ([]Case, error) {
	type placed struct {
		Case
		at uint64
	}
	var list []placed
	for _, suite := range Suites() {
		if !wanted(s.Suites, suite) {
			continue
		}
		programs, err := Programs(r, suite)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", suite, err)
		}
		sparse := uint64(max(1, s.Every))
		if sparse > 1 {
			sparse *= suiteNamed(suite).thin()
		}
		for _, p := range programs {
			for _, cc := range t.Compilers {
				if !wanted(s.Compilers, cc.Name) || p.GCCOnly && cc.Clang {
					continue
				}
				levels := Levels
				if p.Fixed {
					levels = []string{OwnLevel}
				}
				for _, level := range levels {
					c := Case{p, cc, level}
					at := c.order(s.Seed)
					if level != OwnLevel && !wanted(s.Levels, level) || at%sparse != 0 {
						continue
					}
					list = append(list, placed{c, at / sparse})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b placed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	cases := make([]Case, len(list))
	for i, p := range list {
		cases[i] = p.Case
	}
	return cases, nil
}
