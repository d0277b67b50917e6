package torture

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// directives are what a test's comments ask of DejaGnu, as far as building and running it goes. The commands are described
// in "Directives used within DejaGnu tests" of GCC's internals manual; what is not understood here is ignored, since a
// program that then does not build or fails is one that fails without stubs, too.
type directives struct {
	run      bool     // dg-do run
	options  []string // dg-options
	more     []string // dg-additional-options
	sources  []string // dg-additional-sources
	standard string   // that the test's target asks for, as a -std option
}

// arch names a processor as DejaGnu's target triplets do.
type arch struct {
	triplet string
	names   []string // effective targets that hold for it alone
}

var arches = map[string]arch{
	"amd64": {"x86_64-unknown-linux-gnu", []string{"lp64", "int128", "x86"}},
	"arm64": {"aarch64-unknown-linux-gnu", []string{"lp64", "int128"}},
	"arm":   {"arm-unknown-linux-gnueabihf", []string{"ilp32"}},
}

var (
	directive = regexp.MustCompile(`\{\s*dg-(do|options|additional-options|additional-sources)\s`)
)

// parseDirectives reads a test's source.
func parseDirectives(text string, a arch) directives {
	var d directives
	for _, at := range directive.FindAllStringIndex(text, -1) {
		list := braced(text[at[0]:])
		if list == nil {
			continue
		}
		command, args, selector := list[0], list[1:], ""
		if n := len(args); n > 0 && strings.HasPrefix(strings.TrimSpace(args[n-1]), "target") && n > 1 {
			selector, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(args[n-1]), "target"), "xfail")
			selector = strings.TrimSpace(selector)
			args = args[:n-1]
		}
		if len(args) == 0 || selector != "" && !a.matches(selector) {
			continue
		}
		switch command {
		case "dg-do":
			d.run = args[0] == "run"
			d.standard = standardFor(selector)
		case "dg-options":
			d.options = strings.Fields(args[0])
		case "dg-additional-options":
			d.more = append(d.more, strings.Fields(args[0])...)
		case "dg-additional-sources":
			d.sources = append(d.sources, strings.Fields(args[0])...)
		}
	}
	return d
}

// standardFor is the option for a test that is not for the compiler's default standard of C++ (gnu++17 in gcc 12).
func standardFor(selector string) string {
	switch {
	case strings.Contains(selector, "c++98_only"):
		return "-std=gnu++98"
	case strings.Contains(selector, "c++11_only"):
		return "-std=gnu++11"
	case strings.Contains(selector, "c++14_down"), strings.Contains(selector, "c++14_only"):
		return "-std=gnu++14"
	case strings.Contains(selector, "c++2a"), strings.Contains(selector, "c++20"), strings.Contains(selector, "c++23"):
		return "-std=gnu++20"
	}
	return ""
}

// braced splits a Tcl list that begins with a brace into its words, without their quotes or braces; nil if it does not end.
func braced(s string) []string {
	var words []string
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n':
			i++
		case c == '}':
			return words
		case c == '"':
			j := i + 1
			for j < len(s) && s[j] != '"' {
				if s[j] == '\\' {
					j++
				}
				j++
			}
			if j >= len(s) {
				return nil
			}
			words = append(words, s[i+1:j])
			i = j + 1
		case c == '{':
			depth, j := 0, i
			for ; j < len(s); j++ {
				if s[j] == '{' {
					depth++
				} else if s[j] == '}' {
					if depth--; depth == 0 {
						break
					}
				}
			}
			if j >= len(s) {
				return nil
			}
			words = append(words, strings.TrimSpace(s[i+1:j]))
			i = j + 1
		default:
			j := i
			for j < len(s) && !strings.ContainsRune(" \t\n}", rune(s[j])) {
				j++
			}
			words = append(words, s[i:j])
			i = j
		}
	}
	return nil
}

// matches reports whether a target selector holds: names and patterns, joined by &&, || and !, in braces.
func (a arch) matches(selector string) bool {
	s := strings.NewReplacer("{", " { ", "}", " } ", "&&", " && ", "||", " || ", "!", " ! ").Replace(selector)
	p := selectorParser{a, strings.Fields(s)}
	return p.or()
}

type selectorParser struct {
	arch  arch
	words []string
}

func (p *selectorParser) take(word string) bool {
	if len(p.words) > 0 && p.words[0] == word {
		p.words = p.words[1:]
		return true
	}
	return false
}

// or is "and || and ...". Words that stand side by side are alternatives, too.
func (p *selectorParser) or() bool {
	v := p.and()
	for len(p.words) > 0 && p.words[0] != "}" {
		p.take("||")
		w := p.and()
		v = v || w
	}
	return v
}

func (p *selectorParser) and() bool {
	v := p.not()
	for p.take("&&") {
		w := p.not()
		v = v && w
	}
	return v
}

func (p *selectorParser) not() bool {
	switch {
	case p.take("!"):
		return !p.not()
	case p.take("{"):
		v := p.or()
		p.take("}")
		return v
	case len(p.words) == 0:
		return true
	}
	w := p.words[0]
	p.words = p.words[1:]
	return p.arch.has(w)
}

// has decides on one name: a pattern of triplets, or an effective target. Targets that are not known hold.
func (a arch) has(name string) bool {
	if strings.ContainsAny(name, "*") {
		ok, err := path.Match(name, a.triplet)
		return err == nil && ok
	}
	for _, b := range arches {
		if slices.Contains(b.names, name) && !slices.Contains(a.names, name) {
			return false
		}
	}
	switch name {
	case "ia32", "x32", "llp64", "avr", "hppa", "default_packed", "short_enums", "size20plus", "rtems", "mingw", "darwin", "vxworks":
		return false
	}
	return true
}
