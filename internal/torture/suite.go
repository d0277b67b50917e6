package torture

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Program is one program of a suite.
type Program struct {
	Suite   string
	Name    string   // within the suite
	Sources []string // paths
	Plus    bool     // C++
	Flags   []string // to compile and link it
	// Fixed says that Flags have a level of optimisation, which others would only repeat.
	Fixed bool
	// GCCOnly says that clang has not what it needs.
	GCCOnly bool
	// Prepare, if set, makes the sources. It may be called at the same time by several.
	Prepare func() error
}

// Roots are the folders that suites are read from.
type Roots struct {
	Repository string
	Cache      string // where sources are unpacked; kept
	Arch       string // in Go's naming
}

// suite is how to list a suite's programs.
type suite struct {
	name string
	list func(r Roots, name string) ([]Program, error)
	// slow suites are thinned by that much more where not all is to be done.
	slow uint64
}

func (s *suite) thin() uint64 { return max(1, s.slow) }

// suiteNamed returns the suite of that name, or nil.
func suiteNamed(name string) *suite {
	i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &suites[i]
}

var suites = []suite{
	{name: "gcc-c-torture", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/gcc.c-torture/execute", flat{all: true, flags: []string{"-w"}})
	}},
	{name: "gcc-c-torture-ieee", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/gcc.c-torture/execute/ieee", flat{all: true, flags: []string{"-w", "-fno-inline"}})
	}},
	{name: "gcc-c-torture-builtins", list: builtins},
	{name: "gcc-dg", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/gcc.dg", flat{flags: []string{"-w"}})
	}},
	{name: "gcc-common", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/c-c++-common", flat{flags: []string{"-w"}})
	}},
	{name: "gcc-target", list: func(r Roots, name string) ([]Program, error) {
		folder := map[string]string{"amd64": "i386", "arm64": "aarch64", "arm": "arm"}[r.Arch]
		return gccSuite(r, name, "gcc/testsuite/gcc.target/"+folder, flat{flags: []string{"-w"}})
	}},
	{name: "g++-dg", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/g++.dg", flat{flags: []string{"-w"}, plus: true})
	}},
	{name: "g++-old-deja", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "gcc/testsuite/g++.old-deja", flat{flags: []string{"-w", "-fpermissive"}, plus: true})
	}},
	{name: "libstdc++", slow: 10, list: func(r Roots, name string) ([]Program, error) {
		util := filepath.Join(r.Cache, "gcc-12.2.0/libstdc++-v3/testsuite/util")
		return gccSuite(r, name, "libstdc++-v3/testsuite", flat{flags: []string{"-w", "-I", util}, plus: true})
	}},
	{name: "libgomp", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "libgomp/testsuite/libgomp.c", flat{flags: []string{"-w", "-fopenmp"}, gccOnly: true})
	}},
	{name: "libatomic", list: func(r Roots, name string) ([]Program, error) {
		return gccSuite(r, name, "libatomic/testsuite/libatomic.c", flat{flags: []string{"-w", "-latomic", "-pthread"}, gccOnly: true})
	}},
	{name: "tcc", list: tccTests},
	{name: "csmith", list: randomPrograms},
}

// Suites are the names of all suites.
func Suites() []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	return names
}

