package trigger

import (
	"time"

	"go.yaml.in/yaml/v4"
)

const year = 366 * 24 * time.Hour

// What single values are.
var (
	aPattern = texts("a pattern: text in which * stands for anything", `^[^\x00-\x1f]{1,512}$`)
	aName    = texts("a name of letters, digits, - and _", `^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	aFolder  = texts("an absolute path (with a / first)", `^/[^\x00-\x1f]{0,1000}$`)
	aHost    = texts("HOST:PORT, such as 127.0.0.1:9464", `^(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{0,253}):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`)
	aSize    = sized("a size such as 512K, 8M, 1G or 2T", `^[1-9][0-9]{0,5}[KMGT]$`)
	aRing    = sized("a ring's size: a power of two from 4K to 1G, such as 32M", `^((4|8|16|32|64|128|256|512)K|(1|2|4|8|16|32|64|128|256|512)M|1G)$`)
	aCount   = integer(0, 1000000)
)

// file is the whole of a watch file.
var file = object[Config]{what: "a watch file", keys: []entry[Config]{
	key("version", "version of the file's form", integer(1, 1), func(c *Config) *int { return &c.Version }).needed(),
	programsKey.needed(),
	part("kernel", "what is kept of the kernel's events", &kernelPart, func(c *Config) *Kernel { return &c.Kernel }),
	part("output", "where traces go, and what is kept of them", &outputPart, func(c *Config) *Output { return &c.Output }),
	part("metrics", "where Prometheus metrics are served", &metricsPart, func(c *Config) *Metrics { return &c.Metrics }),
	rulesKey.needed(),
}}

func defaults() *Config {
	return &Config{
		Kernel:  Kernel{Sched: true, IO: true, Keep: DefaultKeep, Buffer: DefaultBuffer},
		Output:  Output{Dir: DefaultDir, Quota: DefaultQuota, Age: DefaultAge, Limits: Limits{DefaultPerWeek, DefaultProgram, DefaultTrigger}, Keep: KeepFirst, Summary: SummaryWithTrace},
		Metrics: Metrics{},
	}
}

// part is a key that holds an object.
func part[T, U any](name, doc string, o *object[U], at func(*T) *U) entry[T] {
	return entry[T]{name: name, doc: doc, schema: o.schemaOf, read: func(p *parser, n *yaml.Node, to *T) { o.read(p, n, at(to)) }}
}

// listed is a key that holds a list of single values.
func listed[T, V any](name, doc string, s scalar[V], least, most int, put func(*T, V)) entry[T] {
	return entry[T]{name: name, doc: doc,
		schema: func() schema {
			return schema{"type": "array", "items": s.schema, "minItems": least, "maxItems": most}
		},
		read: func(p *parser, n *yaml.Node, to *T) {
			p.list(n, name, least, most, func(e *yaml.Node) {
				var v V
				s.take(p, e, &v)
				put(to, v)
			})
		}}
}

var programsKey = entry[Config]{name: "programs", doc: "which programs are watched",
	schema: func() schema {
		return schema{"type": "array", "items": programPart.schemaOf(), "minItems": 1, "maxItems": 100}
	},
	read: func(p *parser, n *yaml.Node, c *Config) {
		p.list(n, "programs", 1, 100, func(e *yaml.Node) {
			one := Program{UID: -1, Threads: Threads{Main: true}, Rings: DefaultRings, Ring: DefaultRing}
			programPart.read(p, e, &one)
			c.Programs = append(c.Programs, one)
		})
	}}

var criteria = []string{"name", "package", "cgroup", "uid", "pid"}

var programPart = object[Program]{what: "a program",
	keys: []entry[Program]{
		key("name", "pattern of the comm or of the executable's name", aPattern, func(t *Program) *string { return &t.Name }),
		key("package", "pattern of the Android package: the first argument of the command line", aPattern, func(t *Program) *string { return &t.Package }),
		key("cgroup", "path of a cgroup v2, that it is in or below", aFolder, func(t *Program) *string { return &t.Cgroup }),
		key("uid", "effective user id", integer(0, 1<<32-2), func(t *Program) *int { return &t.UID }),
		key("pid", "process id", integer(1, 1<<22), func(t *Program) *int { return &t.Pid }),
		threadsKey,
		key("rings", "how many threads have a ring at a time", integer(1, 64), func(t *Program) *int { return &t.Rings }),
		key("ring", "size of a ring", aRing, func(t *Program) *int64 { return &t.Ring }),
	},
	check: func(p *parser, n *yaml.Node, t *Program, at map[string]*yaml.Node) {
		for _, c := range criteria {
			if at[c] != nil {
				return
			}
		}
		p.errorf(n, "a program needs one of name, package, cgroup, uid, pid; name: \"*\" is every program that was built with stubs")
	},
	rest: schema{"anyOf": requireEach(criteria)},
}

func requireEach(names []string) []schema {
	var out []schema
	for _, n := range names {
		out = append(out, schema{"required": []string{n}})
	}
	return out
}

var someThreads = listed("threads", "", aPattern, 1, 64, func(t *Program, s string) { t.Threads.Names = append(t.Threads.Names, s) })

// threadsKey is a word or a list of patterns.
var threadsKey = entry[Program]{name: "threads", doc: "main, all, or a list of patterns of threads' names",
	schema: func() schema {
		return schema{"anyOf": []schema{{"enum": []string{"main", "all"}}, someThreads.schema()}}
	},
	read: func(p *parser, n *yaml.Node, to *Program) {
		if n.Kind == yaml.SequenceNode {
			to.Threads.Main = false
			someThreads.read(p, n, to)
			return
		}
		word := "main"
		choice("main", "all").take(p, n, &word)
		to.Threads.All = word == "all"
	}}

var unitsKey = listed("units", "which eBPF programs run", choice("sched", "io", "wait"), 0, 3, func(k *Kernel, s string) {
	k.Sched, k.IO, k.Wait = k.Sched || s == "sched", k.IO || s == "io", k.Wait || s == "wait"
})

var kernelPart = object[Kernel]{what: "kernel", keys: []entry[Kernel]{
	{name: unitsKey.name, doc: unitsKey.doc, schema: unitsKey.schema, read: func(p *parser, n *yaml.Node, to *Kernel) {
		to.Sched, to.IO, to.Wait = false, false, false
		unitsKey.read(p, n, to)
	}},
	{name: "seconds", doc: "how far back kernel events are kept", schema: func() schema { return someSeconds.schema },
		read: func(p *parser, n *yaml.Node, to *Kernel) {
			v := DefaultKeep.Seconds()
			someSeconds.take(p, n, &v)
			to.Keep = time.Duration(v * 1e9)
		}},
	key("buffer", "buffer between the kernel and the recorder", sized("a buffer's size: a power of two from 64K to 512M", `^((64|128|256|512)K|(1|2|4|8|16|32|64|128|256|512)M)$`), func(t *Kernel) *int64 { return &t.Buffer }),
}}

var someSeconds = number("seconds", 0.1, 600)

var outputPart = object[Output]{what: "output", keys: []entry[Output]{
	key("dir", "folder of traces", aFolder, func(t *Output) *string { return &t.Dir }),
	key("quota", "of all traces together", aSize, func(t *Output) *int64 { return &t.Quota }),
	key("age", "older traces are removed", lasts(time.Minute, 10*year, false), func(t *Output) *time.Duration { return &t.Age }),
	part("limits", "how many traces are kept of the last seven days; 0 is no limit", &limitsPart, func(t *Output) *Limits { return &t.Limits }),
	key("keep", "which traces stay where a limit is reached", choice(KeepFirst, KeepWorst), func(t *Output) *Keep { return &t.Keep }),
	key("campaign", "traces are filed and counted under this name", aName, func(t *Output) *string { return &t.Campaign }),
	key("summary", "with-trace, or only: no trace is written", choice(SummaryWithTrace, SummaryOnly), func(t *Output) *Summary { return &t.Summary }),
}}

var limitsPart = object[Limits]{what: "limits", keys: []entry[Limits]{
	key("per_week", "in all", aCount, func(t *Limits) *int { return &t.PerWeek }),
	key("per_program", "of one program", aCount, func(t *Limits) *int { return &t.PerProgram }),
	key("per_trigger", "of one trigger", aCount, func(t *Limits) *int { return &t.PerTrigger }),
}}

var metricsPart = object[Metrics]{what: "metrics", keys: []entry[Metrics]{
	key("address", "host and port", aHost, func(t *Metrics) *string { return &t.Address }).needed(),
}}
