package export

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"braid/inline"
	"braid/internal/kevent"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	t0  = uint64(2e9) // when the programs of these tests begin; ticks are ns
	ms  = uint64(1e6)
	pid = 10
)

func comm(s string) (c [16]byte) {
	copy(c[:], s)
	return c
}

// load writes a trace and puts it on the timeline.
func load(t testing.TB, fill func(w *tracefile.Writer) error) *timeline.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.braid")
	w, err := tracefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fill(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := tracefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// calls builds a ring of thread tid: "name at" enters, ") at" leaves; at is in µs after t0.
func calls(tid uint32, name string, addr func(string) uint64, script string) *tracefile.Ring {
	r := &tracefile.Ring{Pid: pid, Tid: tid, Name: comm(name), Flags: tracefile.RingComplete, Begin: t0, End: t0 + 100*ms}
	f := strings.Fields(script)
	for i := 0; i < len(f); i += 2 {
		var us uint64
		if _, err := fmt.Sscan(f[i+1], &us); err != nil {
			panic(f[i+1])
		}
		if f[i] == ")" {
			r.Slots = inline.AppendExit(r.Slots, t0+us*1000)
		} else {
			r.Slots = inline.AppendEntry(r.Slots, t0+us*1000, addr(f[i]))
		}
	}
	return r
}

// switches puts a thread on a CPU or takes it off.
func switches(b []byte, at uint64, cpu uint16, from, to uint32, state uint32) []byte {
	h := kevent.Header{Time: t0 + at*1000, CPU: cpu, Tid: from}
	e := kevent.Switch{PrevState: state, NextTid: to}
	if from != 0 {
		h.Flags, e.PrevTgid = h.Flags|kevent.FlagPrevTarget, pid
	}
	if to != 0 {
		h.Flags, e.NextTgid = h.Flags|kevent.FlagNextTarget, pid
	}
	return kevent.AppendSwitch(b, h, e)
}

// story is a trace of two threads with every mark that a picture can have. The names are the methods'.
func story(t testing.TB, names map[string]string, command, worker string) *timeline.Trace {
	addr := map[string]uint64{}
	var symbols []tracefile.Symbol
	for i, k := range []string{"main", "busy", "tiny", "io", "work"} {
		addr[k] = 0x400000 + uint64(i)*0x100
		name := k
		if n, ok := names[k]; ok {
			name = n
		}
		symbols = append(symbols, tracefile.Symbol{Addr: addr[k], Size: 0x80, Name: name, Raw: name})
	}
	of := func(k string) uint64 { return addr[k] }
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "tiny %d ) %d ", 2000+i*20, 2010+i*20)
	}
	first := calls(pid, command, of, ") 500 main 1000 busy 1500 "+many.String()+") 20000 io 30000 ) 60000")
	first.Flags = 0 // older records were overwritten
	return load(t, func(w *tracefile.Writer) error {
		b := switches(nil, 0, 0, 0, pid, 0)
		b = switches(b, 5000, 1, 0, 11, 0)
		b = switches(b, 20000, 0, pid, 0, kevent.StateSleeping)
		h := kevent.Header{Time: t0 + 29*ms, Tid: pid}
		b = kevent.AppendWaking(b, h, kevent.Waking{WakerTid: 11, WakerTgid: pid, Tgid: pid, Comm: comm(command)})
		b = switches(b, 30000, 0, 0, pid, 0)
		b = switches(b, 31000, 0, pid, 0, kevent.StateBlocked)
		rq := kevent.Rq{ID: 1, Sector: 8, Dev: 254 << 20, Bytes: 1 << 20, OwnerTid: pid, OwnerPid: pid, Op: kevent.OpWrite}
		h.Time = t0 + 31*ms
		b = kevent.AppendRqIssue(b, h, rq)
		second := rq
		second.ID, second.Sector = 2, 4096
		h.Time = t0 + 32*ms
		b = kevent.AppendRqIssue(b, h, second)
		for i := range 50 { // too quick to be seen: the strip shows shares
			at := uint64(40000 + i*40)
			b = switches(b, at, 1, 11, 0, kevent.StateSleeping)
			b = kevent.AppendWaking(b, kevent.Header{Time: t0 + (at+10)*1000, Tid: 11}, kevent.Waking{Tgid: pid, Comm: comm(worker)})
			b = switches(b, at+20, 1, 0, 11, 0)
		}
		h.Time, rq.IssueNs = t0+45*ms, t0+31*ms
		b = kevent.AppendRqComplete(b, h, rq)
		h.Time, second.IssueNs = t0+50*ms, t0+32*ms
		b = kevent.AppendRqComplete(b, h, second)
		h.Time = t0 + 55*ms
		b = kevent.AppendWaking(b, h, kevent.Waking{Tgid: pid, Comm: comm(command)})
		b = switches(b, 55100, 0, 0, pid, 0)
		h.Time = t0 + 56*ms
		b = kevent.AppendFsync(b, h, kevent.Fsync{StartNs: t0 + 31*ms, Tgid: pid, Call: kevent.CallFsync})
		h.Time = t0 + 80*ms
		b = kevent.AppendLost(b, kevent.Header{Time: t0 + 80*ms}, kevent.Lost{SinceNs: t0 + 70*ms, Count: 37, Name: [32]byte(append([]byte("kernel_ring_full_switch"), make([]byte, 9)...))})
		return errors.Join(
			w.WriteMeta(&tracefile.Meta{Command: []string{"./" + command}, Pid: pid, Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: t0 + 100*ms}}),
			w.WriteClock(&tracefile.Clock{Counter: tracefile.CounterTSC, Samples: []tracefile.ClockSample{{Before: 1e9, After: 1e9, BootNs: 1e9}, {Before: 3e9, After: 3e9, BootNs: 3e9}}}),
			w.WriteModules([]tracefile.Module{{Path: "/bin/app", Start: 0x400000, End: 0x500000, Instrumented: true}}),
			w.WriteSymbols(symbols), w.WriteRing(first), w.WriteRing(calls(11, worker, of, "work 5000 ) 40000 work 50000 ) 50010")), w.WriteEvents(b),
			w.WriteLost(&tracefile.Lost{Counts: map[string]uint64{"kernel_ring_full_switch": 37, "ring_threads_missed": 1}}))
	})
}

