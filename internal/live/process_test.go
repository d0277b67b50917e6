package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"braid/control"
	"braid/inline"
	"braid/internal/trigger"

	"golang.org/x/sys/unix"
)

// script is a thread that writes what a test says. Times are ns: the tests' clock has a tick of 1 ns.
type script struct {
	slots   []uint64
	begin   uint64
	at      uint64
	skipped uint64
}

func (s *script) Tail(most int, _ []uint64) ([]uint64, uint64, control.Span, error) {
	skipped := s.skipped
	if n := len(s.slots) - most; n > 0 {
		s.slots, skipped = s.slots[n:], skipped+uint64(n)
	}
	out, span := s.slots, control.Span{Begin: s.begin, End: s.at}
	s.slots, s.begin, s.skipped = nil, s.at, 0
	return out, skipped, span, nil
}

// addresses of methods by their letters.
func address(m byte) uint64 { return 0x400000 + 16*uint64(m) }

// do enters methods for letters, leaves for ), and lets a ms pass for each dot, 100 ns for each comma.
func (s *script) do(text string) *script {
	for i := range len(text) {
		switch c := text[i]; c {
		case '.':
			s.at += 1e6
		case ',':
			s.at += 100
		case ')':
			s.slots = inline.AppendExit(s.slots, s.at)
		default:
			s.slots = inline.AppendEntry(s.slots, s.at, address(c))
		}
	}
	return s
}

func process(t testing.TB, conditions string) *Process {
	t.Helper()
	c, err := trigger.Parse("test", []byte("version: 1\nprograms: [{name: \"*\"}]\ntriggers:\n"+conditions))
	if err != nil {
		t.Fatal(err)
	}
	p := New(42, c.Needs(&trigger.Target{Name: "x"}).Ring, &Clock{ns: 1})
	for m := byte('a'); m <= 'z'; m++ {
		i := p.methods.Add(address(m))
		p.widen()
		p.masks[i], p.names[i] = p.automaton.mask(string(m)), string(m)
	}
	return p
}

