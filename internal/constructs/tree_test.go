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
	// mark says how the call ended if not by an exit: '!' without one, because control came back into a method below it;
	// ';' not yet, since control left its stack and came back later; '~' not at all while the thread recorded.
	mark byte
	// again: not a call of its own. It goes on with one that was left with ';'.
	again bool
	kids  []*node
}

// parseTrees reads calls, separated by spaces:
//
//	name{calls}     what it called
//	name! name; name~
//	                how it ended, see node; in front of the calls
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
		if l := len(n.name) - 1; l > 0 && strings.IndexByte("!;~", n.name[l]) >= 0 {
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
		if n.name == "" || n.name[0] == '*' {
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
	type text struct{ name, calls string }
	texts := make([]text, len(nodes)) // each made once: trees can be deep
	for i, n := range nodes {
		texts[i].name = n.name
		if n.again {
			texts[i].name = "^" + n.name
		}
		if n.mark != 0 {
			texts[i].name += string(n.mark)
		}
		if len(n.kids) > 0 {
			texts[i].calls = "{" + formatTrees(n.kids) + "}"
		}
	}
	var b strings.Builder
	for i := 0; i < len(texts); {
		k := 1
		for i+k < len(texts) && texts[i+k] == texts[i] {
			k++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(texts[i].name)
		if k > 1 {
			b.WriteString("*" + strconv.Itoa(k))
		}
		b.WriteString(texts[i].calls)
		i += k
	}
	return b.String()
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
	for _, in := range []string{"a{", "a}", "{b}", "a{b} *3"} {
		if _, err := parseTrees(in); err == nil {
			t.Errorf("%q was understood", in)
		}
	}
	nodes, err := parseTrees("a{x1{b x2{c}} d}")
	if got := formatTrees(splice(nodes, []string{"x*"})); err != nil || got != "a{b c d}" {
		t.Errorf("spliced to %q, %v", got, err)
	}
}
