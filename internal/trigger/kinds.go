package trigger

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"
)

// longest bounds durations that are waited for.
const longest = time.Hour

// conditionKeys are the keys of conditions, one for each kind.
func conditionKeys() []entry[Condition] {
	least := time.Microsecond
	longer := key("longer", "limit", lasts(least, longest, false), func(c *Condition) *time.Duration { return &c.Longer })
	method := func(name, doc string) entry[Condition] {
		return key(name, doc, aPattern, func(c *Condition) *string { return &c.Method })
	}
	why := key("why", "pattern of the text that was given", aPattern, func(c *Condition) *string { return &c.Why })
	limit := []entry[Condition]{longer.needed()}
	return []entry[Condition]{
		kind(Method, "a call of a method takes longer", nil, nil,
			method("name", "pattern of the method's name").needed(), longer.needed(),
			key("via", "how calls are seen", choice(ViaAuto, ViaRing, ViaProbe), func(c *Condition) *Via { return &c.Via })),
		kind(Unresponsive, "the main thread is not back in its loop for longer", nil, nil,
			method("loop", "pattern of the method that waits for work, or that hands it out").needed(), longer),
		kind(Frame, "calls of a frame method are slow, or one is frozen", frameFits, nil,
			method("method", "pattern of the method's name").needed(),
			key("slow", "a call that takes longer is slow; or off", lasts(least, longest, true), func(c *Condition) *time.Duration { return &c.Slow }),
			key("frozen", "a call that takes longer is frozen; or off", lasts(least, longest, true), func(c *Condition) *time.Duration { return &c.Frozen }),
			key("count", "so many slow calls in a row", integer(1, 1000), func(c *Condition) *int { return &c.Count })),
		kind(Response, "from the beginning of a method until the end of another takes longer", nil, nil,
			method("from", "pattern of the method that takes the input").needed(),
			key("to", "pattern of the method that answers", aPattern, func(c *Condition) *string { return &c.To }).needed(), longer),
		kind(RunQueue, "a thread that could run waits for a processor for longer", nil, nil, limit...),
		kind(OffCPU, "a thread does not run for longer", nil, nil, limit...),
		kind(Fsync, "a call of fsync or one of its relatives takes longer", nil, nil, limit...),
		kind(BlockIO, "a request to a disk takes longer", nil, nil, limit...),
		kind(MajorFaults, "a process has as many major faults in a second", nil, nil,
			key("per_second", "limit", integer(1, 1000000), func(c *Condition) *int { return &c.PerSecond }).needed()),
		kind(Reclaim, "a thread reclaims memory itself for longer", nil, nil, limit...),
		kind(Pressure, "tasks stall for lack of a resource (PSI)", pressureFits, nil,
			key("resource", "of which there is too little", choice("cpu", "memory", "io"), func(c *Condition) *string { return &c.Resource }).needed(),
			entry[Condition]{name: "kind", doc: "some tasks, or all that are not idle (full)", schema: func() schema { return someFull.schema },
				read: func(p *parser, n *yaml.Node, c *Condition) {
					word := "some"
					someFull.take(p, n, &word)
					c.Full = word == "full"
				}},
			key("stall", "time of stalls within a window", lasts(time.Millisecond, 10*time.Second, false), func(c *Condition) *time.Duration { return &c.Stall }).needed(),
			key("window", "500ms to 10s; without privilege a multiple of 2s", lasts(500*time.Millisecond, 10*time.Second, false), func(c *Condition) *time.Duration { return &c.Window })),
		kind(Thermal, "a thermal zone is as hot", nil, nil,
			key("zone", "pattern of the zone's type or name", aPattern, func(c *Condition) *string { return &c.Zone }),
			key("above", "°C", number("degrees Celsius", -50, 300), func(c *Condition) *float64 { return &c.Above }).needed()),
		kind(CPUFrequency, "a processor is not allowed its full frequency", nil, nil,
			key("below", "percent of the highest", number("percent", 1, 100), func(c *Condition) *float64 { return &c.Below }).needed()),
		kind(Crash, "the program is killed by a signal", nil, isTrue),
		kind(Stack, "calls with certain callers take longer on average", nil, nil,
			pathKey.needed(),
			key("mean_longer", "limit of the mean", lasts(least, longest, false), func(c *Condition) *time.Duration { return &c.Longer }).needed(),
			key("calls", "how many calls the mean is taken over, the newest", integer(1, 100000), func(c *Condition) *int { return &c.Count })),
		{name: string(Signal), doc: "the daemon gets a signal", schema: func() schema { return aSignal.schema }, read: func(p *parser, n *yaml.Node, c *Condition) {
			c.begin(p, n, Signal)
			aSignal.take(p, n, &c.Sig)
		}},
		kind(Socket, "somebody asks on the control socket (braid trigger)", nil, isTrue, why),
		kind(ProgramAsks, "the program calls braid_trigger", nil, isTrue, why),
		combined(All, "all of several conditions"),
		combined(Any, "one of several conditions"),
	}
}

var someFull = choice("some", "full")

