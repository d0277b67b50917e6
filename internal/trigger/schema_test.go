package trigger

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

const schemaFile = "../../docs/watch.schema.json"

var update = flag.Bool("update", false, "write "+schemaFile)

func TestSchemaIsUpToDate(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(have, Schema()) {
		t.Fatalf("%s is not what the parser's tables give (%v): go test ./internal/trigger -run Schema -update", schemaFile, err)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("watch.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("watch.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bySchema says what the schema says of a file. A file that is no YAML is rejected before.
func bySchema(s *jsonschema.Schema, text string) error {
	var v any
	if err := yaml.Load([]byte(text), &v); err != nil {
		return err
	}
	return s.Validate(v)
}

const head = "version: 1\nprograms: [{name: demo}]\ntriggers:\n"

func one(condition string) string { return head + "  - {name: t, " + condition + "}\n" }

// valid files, which the schema must accept.
var valid = []string{
	one("crash: true"), one("socket: true"), one("program: true"), one("program: {why: slow*}"), one("signal: SIGUSR2"), one("signal: 40"),
	one("method: {name: \"*\", longer: 1us, via: probe}"), one("unresponsive: {loop: poll}"), one("frame: {method: draw}"),
	one("frame: {method: draw, slow: off}"), one("frame: {method: draw, frozen: off, count: 3}"), one("response: {from: a, to: b}"),
	one("stack: {pattern: \"a > b > *\", mean_longer: 2ms, calls: 7}"), one("stack: {pattern: [a, b], mean_longer: 2ms}"),
	one("thermal: {above: 85.5, zone: \"cpu*\"}, for: 10s"), one("cpu_frequency: {below: 60}"),
	one("pressure: {resource: memory, kind: full, stall: 100ms, window: 1s}"), one("major_faults: {per_second: 100}"),
	one("all: [{fsync: {longer: 1s}}, {any: [{crash: true}, {run_queue: {longer: 10ms}}], within: 3s}], for: 1h30m"),
	one("off_cpu: {longer: 1.5s}, severity: 5, cooldown: 1d, settle: 2s, programs: [a, b*]"),
	one("fsync: {longer: 1ms}, for: 10s, within: 1s"),
	"version: 1\nprograms:\n  - {package: com.example.*, threads: all, rings: 4, ring: 64K}\n  - {pid: 1, uid: 0, cgroup: /a/b, threads: [Render*, \"*\"]}\n" +
		"kernel: {units: [], seconds: 2.5, buffer: 64K}\noutput: {dir: /d, quota: 2T, age: 1h, limits: {per_week: 0, per_program: 1}, keep: worst, campaign: c-1, summary: only}\n" +
		"metrics: {address: \"[::1]:9464\"}\ntriggers: [{name: a, crash: true}]\n",
}

// invalid files, each with a part of the message.
var invalid = []struct {
	text, want string
	// beyond: the schema can not say it.
	beyond bool
}{
	{"", "empty", false}, {"a: [", "not YAML", false}, {"version: 1", `needs "programs"`, false}, {"[]", "found a list", false},
	{head + "  - {nam: t, crash: true}", `unknown key "nam" in a trigger; did you mean "name"?`, false},
	{one("crsh: true"), `did you mean "crash"?`, false}, {one("crash: yes"), "only true", false}, {one("crash: false"), "only true", false},
	{one("severity: 2"), "no condition", false}, {one("crash: true, socket: true"), "under all or any", false},
	{one("fsync: {longer: 100}"), "100ms or 100s?", false}, {one("fsync: {longer: 1 s}"), "this is a duration", false},
	{one("fsync: {longer: 2d}"), "from 1µs to 1h", true}, {one("fsync: {}"), `needs "longer"`, false}, {one("fsync: 100ms"), "is a mapping with longer", false},
	{one("runqueue: {longer: 1s}"), `did you mean "run_queue"?`, false}, {one("method: {name: f, longer: 1s, via: prob}"), `did you mean "probe"?`, false},
	{one("pressure: {resource: disk, stall: 1ms}"), "cpu, memory, io", false}, {one("pressure: {resource: io, stall: 3s}"), "at most window", true},
	{one("pressure: {resource: cpu, kind: full, stall: 1s}"), "use some", true}, {one("frame: {method: d, slow: off, frozen: off}"), "both off", true},
	{one("frame: {method: d, slow: 1s}"), "shorter than slow", true}, {one("frame: {method: d, slow: off, count: 2}"), "slow is off", true},
	{one("fsync: {longer: 1s}, for: 10s"), "is a moment", true}, {one("all: [{crash: true}]"), "2 to 32", false},
	{one("all: [{crash: true}, {fsync: {longer: 1s}}], within: 0s"), "never are at the same one", true},
	{one("signal: SIGKILL"), "SIGUSR1", false}, {one("signal: 9"), "SIGUSR1", false}, {one("stack: {pattern: \"a > > b\", mean_longer: 1s}"), "between every two", true},
	{one("stack: {pattern: [a, \"**\"], mean_longer: 1s}"), "can't be **", true}, {one("thermal: {above: hot}"), "a number from", false},
	{one("severity: 6, crash: true"), "from 1 to 5", false}, {one("name: u, crash: true"), "again", false},
	{one("crash: true") + "  - {name: t, crash: true}", `trigger "t" again`, true},
	{"version: 2\nprograms: [{name: a}]\ntriggers: [{name: t, crash: true}]", "from 1 to 1", false},
	{"version: 1\nprograms: [{rings: 2}]\ntriggers: [{name: t, crash: true}]", "one of name, package", false},
	{"version: 1\nprograms: [{name: *x}]\ntriggers: [{name: t, crash: true}]", "must be quoted", false},
	{"version: 1\nprograms: [{name: a, ring: 3M}]\ntriggers: [{name: t, crash: true}]", "power of two", false},
	{"version: 1\nprograms: [{name: a, threads: mian}]\ntriggers: [{name: t, crash: true}]", `did you mean "main"?`, false},
	{"version: 1\nprograms: [{name: 7}]\ntriggers: [{name: t, crash: true}]", "quote it", false},
	{"version: 1\nprograms: [{name: &a b}]\ntriggers: [{name: t, crash: true}]", "anchor &a", true},
	{"version: 1\nprograms: [{name: !!str b}]\ntriggers: [{name: t, crash: true}]", "tag !!str", true},
	{one("all: [{crash: true}, {all: [{crash: true}, {all: [{crash: true}, {all: [{crash: true}, {any: [{crash: true}, {crash: true}]}]}]}]}]"), "more than 4 deep", true},
	{"version: 1\nprograms: [{name: a}]\nmetrics: {address: \"localhost:99999\"}\ntriggers: [{name: t, crash: true}]", "HOST:PORT", false},
}

func TestParserAndSchemaAgree(t *testing.T) {
	s := compiled(t)
	for _, text := range valid {
		if _, err := Parse("f", []byte(text)); err != nil {
			t.Errorf("%s\nrejected: %v", text, err)
		}
		if err := bySchema(s, text); err != nil {
			t.Errorf("%s\nrejected by the schema: %v", text, err)
		}
	}
	for _, c := range invalid {
		_, err := Parse("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nerror %v, want %q", c.text, err, c.want)
		}
		if err := bySchema(s, c.text); (err == nil) != c.beyond {
			t.Errorf("%s\nschema says %v, beyond is %v", c.text, err, c.beyond)
		}
	}
}

func TestErrorsNameAllPlaces(t *testing.T) {
	_, err := Parse("w.yaml", []byte("version: 1\nprograms:\n  - nam: x\ntriggers:\n  - name: a\n    fsync: {longer: 5}\n  - name: b\n    crash: maybe\n"))
	want := []string{"w.yaml:3:5: ", "w.yaml:3:5: ", "w.yaml:6:21: ", "w.yaml:8:12: "}
	errs, ok := err.(Errors)
	if !ok || len(errs) != len(want) {
		t.Fatalf("errors:\n%v\nwant %d", err, len(want))
	}
	for i, e := range errs {
		if !strings.HasPrefix(e.Error(), want[i]) {
			t.Errorf("error %d is %q, want it at %s", i, e, want[i])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range valid {
		f.Add([]byte(v))
	}
	for _, v := range invalid {
		f.Add([]byte(v.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("both or none of a configuration and an error: %v", err)
		}
		if c != nil {
			c.System()
			c.Needs(&Target{Pid: 1, Name: "demo"})
			NewEngine(c).Tick(1)
		}
	})
}