// Programs lists a suite's programs in order of their names, fetching it first if need be.
func Programs(r Roots, name string) ([]Program, error) {
	s := suiteNamed(name)
	if s == nil {
		return nil, fmt.Errorf("no suite %q: there are %s", name, strings.Join(Suites(), ", "))
	}
	list, err := s.list(r, name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("suite %s has no programs", name)
	}
	slices.SortFunc(list, func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// flat says how one of gcc's folders is to be read.
type flat struct {
	all     bool // every file is a program, and only the files of this very folder; else those that say dg-do run
	plus    bool
	gccOnly bool
	flags   []string
}

// unsuitable are folders whose tests are more than a program to compile and run.
var unsuitable = []string{"modules", "tree-prof", "lto", "compat", "pch", "plugin", "guality", "gcov", "simulate-thread", "hwasan", "analyzer",
	"goacc", "noncompile", "fixed-point"}

// folderFlags are what the suites' own scripts add in folders of that name.
var folderFlags = map[string][]string{
	"asan": {"-fsanitize=address"}, "ubsan": {"-fsanitize=undefined"}, "tsan": {"-fsanitize=thread"}, "gomp": {"-fopenmp"},
	"coroutines": {"-std=c++20"}, "tm": {"-fgnu-tm"},
}

func gccSuite(r Roots, name, folder string, how flat) ([]Program, error) {
	root, err := gccSource(r.Cache)
	if err != nil {
		return nil, err
	}
	root = filepath.Join(root, folder)
	var list []Program
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			if path != root && (how.all || slices.Contains(unsuitable, e.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); !how.plus && ext != ".c" || how.plus && ext != ".C" && ext != ".cc" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d := parseDirectives(string(text), arches[r.Arch])
		if !how.all && !d.run {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p := Program{Suite: name, Name: rel, Sources: []string{path}, Plus: how.plus, GCCOnly: how.gccOnly, Flags: slices.Clone(how.flags)}
		for _, part := range strings.Split(filepath.Dir(path[len(root):]), "/") {
			p.Flags = append(p.Flags, folderFlags[part]...)
		}
		if d.standard != "" {
			p.Flags = append(p.Flags, d.standard)
		}
		p.Flags = append(append(p.Flags, d.options...), d.more...)
		for _, s := range d.sources {
			p.Sources = append(p.Sources, filepath.Join(filepath.Dir(path), s))
		}
		p.Fixed = slices.ContainsFunc(d.options, func(f string) bool { return strings.HasPrefix(f, "-O") })
		list = append(list, p)
		return nil
	})
	return list, err
}

// builtins are programs of three files, as builtins.exp builds them.
func builtins(r Roots, name string) ([]Program, error) {
	root, err := gccSource(r.Cache)
	if err != nil {
		return nil, err
	}
	root = filepath.Join(root, "gcc/testsuite/gcc.c-torture/execute/builtins")
	libs, err := filepath.Glob(root + "/*-lib.c")
	if err != nil {
		return nil, err
	}
	var list []Program
	for _, lib := range libs {
		base := strings.TrimSuffix(lib, "-lib.c")
		list = append(list, Program{Suite: name, Name: filepath.Base(base) + ".c", Sources: []string{base + ".c", lib, root + "/lib/main.c"},
			Flags: []string{"-w", "-fno-tree-dse", "-fno-tree-loop-distribute-patterns", "-fno-tracer", "-fno-inline-functions"}, GCCOnly: true})
	}
	return list, nil
}

// tccTests are the programs that tcc checks itself with.
func tccTests(r Roots, name string) ([]Program, error) {
	root, err := debianSource(r.Repository, r.Cache, "tcc")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(root + "/tests/tests2/[0-9]*.c")
	if err != nil {
		return nil, err
	}
	var list []Program
	for _, f := range files {
		list = append(list, Program{Suite: name, Name: filepath.Base(f), Sources: []string{f}, Flags: []string{"-w", "-pthread", "-std=gnu11"}})
	}
	return list, nil
}

// randomCount is how many programs csmith writes.
const randomCount = 200

func randomPrograms(r Roots, name string) ([]Program, error) {
	var list []Program
	dir := filepath.Join(r.Cache, "csmith")
	for seed := 1; seed <= randomCount; seed++ {
		file := fmt.Sprintf("csmith-%d.c", seed)
		list = append(list, Program{Suite: name, Name: file, Sources: []string{filepath.Join(dir, file)}, Flags: []string{"-w", "-I/usr/include/csmith"},
			Prepare: func() error { return csmith(dir, file, seed) }})
	}
	return list, nil
}