func draw(t testing.TB, tr *timeline.Trace, width int) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := SVG(&b, tr, SVGOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSVGGolden(t *testing.T) {
	got := draw(t, story(t, nil, "app", "worker"), 800)
	path := filepath.Join("testdata", "story.svg")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the picture changed; look at it, then run go test -update: %s", diff)
	}
	if again := draw(t, story(t, nil, "app", "worker"), 800); again != got {
		t.Error("the same trace gave another picture")
	}
	for _, want := range []string{"tiny ×500", "class=\"cut\"", "class=\"gone\"", "class=\"mark\"", ">fsync<", "write 1 MiB",
		"ring_threads_missed 1", "device 254:0", "prefers-color-scheme:dark"} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

// texts parses a picture strictly, and returns its texts.
func texts(t testing.TB, svg string) (out []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	d.Strict = true
	depth := 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			depth++
			switch tok.Name.Local {
			case "svg", "title", "style", "rect", "path", "text", "g":
			default:
				t.Errorf("element %s", tok.Name.Local)
			}
			for _, a := range tok.Attr {
				switch a.Name.Local {
				case "xmlns", "width", "height", "viewBox", "role", "class", "x", "y", "rx", "d":
				default:
					t.Errorf("attribute %s", a.Name.Local)
				}
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			out = append(out, string(tok))
		case xml.ProcInst, xml.Directive, xml.Comment:
			t.Errorf("%T in the picture", tok)
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are open", depth)
	}
	return out
}

func TestSVGHostileNames(t *testing.T) {
	for _, name := range []string{
		"</text><script>alert(1)</script>", `"><rect onload="x"`, "a&b&lt;&#0;", "]]>", "<!--", "nul\x00esc\x1b[2J\x7f", "\xff\xfe\x80",
		"line\nfeed\ttab", "right\u202eto left\u2066", "\ufffe\uffff\U0001f600", strings.Repeat("長い名前", 2000), strings.Repeat("x", 60000), " ", "\u0085",
	} {
		short := name
		if len(short) > 15 {
			short = short[:15]
		}
		names := map[string]string{"main": name, "busy": name, "tiny": name, "io": name, "work": name}
		for _, s := range texts(t, draw(t, story(t, names, name, short), 500)) {
			for _, r := range s {
				if r != '\n' && r != ' ' && !unicode.IsGraphic(r) {
					t.Errorf("%q has %U", name, r)
				}
			}
		}
	}
}

// Whatever the trace's length, the picture has no more elements than its width and depth allow.
func TestSVGBounded(t *testing.T) {
	var slots []uint64
	var b []byte
	at := t0
	for i := range 200_000 {
		slots = inline.AppendEntry(slots, at, 0x400000+uint64(i%7)*0x100)
		slots = inline.AppendExit(slots, at+uint64(i%1000))
		at += 1000
		h := kevent.Header{Time: at, Tid: pid}
		if i%2 == 0 {
			b = kevent.AppendRqComplete(b, h, kevent.Rq{ID: uint64(i), Dev: uint32(i%40) << 20, Op: kevent.OpRead, Bytes: 512, IssueNs: at - 900})
		}
		b = switches(b, (at-t0)/1000, 0, pid, 0, uint32(i%3))
		b = switches(b, (at-t0)/1000, 0, 0, pid, 0)
	}
	for range 100 { // deep
		slots = inline.AppendEntry(slots, at, 0x400000)
	}
	tr := load(t, func(w *tracefile.Writer) error {
		return errors.Join(
			w.WriteMeta(&tracefile.Meta{Command: []string{"app"}, Pid: pid, Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: at + ms}}),
			w.WriteClock(&tracefile.Clock{Counter: tracefile.CounterTSC, Samples: []tracefile.ClockSample{{Before: 1e9, After: 1e9, BootNs: 1e9}, {Before: 3e9, After: 3e9, BootNs: 3e9}}}),
			w.WriteModules([]tracefile.Module{{Path: "/bin/app", Start: 0x400000, End: 0x500000}}),
			w.WriteRing(&tracefile.Ring{Pid: pid, Tid: pid, Flags: tracefile.RingComplete, Begin: t0, End: at + ms, Slots: slots}), w.WriteEvents(b))
	})
	got := draw(t, tr, MinSVGWidth)
	texts(t, got)
	if n := strings.Count(got, "<rect"); n > 2*MinSVGWidth*(maxSVGDepth+maxSVGDevices*maxSVGLanes) {
		t.Errorf("%d rectangles", n)
	}
	if len(got) > 2<<20 {
		t.Errorf("%d bytes", len(got))
	}
	if !regexp.MustCompile(`>\d+ calls below the deepest row`).MatchString(got) || !strings.Contains(got, "further devices") {
		t.Error("it does not say what is not shown")
	}
}

func TestSVGEmptyAndWidth(t *testing.T) {
	tr := load(t, func(w *tracefile.Writer) error { return w.WriteMeta(&tracefile.Meta{}) })
	texts(t, draw(t, tr, 0))
	for _, w := range []int{-1, MinSVGWidth - 1, MaxSVGWidth + 1} {
		if _, err := SVG(io.Discard, tr, SVGOptions{Width: w}); err == nil {
			t.Errorf("width %d was accepted", w)
		}
	}
	texts(t, draw(t, story(t, nil, "app", "worker"), MaxSVGWidth))
}
