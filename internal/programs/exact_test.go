package programs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// startup are functions of the C library's start files, which no compiler run of ours made.
var startup = []string{"_start", "_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones", "__do_global_dtors_aux",
	"atexit", "__pthread_atfork", "pthread_atfork", "_dl_relocate_static_pie"}

// profile is what callgrind says of the functions with stubs.
type profile struct {
	count map[place]uint64
	pairs map[pair]uint64
}

// profileOf sums callgrind's calls of functions with stubs. To callgrind a jump into another function is a call, too.
// That makes three things calls that are none; each is known by its exact place:
//
//   - the jump from a function to its .cold part, and the one back: neither leads to a function's entry,
//   - the jump back from the out-of-line code where a trace point registered its thread: once a thread in each file.
func profileOf(t *testing.T, arcs []arc, threads uint64, images []*image) profile {
	t.Helper()
	byName := map[string]*image{}
	for _, m := range images {
		byName[m.name] = m
	}
	p := profile{map[place]uint64{}, map[pair]uint64{}}
	registrations := map[string]uint64{}
	for _, a := range arcs {
		m := byName[a.target.object]
		if m == nil {
			continue
		}
		callee := m.at(a.target.addr)
		if callee == nil || callee.addr != a.target.addr || callee.entry != callee.addr || ours(callee) {
			continue
		}
		if !callee.stub {
			if !m.static {
				t.Errorf("%s has no stub", callee.name)
			}
			continue
		}
		var caller place
		if m := byName[a.site.object]; m != nil {
			if m.backFromSlow(a.site.addr) {
				registrations[m.name] += a.count
				continue
			}
			f := m.at(a.site.addr)
			switch {
			case f == nil || ours(f):
			case f.entry == 0:
				t.Errorf("which function is %s, the caller of %s, a part of?", f.name, callee.name)
			case f.stub || f.entry != f.addr:
				caller = place{m.name, f.entry}
			}
		}
		p.count[a.target] += a.count
		p.pairs[pair{caller, a.target}] += a.count
	}
	for _, m := range images {
		if n := registrations[m.name]; n != threads {
			t.Errorf("%s: %d entries came back from registering a thread, want %d", m.name, n, threads)
		}
	}
	return p
}

// ours reports whether a function is of braid's runtime, or the C library's.
func ours(f *function) bool {
	return strings.HasPrefix(f.name, "__braid_") || slices.Contains(startup, f.name)
}

// compareCounts checks that trace and callgrind have counted the same calls of each function.
func compareCounts(t *testing.T, c calls, p profile, images []*image) {
	t.Helper()
	differing := 0
	for k := range union(c.count, p.count) {
		if c.count[k] != p.count[k] {
			if differing++; differing <= 20 {
				t.Errorf("%s: braid has %d calls, callgrind %d", nameOf(k, images), c.count[k], p.count[k])
			}
		}
	}
	if len(c.count) == 0 || differing > 20 {
		t.Errorf("%d functions, %d differ", len(c.count), differing)
	}
}

// comparePairs checks that trace and callgrind have counted the same calls of each function by each other. A call by
// code without stubs is to braid one by the function that called that code: callgrind's calls from outside may be
// anybody's.
func comparePairs(t *testing.T, c calls, p profile, images []*image) {
	t.Helper()
	differing := 0
	for k := range union(c.pairs, p.pairs) {
		b, g := c.pairs[k], p.pairs[k]
		indirect := b >= g && b-g <= p.pairs[pair{callee: k.callee}]
		if k.caller == (place{}) {
			indirect = b <= g
		}
		if b != g && !indirect {
			if differing++; differing <= 20 {
				t.Errorf("%s from %s: braid has %d calls, callgrind %d", nameOf(k.callee, images), nameOf(k.caller, images), c.pairs[k], p.pairs[k])
			}
		}
	}
	if len(c.pairs) == 0 || differing > 20 {
		t.Errorf("%d pairs, %d differ", len(c.pairs), differing)
	}
}

func union[K comparable](a, b map[K]uint64) map[K]uint64 {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

func nameOf(p place, images []*image) string {
	if p == (place{}) {
		return "[outside]"
	}
	for _, m := range images {
		if m.name == p.object {
			if f := m.at(p.addr); f != nil {
				return f.name
			}
		}
	}
	return fmt.Sprintf("%s+%#x", p.object, p.addr)
}

// total sums counts.
func total[K comparable](m map[K]uint64) (n uint64) {
	for _, c := range m {
		n += c
	}
	return n
}

// exactRecording keeps every record.
var exactRecording = []string{"--kernel", "none", "--threads", "all", "--ring", "1G"}

// exact runs a command under braid and callgrind at once and checks that both have counted the same calls: of each
// function, and with pairs also by each caller, for which the images must be built without tail calls. threads is how
// many threads the command has.
func exact(t *testing.T, dir string, env []string, images []*image, threads uint64, pairs bool, words ...string) (outcome, calls) {
	t.Helper()
	o, arcs, file := underCallgrind(t, dir, env, exactRecording, words...)
	c, p := readTrace(t, file), profileOf(t, arcs, threads, images)
	compareCounts(t, c, p, images)
	if pairs {
		comparePairs(t, c, p, images)
	}
	for k, n := range c.cut {
		t.Errorf("%s: %d calls without a beginning", c.names[k], n)
	}
	t.Logf("%d calls of %d functions, %d pairs, %d calls left by a jump", total(c.count), len(c.count), len(c.pairs), total(c.unwound))
	return o, c
}

// allEnded checks that all that was entered has ended when the program ends.
func allEnded(t *testing.T, c calls) {
	t.Helper()
	for k, n := range c.left {
		t.Errorf("%s: %d calls were open at the end", c.names[k], n)
	}
}
