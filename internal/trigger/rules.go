package trigger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds of a file's triggers.
const (
	maxRules      = 100
	maxConditions = 500
	maxDepth      = 4
	maxPath       = 16
	// MaxMethods is how many patterns of methods all conditions together may have that are decided from rings.
	MaxMethods = 64
)

// rulePart is made in init, since conditions hold conditions.
var (
	rulePart   object[Rule]
	memberPart object[Condition]
)

var rulesKey = entry[Config]{name: "triggers", doc: "when a recording is written out",
	schema: func() schema {
		return schema{"type": "array", "items": rulePart.schemaOf(), "minItems": 1, "maxItems": maxRules}
	},
	read: func(p *parser, n *yaml.Node, c *Config) {
		lines := map[string]int{}
		p.list(n, "triggers", 1, maxRules, func(e *yaml.Node) {
			r := &Rule{Severity: DefaultSeverity, Cooldown: DefaultCooldown, Settle: DefaultSettle, When: &Condition{}, Line: e.Line}
			rulePart.read(p, e, r)
			if first := lines[r.Name]; r.Name != "" && first != 0 {
				p.errorf(e, "trigger %q again: it is in line %d already", r.Name, first)
			}
			lines[r.Name] = e.Line
			c.Rules = append(c.Rules, r)
		})
		if used := c.methods(); used > MaxMethods {
			p.errorf(n, "%d patterns of methods: at most %d can be watched in rings", used, MaxMethods)
		}
	}}

// methods counts the patterns of methods that are looked for in rings.
func (c *Config) methods() (n int) {
	for _, r := range c.Rules {
		r.When.Leaves(func(c *Condition) {
			switch {
			case !c.ByRing():
			case c.Kind == Stack:
				n += len(c.Path)
			case c.Kind == Response:
				n += 2
			default:
				n++
			}
		})
	}
	return n
}

func init() {
	kinds := conditionKeys()
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	how := []entry[Condition]{
		key("for", "it must hold for so long without a break", lasts(time.Millisecond, 24*time.Hour, false), func(c *Condition) *time.Duration { return &c.For }),
		key("within", "each part of it counts for so long after it was true", lasts(0, time.Hour, false), func(c *Condition) *time.Duration { return &c.Within }),
	}
	check := func(p *parser, n *yaml.Node, c *Condition, at map[string]*yaml.Node) {
		var have []string
		for _, name := range names {
			if at[name] != nil {
				have = append(have, name)
			}
		}
		switch len(have) {
		case 0:
			p.errorf(n, "no condition: one of %s is needed", strings.Join(names, ", "))
		case 1:
			c.fits(p, n, at)
		default:
			p.errorf(at[have[1]], "%s and %s in one condition: put each into a list under all or any", have[0], have[1])
		}
	}
	one := schema{"oneOf": requireEach(names)}
	memberPart = object[Condition]{what: "a condition", keys: append(slices.Clone(kinds), how...), check: check, rest: one}
	keys := []entry[Rule]{
		key("name", "of letters, digits, - and _; no other trigger has it", aName, func(r *Rule) *string { return &r.Name }).needed(),
		key("severity", "1 to 5, the most severe", integer(1, 5), func(r *Rule) *int { return &r.Severity }),
		key("cooldown", "after it has fired, it does not fire again for the same program for so long", lasts(0, year, false), func(r *Rule) *time.Duration { return &r.Cooldown }),
		key("settle", "recording goes on for so long after it has fired", lasts(0, time.Minute, false), func(r *Rule) *time.Duration { return &r.Settle }),
		listed("programs", "patterns of the programs that it is for", aPattern, 1, 100, func(r *Rule, s string) { r.Programs = append(r.Programs, s) }),
	}
	for _, k := range append(kinds, how...) {
		keys = append(keys, entry[Rule]{name: k.name, doc: k.doc, schema: k.schema, read: func(p *parser, n *yaml.Node, r *Rule) {
			k.read(p, n, r.When)
		}})
	}
	rulePart = object[Rule]{what: "a trigger", keys: keys, rest: one, check: func(p *parser, n *yaml.Node, r *Rule, at map[string]*yaml.Node) {
		check(p, n, r.When, at)
	}}
}

// fits looks at what for and within mean for a condition. It also gives defaults that depend on it.
func (c *Condition) fits(p *parser, n *yaml.Node, at map[string]*yaml.Node) {
	if c.Kind == All && at["within"] == nil {
		c.Within = DefaultWithin
	}
	if c.Kind == All && c.Within == 0 {
		moments := 0
		for _, m := range c.Members {
			if m.momentary() {
				moments++
			}
		}
		if moments > 1 {
			p.errorf(at["within"], "within 0s: two of the conditions are moments, which never are at the same one; within: 1s is the default")
		}
	}
	if c.For > 0 && c.momentary() {
		p.errorf(at["for"], "%s is a moment and does not last: with for, within says how far apart they may be", c.Kind)
	}
}

// DefaultWithin is Within of All.
const DefaultWithin = time.Second

// momentary reports whether a condition is never true for longer than a moment, apart from For.
func (c *Condition) momentary() bool {
	if c.Within > 0 || c.level() || c.lasting() > 0 {
		return false
	}
	for _, m := range c.Members {
		if !m.momentary() {
			return false
		}
	}
	return true
}

// members reads what all and any combine.
func members(p *parser, n *yaml.Node, to *Condition) {
	if p.depth++; p.depth > maxDepth {
		p.errorf(n, "conditions within conditions, more than %d deep", maxDepth)
	} else {
		p.list(n, string(to.Kind), 2, 32, func(e *yaml.Node) {
			m := &Condition{}
			memberPart.read(p, e, m)
			to.Members = append(to.Members, m)
		})
	}
	p.depth--
}

// aSignal is a signal that a daemon can be sent for this.
var aSignal = scalar[syscall.Signal]{"a signal: SIGUSR1, SIGUSR2, or the number of a real-time signal from 34 to 64",
	schema{"enum": append([]any{"SIGUSR1", "SIGUSR2"}, upTo(34, 64)...)},
	func(n *yaml.Node) (syscall.Signal, string) {
		switch n.Value {
		case "SIGUSR1":
			return syscall.SIGUSR1, ""
		case "SIGUSR2":
			return syscall.SIGUSR2, ""
		}
		v, err := strconv.Atoi(n.Value)
		if n.ShortTag() != "!!int" || err != nil || v < 34 || v > 64 {
			return 0, "allowed: SIGUSR1, SIGUSR2, or the number of a real-time signal from 34 to 64"
		}
		return syscall.Signal(v), ""
	}}

func upTo(from, to int) (out []any) {
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// splitPath reads "a > b > *". A > within a name has no space on one side.
func splitPath(s string) ([]string, string) {
	var path []string
	for _, part := range strings.Split(s, " > ") {
		part = strings.TrimSpace(part)
		if part == "" || part[0] == '>' {
			return nil, "a pattern of callers such as \"main > * > parse\" has a name between every two >"
		}
		path = append(path, part)
	}
	switch {
	case len(path) > maxPath:
		return nil, fmt.Sprintf("%d methods: at most %d are allowed", len(path), maxPath)
	case path[len(path)-1] == "**":
		return nil, "the last method is the one whose calls are measured, it can't be **"
	}
	return path, ""
}
