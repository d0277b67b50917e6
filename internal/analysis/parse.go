package analysis

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed builtin.yaml
var builtin []byte

// Builtin returns braid's own signatures.
func Builtin() []*Signature {
	sigs, err := ParseSignatures("builtin.yaml", builtin)
	if err != nil {
		panic(err) // a test reads them
	}
	return sigs
}

// ErrSignature is wrapped by all errors about a file of signatures.
var ErrSignature = errors.New("invalid signatures")

const (
	maxSignatureBytes = 1 << 20
	maxSignatures     = 1000
	maxChain          = 64
	maxConditions     = 32
)

// parser reads one file. Its errors name the file, line and column.
type parser struct{ file string }

func (p parser) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %w: %s", p.file, n.Line, n.Column, ErrSignature, fmt.Sprintf(format, args...))
}

// ParseSignatures reads a file of signatures; name is how errors call it. Fields that are not known are errors.
func ParseSignatures(name string, b []byte) ([]*Signature, error) {
	p := parser{name}
	if len(b) > maxSignatureBytes {
		return nil, fmt.Errorf("%s: %w: %d bytes, more than %d", name, ErrSignature, len(b), maxSignatureBytes)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w: the file is empty", name, ErrSignature)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %v", name, ErrSignature, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: more than one document", name, ErrSignature)
	}
	top, err := p.fields(doc.Content[0], "the file", "signatures")
	if err != nil {
		return nil, err
	}
	list := top["signatures"]
	if list == nil {
		return nil, p.fail(doc.Content[0], "signatures is missing")
	}
	if list.Kind != yaml.SequenceNode {
		return nil, p.fail(list, "signatures must be a list")
	}
	if len(list.Content) > maxSignatures {
		return nil, p.fail(list, "%d signatures, more than %d", len(list.Content), maxSignatures)
	}
	var all []*Signature
	for _, n := range list.Content {
		s, err := p.signature(n)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o *Signature) bool { return o.Name == s.Name }) {
			return nil, p.fail(n, "there are two signatures %q", s.Name)
		}
		all = append(all, s)
	}
	return all, nil
}

// fields is a mapping's values by key.
func (p parser) fields(n *yaml.Node, what string, allowed ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "%s must be a mapping with %s", what, strings.Join(allowed, ", "))
	}
	m := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(allowed, key.Value):
			return nil, p.fail(key, "%q is not known here; %s has %s", key.Value, what, strings.Join(allowed, ", "))
		case m[key.Value] != nil:
			return nil, p.fail(key, "%s is there twice", key.Value)
		}
		m[key.Value] = n.Content[i+1]
	}
	return m, nil
}

func (p parser) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		return "", p.fail(n, "%s must be a text", what)
	}
	return strings.TrimSpace(n.Value), nil
}

func (p parser) signature(n *yaml.Node) (*Signature, error) {
	f, err := p.fields(n, "a signature", "name", "description", "chain", "thread", "when", "at_least")
	if err != nil {
		return nil, err
	}
	s := &Signature{AtLeast: 1}
	for _, text := range []struct {
		key string
		to  *string
	}{{"name", &s.Name}, {"description", &s.Description}, {"thread", &s.Thread}} {
		if v := f[text.key]; v != nil {
			if *text.to, err = p.text(v, text.key); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range []string{"name", "chain", "when"} {
		if f[key] == nil {
			return nil, p.fail(n, "%s is missing", key)
		}
	}
	if _, err := path.Match(s.Thread, ""); err != nil {
		return nil, p.fail(f["thread"], "thread %q: %v", s.Thread, err)
	}
	if s.Chain, err = p.chain(f["chain"]); err != nil {
		return nil, err
	}
	if s.When, err = p.when(f["when"]); err != nil {
		return nil, err
	}
	if v := f["at_least"]; v != nil {
		if err := v.Decode(&s.AtLeast); err != nil || s.AtLeast == 0 || v.Kind != yaml.ScalarNode {
			return nil, p.fail(v, "at_least must be a number of calls, 1 or more")
		}
	}
	return s, nil
}

// chain reads "a > * > b" or a list of its elements.
func (p parser) chain(n *yaml.Node) ([]pattern, error) {
	var elements []string
	switch n.Kind {
	case yaml.ScalarNode:
		text, err := p.text(n, "chain")
		if err != nil {
			return nil, err
		}
		elements = strings.Split(text, " > ")
	case yaml.SequenceNode:
		for _, e := range n.Content {
			text, err := p.text(e, "a method of the chain")
			if err != nil {
				return nil, err
			}
			elements = append(elements, text)
		}
	default:
		return nil, p.fail(n, `chain must be a text, as in "a > * > b", or a list of methods`)
	}
	if len(elements) == 0 || len(elements) > maxChain {
		return nil, p.fail(n, "a chain has 1 to %d methods, not %d", maxChain, len(elements))
	}
	var chain []pattern
	for i, e := range elements {
		e = strings.TrimSpace(e)
		switch {
		case e == "" || e == ">":
			return nil, p.fail(n, "method %d of the chain is empty", i+1)
		case e == "*" && i < len(elements)-1:
			if i > 0 && chain[i-1] == nil {
				return nil, p.fail(n, "two * after each other in the chain; one stands for any number of calls")
			}
			chain = append(chain, nil)
		default:
			chain = append(chain, compile(e))
		}
	}
	return chain, nil
}

func (p parser) when(n *yaml.Node) ([]Condition, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 || len(nodes) > maxConditions {
		return nil, p.fail(n, "there must be 1 to %d conditions, not %d", maxConditions, len(nodes))
	}
	var all []Condition
	for _, c := range nodes {
		text, err := p.text(c, "a condition")
		if err != nil {
			return nil, err
		}
		cond, err := parseCondition(text)
		if err != nil {
			return nil, p.fail(c, "%v", err)
		}
		all = append(all, cond)
	}
	return all, nil
}
