package trigger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a file, in bytes.
const maxFile = 1 << 20

// maxErrors bounds what one run reports.
const maxErrors = 100

// ReadFile reads a configuration. Errors in its content are Errors.
func ReadFile(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, maxFile+1)
	n := 0
	for n < len(buf) {
		k, err := f.Read(buf[n:])
		n += k
		if k == 0 || err != nil {
			break
		}
	}
	return Parse(path, buf[:n])
}

// Parse reads a configuration. name is the file's, for errors. The error is an Errors, with all that is wrong.
func Parse(name string, data []byte) (*Config, error) {
	p := &parser{file: name}
	if len(data) > maxFile {
		return nil, Errors{{File: name, Message: "larger than 1 MiB"}}
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, Errors{p.syntax(err)}
	}
	c := defaults()
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, Errors{{File: name, Message: "empty: a file has at least version, programs and triggers"}}
	}
	file.read(p, doc.Content[0], c)
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
		return nil, p.errs
	}
	return c, nil
}

type parser struct {
	file       string
	errs       Errors
	conditions int
	depth      int
}

// syntax is what the YAML library found.
func (p *parser) syntax(err error) *Error {
	e := &Error{File: p.file, Message: "not YAML: " + err.Error()}
	var at *yaml.LoadError
	if errors.As(err, &at) {
		e.Message = "not YAML: " + strings.TrimPrefix(at.Message, "yaml: ")
		if at.Mark.Line > 0 {
			e.Line, e.Column = at.Mark.Line, at.Mark.Column+1
		}
		if strings.Contains(at.Message, "no documents") {
			return &Error{File: p.file, Message: "empty: a file has at least version, programs and triggers"}
		}
		if strings.Contains(at.Message, "anchor") {
			e.Message += "; a pattern that begins with * must be quoted"
		}
	}
	return e
}

func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{p.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

// found says what a node is, for messages.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	}
	return quoted(n.Value)
}

// plain reports a node that uses what watch files do without: anchors, aliases, tags.
func (p *parser) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		p.errorf(n, "found the alias *%s: aliases are not used here; a pattern that begins with * must be quoted", n.Value)
	case n.Anchor != "":
		p.errorf(n, "found the anchor &%s: anchors are not used here; quote text that begins with &", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		p.errorf(n, "found the tag %s: tags are not used here; quote text that begins with !", n.Tag)
	default:
		return true
	}
	return false
}

// list reads the elements of a sequence.
func (p *parser) list(n *yaml.Node, what string, least, most int, each func(*yaml.Node)) {
	if !p.plain(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.errorf(n, "found %s: %s is a list", found(n), what)
		return
	}
	if len(n.Content) < least || len(n.Content) > most {
		p.errorf(n, "found a list of %d: %s has %d to %d entries", len(n.Content), what, least, most)
	}
	for _, e := range n.Content[:min(len(n.Content), most)] {
		each(e)
	}
}

// object is a mapping with known keys: what reads it, and what the schema says of it.
type object[T any] struct {
	what string // "a program": for messages
	keys []entry[T]
	// check looks at keys that must fit each other; at has the nodes of the values that are there.
	check func(p *parser, n *yaml.Node, to *T, at map[string]*yaml.Node)
	// rest of the schema: what check says, as far as a schema can.
	rest schema
}

// entry is one key of an object.
type entry[T any] struct {
	name, doc string
	required  bool
	schema    func() schema
	read      func(p *parser, n *yaml.Node, to *T)
}

func (o *object[T]) names() []string {
	var names []string
	for _, k := range o.keys {
		names = append(names, k.name)
	}
	return names
}

// read reads a mapping, and reports whether it was one.
func (o *object[T]) read(p *parser, n *yaml.Node, to *T) {
	if !p.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "found %s: %s is a mapping with %s", found(n), o.what, strings.Join(o.names(), ", "))
		return
	}
	at := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !p.plain(k) {
			continue
		}
		x := slices.IndexFunc(o.keys, func(e entry[T]) bool { return e.name == k.Value })
		switch {
		case k.Kind != yaml.ScalarNode || x < 0:
			what := "key " + quoted(k.Value)
			if k.Kind != yaml.ScalarNode {
				what = found(k) + " for a key"
			}
			p.errorf(k, "unknown %s in %s; %s", what, o.what, didYouMean(k.Value, o.names()))
		case at[k.Value] != nil:
			p.errorf(k, "key %q again: it is in line %d already", k.Value, at[k.Value].Line)
		default:
			at[k.Value] = v
			o.keys[x].read(p, v, to)
		}
	}
	for _, k := range o.keys {
		if k.required && at[k.name] == nil {
			p.errorf(n, "%s needs %q (%s)", o.what, k.name, k.doc)
		}
	}
	if o.check != nil {
		o.check(p, n, to, at)
	}
}
