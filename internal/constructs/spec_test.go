package constructs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A program's first comment holds directives, "// name: value". A line that begins with "//   " goes on with the
// directive before. "[words]" between name and colon limits a directive to where one of the words fits: a level, a
// compiler, both (gcc-O1), or an option of the variant. Those that are limited and fit stand in for those that are not.
//
//	compilers:  those to use; both if missing
//	flags:      options for compiling and linking
//	variants:   more sets of options, separated by ";", each tried at -O2 (everywhere in a full run)
//	exit:       the exit code; 0 if missing. 128 + signal for a program that is killed
//	symbol:     a symbol that must be in the program, or the construct was not made
//	splice:     patterns of functions to leave out of the tree; what they call takes their place
//	tree:       the call tree of one thread, see parseTrees. "tree x3" is that of three threads. Threads come in any order
type spec struct {
	file       string
	text       string
	directives []directive
}

type directive struct {
	name  string
	times int
	where []string
	value string
}

var directiveLine = regexp.MustCompile(`^// ([a-z]+)(?: x([0-9]+))?(?: \[([^\]]*)\])?:(?: (.*))?$`)

func readSpec(file string) (*spec, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &spec{file: file, text: string(text)}
	for line := range strings.Lines(s.text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "//") {
			break
		}
		if more, ok := strings.CutPrefix(line, "//   "); ok && len(s.directives) > 0 {
			s.directives[len(s.directives)-1].value += " " + strings.TrimSpace(more)
			continue
		}
		m := directiveLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		d := directive{name: m[1], times: 1, where: strings.Fields(m[3]), value: m[4]}
		switch d.name {
		case "compilers", "flags", "variants", "exit", "splice", "symbol", "tree":
		default:
			return nil, fmt.Errorf("%s: directive %q", file, d.name)
		}
		if m[2] != "" {
			if d.times, err = strconv.Atoi(m[2]); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, line, err)
			}
		}
		s.directives = append(s.directives, d)
	}
	return s, nil
}

// setting is one way to build a program.
type setting struct {
	compiler string // of C: gcc, clang
	level    string
	variant  []string
}

func (c setting) String() string {
	return strings.Join(append([]string{c.compiler, c.level}, c.variant...), " ")
}

func (d directive) fits(c setting) bool {
	for _, w := range d.where {
		if w == c.compiler || w == c.level || w == c.compiler+c.level {
			return true
		}
		for _, o := range c.variant {
			if w == o {
				return true
			}
		}
	}
	return false
}

// get returns the directives of a name that hold for a setting.
func (s *spec) get(name string, c setting) (out []directive) {
	var general []directive
	for _, d := range s.directives {
		switch {
		case d.name != name:
		case len(d.where) == 0:
			general = append(general, d)
		case d.fits(c):
			out = append(out, d)
		}
	}
	if out == nil {
		return general
	}
	return out
}

// words joins the values of a name's directives and splits them at spaces.
func (s *spec) words(name string, c setting) (out []string) {
	for _, d := range s.get(name, c) {
		out = append(out, strings.Fields(d.value)...)
	}
	return out
}

func (s *spec) name() string { return filepath.Base(s.file) }

// plus says that the program is C++.
func (s *spec) plus() bool { return filepath.Ext(s.file) == ".cc" }

// driver is the compiler's command for the program's language.
func (s *spec) driver(c setting) string {
	if !s.plus() {
		return c.compiler
	}
	return strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(c.compiler)
}

// settings are the ways to build the program in this run.
func (s *spec) settings() (out []setting) {
	compilers := s.words("compilers", setting{})
	if compilers == nil {
		compilers = []string{"gcc", "clang"}
	}
	variants := []([]string){nil}
	for _, d := range s.get("variants", setting{}) {
		for v := range strings.SplitSeq(d.value, ";") {
			variants = append(variants, strings.Fields(v))
		}
	}
	for _, cc := range compilers {
		for _, v := range variants {
			for _, level := range levels() {
				if v == nil || everything() || level == "-O2" {
					out = append(out, setting{cc, level, v})
				}
			}
		}
	}
	return out
}

// trees returns what the program's threads must have done, a line for each.
func (s *spec) trees(c setting) ([]string, error) {
	var out []string
	for _, d := range s.get("tree", c) {
		roots, err := parseTrees(d.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", s.file, d.value, err)
		}
		for range d.times {
			out = append(out, formatTrees(roots))
		}
	}
	return out, nil
}
