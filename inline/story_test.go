package inline

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

const storyStart = uint64(7)<<32 - 1050 // the low half wraps soon, and no record's is 0

// A story is one situation, whose decode is kept as text in testdata/NAME.txt.
type story struct {
	name  string
	about string
	begin uint64
	keep  int // newest slots that are left; 0: all
	make  func() *writer
}

func (s *story) ringSlots(w *writer) int {
	if s.keep == 0 {
		return len(w.slots)
	}
	return s.keep
}

func newStory() *writer { return &writer{methods: NewMethods(0), now: storyStart} }

// step is one record a letter, 100 ticks apart: A to Z enter a method, a to z one that control can come back into, ) leaves
// it, and a digit is control coming back that many methods further down.
func (w *writer) step(records string) {
	for _, r := range records {
		w.now += 100
		switch {
		case r == ')':
			w.exit()
		case r >= '0' && r <= '9':
			w.resumed(int(r - '0'))
		case r >= 'a' && r <= 'z':
			w.framed(0x40_0000 + uint64(r-'a'+'A')*0x10)
		default:
			w.entry(0x40_0000+uint64(r)*0x10, false)
		}
	}
}

// unwritten adds slots that a trace point reserved, and in which the lap before left what is given.
func (w *writer) unwritten(held ...uint64) { w.slots = append(w.slots, held...) }

var stories = slices.Concat(plainStories, resumedStories, unwrittenStories)

var plainStories = []story{
	{"nested", "three methods within each other, across a wrap of the counter's low half", storyStart, 0, func() *writer {
		w := newStory()
		w.step("ABC))BC)))")
		return w
	}},
	{"overwritten", "the ring keeps the newest 6 slots: two methods were entered before them", storyStart, 6, func() *writer {
		w := newStory()
		w.step("ABC)D)))")
		return w
	}},
	{"open", "the segment ends within two methods", storyStart, 0, func() *writer {
		w := newStory()
		w.step("AB)BC")
		return w
	}},
	{"wide", "an entry with a whole pointer, since its low half is reserved", storyStart, 0, func() *writer {
		w := newStory()
		w.entry(0x7f12_0000_0001, false)
		w.step("A))")
		return w
	}},
	{"wide-cut", "the oldest slot is an entry whose pointer is overwritten", storyStart, 3, func() *writer {
		w := newStory()
		w.entry(0x7f12_3456_7890, true)
		w.step("A)")
		w.slots, w.ends = w.slots[:3], w.ends[:2]
		w.step(")")
		return w
	}},
	{"asleep", "B lasts 1000 wraps; the recorder saw the cursor stand still", storyStart, 0, func() *writer {
		w := newStory()
		w.step("AB")
		w.idle(1000<<32 + 5)
		w.step("))")
		return w
	}},
	{"started-late", "the thread was asleep for 3 wraps before its first record", storyStart, 0, func() *writer {
		w := newStory()
		w.idle(3 << 32)
		w.step("AB))")
		return w
	}},
	{"reserved", "a word without meaning is left out", storyStart, 0, func() *writer {
		w := newStory()
		w.step("A")
		w.slots = append(w.slots, Pack(w.now, 9))
		w.step(")")
		return w
	}},
}

// TestStories compares each story's decode with its golden. go test -run Stories -update writes them.
func TestStories(t *testing.T) {
	for _, st := range stories {
		t.Run(st.name, func(t *testing.T) {
			w := st.make()
			s := w.ring(st.ringSlots(w), st.begin)
			out := decode(t, w.methods, s)
			check(t, s, &out)
			got := st.text(w.methods, s, &out)
			path := filepath.Join("testdata", "stories", st.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func (st *story) text(m *Methods, s *Segment, d *Decoded) string {
	var b strings.Builder
	name := func(i uint32) string {
		if r := m.Row(i); r.State != MethodUnknown {
			return fmt.Sprintf("%#x", r.Addr)
		}
		return "?"
	}
	fmt.Fprintf(&b, "# %s: %s (generator: story_test.go; times from the segment's begin)\n", st.name, st.about)
	fmt.Fprintf(&b, "segment of %d slots, complete %v, until +%d\n", len(s.Slots), s.Complete, s.End-s.Begin)
	for i, v := range s.Slots {
		for _, a := range s.Anchors {
			if a.Slot == uint64(i) {
				fmt.Fprintf(&b, "  anchor +%d to +%d\n", a.First-s.Begin, a.Until-s.Begin)
			}
		}
		fmt.Fprintf(&b, "  %016x\n", v)
	}
	b.WriteString("open at the start:")
	for _, m := range d.Open {
		b.WriteString(" " + name(m))
	}
	b.WriteString("\nevents\n")
	for _, e := range d.Events {
		fmt.Fprintf(&b, "  +%-14d %s %s\n", e.Counter-s.Begin, e.Kind, name(e.Method))
	}
	b.WriteString("slices, in the order in which they end\n")
	for _, c := range sliced(d, s) {
		fmt.Fprintf(&b, "  +%-14d +%-14d %*s%s", c.Begin-s.Begin, c.End-s.Begin, c.Depth*2, "", name(c.Method))
		for i, f := range []string{"cut-start", "cut-end", "unwound", "suspended", "reentered"} {
			if c.Flags&(1<<i) != 0 {
				b.WriteString(" " + f)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%+v\n", d.Stats)
	return b.String()
}