// isTrue is what stands in place of settings, where a condition has none or needs none.
var isTrue = &scalar[bool]{"true", schema{"const": true}, func(n *yaml.Node) (bool, string) {
	if n.ShortTag() != "!!bool" || n.Value != "true" {
		return false, "only true is possible; leave the condition out otherwise"
	}
	return true, ""
}}

// begin makes a condition one of a kind, with its defaults.
func (c *Condition) begin(p *parser, n *yaml.Node, k Kind) {
	if p.conditions++; p.conditions == maxConditions+1 {
		p.errorf(n, "more than %d conditions", maxConditions)
	}
	c.ID, c.Kind, c.Line, c.Column = p.conditions, k, n.Line, n.Column
	switch k {
	case Method:
		c.Via = ViaAuto
	case Unresponsive:
		c.Longer = DefaultUnresponsive
	case Frame:
		c.Slow, c.Frozen, c.Count = DefaultSlow, DefaultFrozen, 1
	case Response:
		c.Longer = DefaultResponse
	case Pressure:
		c.Window = DefaultWindow
	case Thermal:
		c.Zone = "*"
	case Stack:
		c.Count = DefaultCalls
	case Socket, ProgramAsks:
		c.Why = "*"
	}
}

// Defaults of conditions.
const (
	DefaultUnresponsive = 5 * time.Second
	DefaultSlow         = 16670 * time.Microsecond
	DefaultFrozen       = 700 * time.Millisecond
	DefaultResponse     = 400 * time.Millisecond
	DefaultWindow       = 2 * time.Second
	DefaultCalls        = 20
)

// kind is the key of a kind of condition. fits looks at settings that must fit each other; word is what may stand in
// place of settings, if that is possible.
func kind(k Kind, doc string, fits func(*parser, *yaml.Node, *Condition, map[string]*yaml.Node), word *scalar[bool], keys ...entry[Condition]) entry[Condition] {
	o := &object[Condition]{what: string(k), keys: keys, check: fits}
	return entry[Condition]{name: string(k), doc: doc,
		schema: func() schema {
			switch {
			case word == nil:
				return o.schemaOf()
			case len(keys) == 0:
				return word.schema
			}
			return schema{"anyOf": []schema{word.schema, o.schemaOf()}}
		},
		read: func(p *parser, n *yaml.Node, c *Condition) {
			c.begin(p, n, k)
			if word != nil && (len(keys) == 0 || n.Kind == yaml.ScalarNode) {
				var yes bool
				word.take(p, n, &yes)
				return
			}
			o.read(p, n, c)
		}}
}

func combined(k Kind, doc string) entry[Condition] {
	return entry[Condition]{name: string(k), doc: doc,
		schema: func() schema {
			return schema{"type": "array", "items": schema{"$ref": "#/$defs/condition"}, "minItems": 2, "maxItems": 32}
		},
		read: func(p *parser, n *yaml.Node, c *Condition) {
			c.begin(p, n, k)
			members(p, n, c)
		}}
}

func frameFits(p *parser, n *yaml.Node, c *Condition, at map[string]*yaml.Node) {
	switch {
	case c.Slow == 0 && c.Frozen == 0:
		p.errorf(n, "slow and frozen are both off: nothing is left to fire at")
	case c.Slow != 0 && c.Frozen != 0 && c.Frozen < c.Slow:
		p.errorf(n, "frozen (%s) is shorter than slow (%s)", brief(c.Frozen), brief(c.Slow))
	case c.Slow == 0 && at["count"] != nil:
		p.errorf(at["count"], "count is of slow calls, and slow is off")
	}
}

func pressureFits(p *parser, n *yaml.Node, c *Condition, at map[string]*yaml.Node) {
	if c.Stall > c.Window {
		p.errorf(at["stall"], "%s of stall in a window of %s: stall is at most window", brief(c.Stall), brief(c.Window))
	}
	if c.Resource == "cpu" && c.Full {
		p.errorf(at["kind"], "full of cpu says nothing for the whole system: the kernel reports 0; use some")
	}
}

// pathKey is "a > b", or a list.
var pathKey = entry[Condition]{name: "pattern", doc: "callers, outermost first, and the method that is measured: \"a > b > *\"; ** is any number of methods",
	schema: func() schema {
		return schema{"anyOf": []schema{aPattern.schema, {"type": "array", "items": aPattern.schema, "minItems": 1, "maxItems": maxPath}}}
	},
	read: func(p *parser, n *yaml.Node, c *Condition) {
		whole := fmt.Sprintf("a list of up to %d methods", maxPath)
		if n.Kind == yaml.SequenceNode {
			p.list(n, whole, 1, maxPath, func(e *yaml.Node) {
				var s string
				aPattern.take(p, e, &s)
				c.Path = append(c.Path, s)
			})
			if k := len(c.Path); k > 0 && c.Path[k-1] == "**" {
				p.errorf(n, "the last method is the one whose calls are measured, it can't be **")
			}
			return
		}
		var s string
		if aPattern.take(p, n, &s); s == "" {
			return
		}
		path, wrong := splitPath(s)
		if wrong != "" {
			p.errorf(n, "found %s: %s", found(n), wrong)
		}
		c.Path = path
	}}
