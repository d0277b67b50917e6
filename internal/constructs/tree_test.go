package constructs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// node is one call.
type node struct {
	name string
	// mark says how the call ended if not by an exit: '!' without one, because control came back into a method below it
	// (also "left for another stack", until it is entered again); '~' not at all while the thread recorded.
	mark byte
	// again: the call was left before, and control came back into it.
	again bool
	kids  []*node
}

// parseTrees reads calls, separated by spaces:
//
//	name{calls}     what it called
//	name!  name~    how it ended, see node; in front of the calls
//	^name           again, see node
//	name*3{calls}   three times the same
func parseTrees(s string) ([]*node, error) {
	p := &parser{rest: s}
	out := p.calls()
	if p.rest != "" && p.err == nil {
		p.err = fmt.Errorf("%q is too much", p.rest)
	}
	return out, p.err
}

type parser struct {
	rest string
	err  error
}

func (p *parser) calls() (out []*node) {
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.rest == "" || p.rest[0] == '}' {
			return out
		}
		word := p.rest
		if i := strings.IndexAny(word, " {}"); i >= 0 {
			word = word[:i]
		}
		p.rest = p.rest[len(word):]
		n, times := &node{name: word}, 1
		if i := strings.LastIndexByte(n.name, '*'); i > 0 {
			if k, err := strconv.Atoi(n.name[i+1:]); err == nil {
				n.name, times = n.name[:i], k
			}
		}
		n.name, n.again = strings.CutPrefix(n.name, "^")
		if l := len(n.name) - 1; l > 0 && (n.name[l] == '!' || n.name[l] == '~') {
			n.mark, n.name = n.name[l], n.name[:l]
		}
		if strings.HasPrefix(p.rest, "{") {
			p.rest = p.rest[1:]
			n.kids = p.calls()
			if !strings.HasPrefix(p.rest, "}") {
				p.err = errors.New("a brace is missing")
				return out
			}
			p.rest = p.rest[1:]
		}
		if n.name == "" {
			p.err = errors.New("a name is missing")
			return out
		}
		for range times {
			out = append(out, n)
		}
	}
}

// formatTrees is the one text for these trees: equal neighbours are counted.
func formatTrees(nodes []*node) string {
	var b strings.Builder
	for i := 0; i < len(nodes); {
		one := nodes[i].format(1)
		k := 1
		for i+k < len(nodes) && nodes[i+k].format(1) == one {
			k++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(nodes[i].format(k))
		i += k
	}
	return b.String()
}

func (n *node) format(times int) string {
	s := n.name
	if n.again {
		s = "^" + s
	}
	if n.mark != 0 {
		s += string(n.mark)
	}
	if times > 1 {
		s += "*" + strconv.Itoa(times)
	}
	if len(n.kids) > 0 {
		s += "{" + formatTrees(n.kids) + "}"
	}
	return s
}

// splice replaces calls of functions that fit one of the patterns by what they called.
func splice(nodes []*node, patterns []string) (out []*node) {
	for _, n := range nodes {
		kids := splice(n.kids, patterns)
		if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, n.name); return ok }) {
			out = append(out, kids...)
			continue
		}
		n.kids = kids
		out = append(out, n)
	}
	return out
}

func TestTreesAreReadAndWritten(t *testing.T) {
	for in, want := range map[string]string{
		"main{leaf leaf leaf  out{in!}}": "main{leaf*3 out{in!}}",
		"a*2{b~*3 ^c!{d}} A::~A":         "a*2{b~*3 ^c!{d}} A::~A",
		"f<int*>{operator*}":             "f<int*>{operator*}",
		"a{b} a{b c}":                    "a{b} a{b c}",
	} {
		nodes, err := parseTrees(in)
		if err != nil || formatTrees(nodes) != want {
			t.Errorf("%q: %q, %v; want %q", in, formatTrees(nodes), err, want)
		}
	}
	for _, in := range []string{"a{", "a}", "{b}"} {
		if _, err := parseTrees(in); err == nil {
			t.Errorf("%q was understood", in)
		}
	}
	nodes, err := parseTrees("a{x1{b x2{c}} d}")
	if got := formatTrees(splice(nodes, []string{"x*"})); err != nil || got != "a{b c d}" {
		t.Errorf("spliced to %q, %v", got, err)
	}
}
