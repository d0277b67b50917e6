package analysis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parseOne reads one signature from its fields but the name.
func parseOne(t *testing.T, fields string) *Signature {
	t.Helper()
	all, err := ParseSignatures("test", []byte("signatures:\n- {name: x, "+strings.TrimPrefix(fields, "  {")))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// orders tells of a server with two kinds of requests.
func orders(t testing.TB) *story {
	s := &story{t: t}
	a := s.thread(pid, "main")
	b := s.thread(52, "worker-1")
	for i := range 20 {
		a.call("serve", a.run(ms), func() {
			a.call("ns::order(int) const", func() {
				a.call("store", func() {
					a.call("sync", a.fsync(int64(10+10*(i%2))*ms, 2))
				})
			})
		})
		b.call("serve", func() {
			for range i {
				b.call("query", b.run(ms))
			}
			b.call("lock", b.preempted(int64(i)*ms), b.run(5*ms), func() {
				b.call("lock", b.sleep(3*ms, pid))
			})
		})
	}
	return s
}

func TestSignatures(t *testing.T) {
	tr := orders(t).load()
	for _, c := range []struct {
		fields string
		calls  uint64
		total  int64 // 0: not checked
	}{
		{`  {chain: sync, when: fsync > 15ms}`, 10, 200 * ms},
		{`  {chain: sync, when: fsync > 15ms, at_least: 11}`, 0, 0},
		{`  {chain: sync, when: [fsync > 5ms, fsync < 15ms]}`, 10, 100 * ms},
		{`  {chain: "serve > * > sync", when: fsync > 5ms}`, 20, 300 * ms},
		{`  {chain: "serve > sync", when: fsync > 5ms}`, 0, 0},
		{`  {chain: "store > sync", when: fsync > 5ms}`, 20, 0},
		{`  {chain: "ns::order > * > sync", when: fsync > 5ms}`, 20, 0},
		{`  {chain: "ns::order > store > * > sync", when: fsync > 5ms}`, 20, 0},
		{`  {chain: "store > * > ns::order > * > sync", when: fsync > 5ms}`, 0, 0},
		{`  {chain: [serve, "ns::o*(int) const", store, "*"], when: self.fsync > 5ms}`, 20, 0},
		{`  {chain: "*", when: self.fsync > 5ms}`, 20, 0},
		{`  {chain: "*", when: fsync > 5ms}`, 80, 0},
		{`  {chain: serve, thread: main, when: total > 0s}`, 20, 0},
		{`  {chain: serve, thread: "worker-*", when: total > 0s}`, 20, 0},
		{`  {chain: serve, thread: "52", when: total > 0s}`, 20, 0},
		{`  {chain: serve, thread: nobody, when: total > 0s}`, 0, 0},
		{`  {chain: serve, when: calls(query) >= 15}`, 5, 0},
		{`  {chain: serve, when: [calls(query) >= 15, calls(qu*) < 16, calls(sync) <= 0]}`, 1, 0},
		{`  {chain: serve, when: [requests >= 2, fsyncs >= 1, bytes >= 2MiB]}`, 20, 0},
		{`  {chain: serve, when: self.requests > 0}`, 0, 0},
		{`  {chain: sync, when: [self.fsyncs >= 1, self.bytes < 2097153]}`, 20, 0},
		{`  {chain: lock, when: self.runnable > 70%}`, 8, 0}, // of i and 5 ms: from 12 on
		{`  {chain: lock, when: sleeping > 1ms}`, 40, 20*8*ms + 190*ms},
		{`  {chain: lock, when: self.sleeping > 1ms}`, 20, 0},
		{`  {chain: "lock > lock", when: waiting > 1ms}`, 20, 0},
	} {
		r, err := Analyze(tr, Options{Signatures: []*Signature{parseOne(t, c.fields)}})
		if err != nil {
			t.Fatal(err)
		}
		if c.calls == 0 {
			if len(r.Signatures) != 0 {
				t.Errorf("%s: found %+v", c.fields, r.Signatures)
			}
			continue
		}
		if len(r.Signatures) != 1 || r.Signatures[0].Calls != c.calls {
			t.Errorf("%s: found %+v", c.fields, r.Signatures)
			continue
		}
		m := r.Signatures[0]
		if c.total != 0 && !near(m.TotalNs, c.total) {
			t.Errorf("%s: %d ns", c.fields, m.TotalNs)
		}
		longest := slices.MaxFunc(m.Examples, func(a, b Example) int { return int(a.ToNs - a.FromNs - b.ToNs + b.FromNs) })
		if len(m.Examples) != int(min(c.calls, mostExamples)) || m.Examples[0] != longest || longest.Tid == 0 || longest.Thread == "" {
			t.Errorf("%s: examples %+v", c.fields, m.Examples)
		}
	}
}

// Each of braid's own signatures finds what it is for.
func TestBuiltin(t *testing.T) {
	s := &story{t: t}
	a := s.thread(pid, "main")
	a.call("many", func() {
		for range 12 {
			a.fsync(ms, 1)()
		}
	})
	a.call("long", a.fsync(60*ms, 1))
	a.call("starved", a.preempted(20*ms), a.run(ms))
	a.call("take_lock", a.sleep(30*ms, 0))
	a.call("ask", a.binder(30*ms, 20, true))
	a.call("page", a.fault(12*ms))
	a.call("alloc", a.reclaim(6*ms))
	a.call("quiet", a.run(ms))
	r := s.analyze(Options{Signatures: Builtin()})
	got := map[string]string{}
	for _, m := range r.Signatures {
		got[m.Name] = m.Examples[0].Method
		if m.Calls != 1 || m.Description == "" {
			t.Errorf("%+v", m)
		}
	}
	want := map[string]string{"many-fsyncs": "many", "long-fsync": "long", "io-on-main-thread": "long", "starved-of-cpu": "starved",
		"long-lock-wait": "take_lock", "slow-page-in": "page", "binder-on-main-thread": "ask", "memory-reclaim": "alloc"}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(Builtin()) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSignatureErrors(t *testing.T) {
	const ok = "signatures:\n- name: a\n  chain: x\n  when: fsync > 1ms\n"
	for _, c := range [][2]string{
		{"", "f: invalid signatures: the file is empty"},
		{"a: [", "f: invalid signatures: yaml: "},
		{"[]", "f:1:1: invalid signatures: the file must be a mapping with signatures"},
		{"{}", "f:1:1: invalid signatures: signatures is missing"},
		{"signatures: 3", "f:1:13: invalid signatures: signatures must be a list"},
		{"signatures: []\nother: 1", `f:2:1: invalid signatures: "other" is not known here; the file has signatures`},
		{ok + "- name: a\n  chain: x\n  when: fsync > 1ms\n", `f:5:3: invalid signatures: there are two signatures "a"`},
		{ok + "---\n{}", "f: invalid signatures: more than one document"},
		{"signatures:\n- name: a\n", "f:2:3: invalid signatures: chain is missing"},
		{"signatures:\n- name: a\n  name: b\n", "f:3:3: invalid signatures: name is there twice"},
		{"signatures:\n- name: ''\n", "f:2:9: invalid signatures: name must be a text"},
		{"signatures:\n- chain: a\n  whn: b\n", `f:3:3: invalid signatures: "whn" is not known here; a signature has name, description, chain, thread, when, at_least`},
		{ok + "  thread: '[a'\n", `f:5:11: invalid signatures: thread "[a": syntax error in pattern`},
		{ok + "  at_least: 0\n", "f:5:13: invalid signatures: at_least must be a number of calls, 1 or more"},
		{ok + "  at_least: many\n", "f:5:13: invalid signatures: at_least must be"},
		{"signatures:\n- {name: a, when: a, chain: 'a > * > * > b'}", "f:2:29: invalid signatures: two * after each other"},
		{"signatures:\n- {name: a, when: a, chain: 'a >  > b'}", "f:2:29: invalid signatures: method 2 of the chain is empty"},
		{"signatures:\n- {name: a, when: a, chain: []}", "f:2:29: invalid signatures: a chain has 1 to 64 methods, not 0"},
		{"signatures:\n- {name: a, when: a, chain: {}}", "f:2:29: invalid signatures: chain must be a text"},
		{"signatures:\n- {name: a, chain: a, when: []}", "f:2:29: invalid signatures: there must be 1 to 32 conditions, not 0"},
		{"signatures:\n- {name: a, chain: a, when: fsync}", `f:2:29: invalid signatures: "fsync" has no comparison; want "METRIC > VALUE"`},
		{"signatures:\n- {name: a, chain: a, when: fsnc > 1ms}", `"fsnc" is nothing that a call has; choose one of binder, blocked, bytes, fsync,`},
		{"signatures:\n- {name: a, chain: a, when: fsync > 1}", `"1" is neither a time, as in 50ms, nor a share, as in 30%`},
		{"signatures:\n- {name: a, chain: a, when: fsync > 101%}", `"101%" is not a share of 0% to 100%`},
		{"signatures:\n- {name: a, chain: a, when: fsync > NaN%}", `"NaN%" is not a share`},
		{"signatures:\n- {name: a, chain: a, when: fsyncs > 1.5}", `"1.5" is not a whole number`},
		{"signatures:\n- {name: a, chain: a, when: bytes > 1MB}", `"1MB" is not a number of bytes`},
		{"signatures:\n- {name: a, chain: a, when: calls() > 1}", `give the called method`},
		{"signatures:\n- {name: a, chain: a, when: self.calls(x) > 1}", `give the called method`},
	} {
		_, err := ParseSignatures("f", []byte(c[0]))
		if !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%q:\ngot  %v\nwant %s", c[0], err, c[1])
		}
	}
	if _, err := ParseSignatures("f", []byte(ok)); err != nil {
		t.Error(err)
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"f", "f", true}, {"f", "f(int)", true}, {"f", "ff", false}, {"f*", "ff(int) const", true}, {"*", "", true},
		{"a::f", "a::f(void (*)(int)) const", true}, {"*::f", "a::b::f()", true}, {"a*b*c", "abbc", true}, {"a*b*c", "acb", false},
		{`f(char\*)`, "f(char*)", true}, {`f(char\*)`, "f(charx)", false}, {"aa*aa", "aaa", false}, {`a\\`, `a\`, true},
		{"operator()", "operator()(int)", true}, {"(anonymous namespace)::f", "(anonymous namespace)::f()", true},
	} {
		if got := compile(c.pattern).matches(c.name); got != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.name, got)
		}
	}
}

// The examples of the documentation are signatures, and the built-in ones are all listed in it.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "signatures.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	blocks := strings.Split(page, "```yaml\n")
	if len(blocks) < 2 {
		t.Error("no example")
	}
	for _, block := range blocks[1:] {
		text, _, _ := strings.Cut(block, "```")
		if _, err := ParseSignatures("docs", []byte(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	for _, s := range Builtin() {
		if !strings.Contains(page, "| `"+s.Name+"` |") {
			t.Errorf("%s is not documented", s.Name)
		}
	}
	for name := range times {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s is not documented", name)
		}
	}
	for name := range points {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s is not documented", name)
		}
	}
}

func FuzzParseSignatures(f *testing.F) {
	f.Add(builtin)
	f.Add([]byte("signatures:\n- {name: a, chain: [b, '*', c], when: [calls(x) > 1, self.io <= 3%], thread: main, at_least: 3}"))
	f.Add([]byte("signatures: &a [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := ParseSignatures("f", b)
		if err != nil {
			if !errors.Is(err, ErrSignature) {
				t.Fatal(err)
			}
			return
		}
		for _, s := range all {
			if s.Name == "" || len(s.Chain) == 0 || len(s.When) == 0 || s.AtLeast == 0 {
				t.Fatalf("%+v", s)
			}
			s.Chain[len(s.Chain)-1].matches("name(int)")
		}
	})
}