// poll returns what was seen, as "method:ms" each.
func poll(t *testing.T, p *Process, budget int, threads ...*script) string {
	t.Helper()
	var th []Thread
	now := uint64(0)
	for i, s := range threads {
		th = append(th, Thread{s, 100 + i, i == 0})
		now = max(now, s.at)
	}
	seen, err := p.Poll(th, now, budget)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range seen {
		if o.Target != 42 || o.Condition == 0 || o.Tid < 100 || o.Time > now {
			t.Errorf("observation %+v", o)
		}
		out = append(out, fmt.Sprintf("%s:%.0f", o.Subject, o.Value/1e6))
	}
	return strings.Join(out, " ")
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name, condition string
		polls           []string // what the thread does before each
		want            []string
	}{
		{"method", "method: {name: f, longer: 3ms}", []string{"f..)f...)", "g.....f..)", ")f.", "...", "...)"}, []string{"f:3", "", "", "f:4", ""}},
		{"recursion", "method: {name: f, longer: 3ms}", []string{"f..f.)f...))"}, []string{"f:3 f:6"}},
		{"unknown at first", "method: {name: f, longer: 3ms}", []string{"..)))f...)"}, []string{"f:3"}},
		{"frame", "frame: {method: f, slow: 3ms, frozen: 9ms}", []string{"f..)f...)", "f........", ".", "..)"}, []string{"f:3", "", "f:9", ""}},
		{"frames in a row", "frame: {method: f, slow: 3ms, frozen: off, count: 2}", []string{"f...)f..)f...)f...)f...)", "f...)"}, []string{"f:3", "f:3"}},
		{"response", "response: {from: a, to: b, longer: 4ms}", []string{"a).b)a)..a)..b)", "a)....", "...b)", "b)....."}, []string{"a:4", "a:4", "", ""}},
		{"unresponsive", "unresponsive: {loop: l, longer: 5ms}", []string{"ml............x....", ".", "..", ")", "x......)x)"}, []string{"", "l:5", "", "", "l:6"}},
		{"waits in its loop", "unresponsive: {loop: l, longer: 5ms}", []string{"ml......", ")...", "l)....", "."}, []string{"", "", "", "l:5"}},
		{"stack", "stack: {pattern: \"a > b > *\", mean_longer: 3ms, calls: 3}",
			[]string{"abx...))by......))", "bx.))bz...)))", "a", "bx.........)y.)z)))"}, []string{"", "x:3", "", "y:4"}},
		{"stack with a gap", "stack: {pattern: \"a > ** > b\", mean_longer: 2ms, calls: 1}",
			[]string{"ab..))", "axyb..))))", "xb...))"}, []string{"b:2", "b:2", ""}},
		{"direct callers", "stack: {pattern: \"a > b\", mean_longer: 2ms, calls: 1}", []string{"axb...)))", "ab...))b...)"}, []string{"", "b:3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := process(t, "  - {name: t, "+c.condition+"}\n"), &script{begin: 1e9, at: 1e9}
			var got []string
			for _, text := range c.polls {
				got = append(got, poll(t, p, 1<<20, s.do(text)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q gave %q, want %q", c.polls, got, c.want)
			}
		})
	}
}

// TestResponseAcrossThreads has one thread take the input and another answer. The second is polled first.
func TestResponseAcrossThreads(t *testing.T) {
	p := process(t, "  - {name: t, response: {from: a, to: b, longer: 4ms}}\n")
	x, y := &script{begin: 1e9, at: 1e9}, &script{begin: 1e9, at: 1e9}
	if got := poll(t, p, 1<<20, y.do("......b)"), x.do(".a)")); got != "a:5" {
		t.Errorf("saw %q, want 5 ms", got)
	}
}

// TestBudget has more slots than may be decoded: the newest count, and the calls that were open before are not known.
func TestBudget(t *testing.T) {
	p := process(t, "  - {name: t, method: {name: f, longer: 3ms}}\n")
	s := (&script{begin: 1e9, at: 1e9}).do("f" + strings.Repeat("g.)", 100) + "f....)")
	if got := poll(t, p, 10, s); got != "f:4" {
		t.Errorf("saw %q, want the newest call", got)
	}
	if st := p.Stats(); st.Slots != 10 || st.Skipped != 193 || st.Resyncs != 1 {
		t.Errorf("stats %+v, want 10 slots and 193 skipped", st)
	}
	if got := poll(t, p, 10, s.do(")f...)")); got != "f:3" { // the first exit is of a call that is not known
		t.Errorf("saw %q after a gap", got)
	}
}

// TestUnwound has an exception pass a method.
func TestUnwound(t *testing.T) {
	p := process(t, "  - {name: t, method: {name: f, longer: 3ms}}\n")
	s := &script{begin: 1e9, at: 1e9}
	s.slots = inline.AppendEntryFramed(s.slots, s.at, address('a'), 0x7000)
	s.do("f....")
	s.slots = inline.AppendResumedFramed(s.slots, s.at, address('a'), 0x6ff0)
	if got := poll(t, p, 100, s.do("....)")); got != "f:4" {
		t.Errorf("saw %q, want f to have ended after 4 ms", got)
	}
	for _, th := range p.threads {
		if len(th.stack) != 0 {
			t.Errorf("%d calls are left open", len(th.stack))
		}
	}
}

// TestPolledInPieces decides the same, however a thread's slots are cut into polls.
func TestPolledInPieces(t *testing.T) {
	rules := "  - {name: b, stack: {pattern: \"a > ** > c\", mean_longer: 1ms, calls: 4}}\n" +
		"  - {name: c, frame: {method: b, slow: 2ms, frozen: off, count: 2}}\n"
	total := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var pieces []string
		for depth := 0; len(pieces) < 300; {
			if depth > 0 && (depth > 6 || r.IntN(2) == 0) {
				pieces, depth = append(pieces, ".)"), depth-1
			} else {
				pieces, depth = append(pieces, string("abcd"[r.IntN(4)])), depth+1
			}
		}
		ends := func(cut bool) map[string]int {
			p, s := process(t, rules), &script{begin: 1e9, at: 1e9}
			seen := map[string]int{}
			collect := func() {
				obs, err := p.Poll([]Thread{{s, 1, true}}, s.begin, 1<<20) // open calls are looked at in the past
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range obs {
					seen[fmt.Sprint(o.Kind, o.Time, o.Value, o.Subject)]++
				}
			}
			for _, piece := range pieces {
				s.do(piece)
				if cut && r.IntN(5) == 0 {
					collect()
				}
			}
			collect()
			return seen
		}
		whole, cut := ends(false), ends(true)
		if !maps.Equal(whole, cut) {
			t.Fatalf("seed %d: saw %v, and in pieces %v", seed, whole, cut)
		}
		total += len(whole)
	}
	if total < 1000 {
		t.Errorf("only %d observations: the sequences test little", total)
	}
}

// cpu is the time that this process had a processor, in ns: other processes must not count.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkPoll(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"one", "  - {name: t, method: {name: f, longer: 1s}}\n"},
		{"many", "  - {name: t, method: {name: \"f\", longer: 1s}}\n  - {name: u, frame: {method: e, slow: 1s, frozen: off}}\n" +
			"  - {name: v, unresponsive: {loop: a}}\n  - {name: w, stack: {pattern: \"a > b > *\", mean_longer: 1s}}\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := process(b, c.rules)
			text := strings.Repeat("abcd)))e)),", 1<<15)
			n := 0
			s := &script{begin: 1e9, at: 1e9}
			s.do(text)
			slots := s.slots
			begin := cpu(b)
			for b.Loop() {
				s.slots, s.begin, n = slots, 1e9, n+len(slots)
				if _, err := p.Poll([]Thread{{s, 1, true}}, s.at, 1<<30); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu(b)-begin)/float64(n), "cpu-ns/slot")
		})
	}
}

// Each call of a watched method is counted once, with how long it took, whatever the limits say and however many they are.
func TestEnded(t *testing.T) {
	p := process(t, "  - {name: long, method: {name: a, longer: 1h}}\n  - {name: longer, method: {name: a, longer: 1h}}\n  - {name: jank, frame: {method: b, slow: 100ms}}\n"+
		"  - {name: mean, stack: {pattern: \"a > c\", mean_longer: 1h, calls: 2}}\n")
	var got []string
	p.Ended = func(method string, took time.Duration) { got = append(got, fmt.Sprint(method, " ", took)) }
	s := new(script).do("ma.c.))b..)")
	poll(t, p, 1000, s)
	poll(t, p, 1000, s.do("a...b.))"))
	if want := []string{"a 2ms", "b 2ms", "b 1ms", "a 4ms"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}
