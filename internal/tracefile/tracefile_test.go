package tracefile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

func TestRoundTrip(t *testing.T) {
	r := read(t, sample(t))
	check := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -written +read\n%s", what, d)
		}
	}
	meta, err := r.Meta()
	check("meta", meta, sampleMeta, err)
	clock, err := r.Clock()
	check("clock", clock, sampleClock, err)
	processes, err := r.Processes()
	check("processes", processes, sampleProcesses, err)
	modules, err := r.Modules()
	check("modules", modules, sampleModules, err)
	symbols, err := r.Symbols()
	check("symbols", symbols, sampleSymbols, err)
	lost, err := r.Lost()
	check("lost", lost, &Lost{Counts: map[string]uint64{"kernel_ring_full_switch": 6}, Hooks: append(slices.Clone(sampleLost.Hooks), sampleLost.Hooks...)}, err)
	var rings []*Ring
	for ring, err := range r.Rings() {
		if err != nil {
			t.Fatal(err)
		}
		ring.Slots = slices.Clone(ring.Slots)
		rings = append(rings, ring)
	}
	check("rings", rings, []*Ring{sampleRing, sampleTorn}, nil)
	var heads []uint32
	for _, h := range r.RingHeaders() {
		heads = append(heads, h.Tid, h.Sequence)
	}
	check("ring headers", heads, []uint32{4242, 3, 4243, 0}, nil)
	var events []byte
	for b, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, b...)
	}
	want := sampleEvents()
	check("events", events, append(slices.Clone(want), want[:56]...), nil)

	if !r.Complete() {
		t.Error("the file is complete but does not say so")
	}
	if got := r.Unknown(); !reflect.DeepEqual(got, map[Kind]int{0x77: 1}) {
		t.Errorf("unknown kinds: %v", got)
	}
	if p := r.Problems(); len(p) != 1 || !errors.Is(p[0], ErrUnknown) {
		t.Errorf("problems: %v", p)
	}
}

func TestDumpGolden(t *testing.T) {
	whole := sample(t)
	damaged := slices.Clone(whole)
	i := bytes.Index(damaged, []byte("ns::work"))
	damaged[i] ^= 1
	for name, b := range map[string][]byte{"whole": whole, "cut": whole[:len(whole)-200], "damaged": damaged} {
		var out bytes.Buffer
		if err := Dump(&out, read(t, b), DumpOptions{}); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, out.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), out.String()); d != "" {
			t.Errorf("%s: -want +got (go test -update rewrites it)\n%s", name, d)
		}
	}
}

func TestDumpLimitAndKinds(t *testing.T) {
	var out bytes.Buffer
	if err := Dump(&out, read(t, sample(t)), DumpOptions{Kinds: []Kind{KindRing}, Limit: 4}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"... 6 more slots", "\nring, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\nmeta") {
		t.Errorf("meta was not asked for:\n%s", &out)
	}
}

// contents returns every content of a file by its offset, and fails on anything but damage.
func contents(t *testing.T, r *Reader) map[uint64]string {
	t.Helper()
	all := map[uint64]string{}
	for s := range r.Sections() {
		b, err := r.Content(s, nil)
		if errors.Is(err, ErrChecksum) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[s.Offset] = s.Kind.String() + string(b)
	}
	return all
}

func TestCutAtEveryByte(t *testing.T) {
	whole := sample(t)
	full := read(t, whole)
	want := contents(t, full)
	for n := range whole {
		r, err := NewReader(bytes.NewReader(whole[:n]), int64(n))
		if err != nil {
			if n >= fileHeaderSize || !errors.Is(err, ErrNotTrace) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		got := contents(t, r)
		for s := range full.Sections() {
			_, ok := got[s.Offset]
			if fits := s.Offset+sectionHeaderSize+s.Length <= uint64(n); ok != fits {
				t.Fatalf("cut at %d: section at %d, %d bytes: read is %v", n, s.Offset, s.Length, ok)
			} else if ok && got[s.Offset] != want[s.Offset] {
				t.Fatalf("cut at %d: section at %d has another content", n, s.Offset)
			}
		}
		if r.Complete() {
			t.Fatalf("cut at %d: said to be complete", n)
		}
		if !slices.ContainsFunc(r.Problems(), func(err error) bool { return errors.Is(err, ErrTruncated) }) {
			t.Fatalf("cut at %d: not reported, but %v", n, r.Problems())
		}
		if err := Dump(&bytes.Buffer{}, r, DumpOptions{}); err != nil {
			t.Fatalf("cut at %d: dump: %v", n, err)
		}
	}
}

func TestFlipEveryByte(t *testing.T) {
	whole := sample(t)
	full := read(t, whole)
	want := contents(t, full)
	usual := len(full.Problems())
	padding := 0
	for i := range whole {
		b := slices.Clone(whole)
		b[i] ^= 0xa5
		r, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		got := contents(t, r)
		lost := 0
		for off, w := range want {
			if g, ok := got[off]; !ok {
				lost++
			} else if g != w {
				t.Fatalf("byte %d: section at %d is wrong and not reported", i, off)
			}
		}
		if lost > 1 || len(got) > len(want) {
			t.Fatalf("byte %d: %d sections lost, %d of %d read", i, lost, len(got), len(want))
		}
		if len(r.Problems()) <= usual {
			if lost > 0 {
				t.Fatalf("byte %d: a section is lost and not reported", i)
			}
			padding++
		}
		if err := r.Verify(); err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		if err := Dump(&bytes.Buffer{}, r, DumpOptions{}); err != nil {
			t.Fatalf("byte %d: dump: %v", i, err)
		}
	}
	// Nothing covers the zero bytes between sections, and the header of the section of an unknown kind is the usual
	// problem or another one.
	if max := (full.Len() + 1) * 7; padding > max {
		t.Errorf("%d changed bytes had no effect, at most %d are padding", padding, max)
	}
}

func TestWrongFiles(t *testing.T) {
	whole := sample(t)
	newer := slices.Clone(whole[:fileHeaderSize])
	newer[12] = Version + 1
	newer = append(resum(newer), "whatever comes then"...)
	swapped := slices.Clone(whole[:fileHeaderSize])
	slices.Reverse(swapped[8:12])
	for name, c := range map[string]struct {
		b    []byte
		is   error
		says string
	}{
		"empty":     {nil, ErrNotTrace, "empty"},
		"elf":       {[]byte("\x7fELF\x02\x01\x01"), ErrNotTrace, "ELF"},
		"gzip":      {[]byte("\x1f\x8b\x08\x00\x00"), ErrNotTrace, "gzip"},
		"perfetto":  {[]byte("\x0a\x10\x08\x80\x01\x52\x00"), ErrNotTrace, "this is a Perfetto trace, not a braid trace"},
		"perfdata":  {[]byte("PERFILE2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), ErrNotTrace, "perf.data"},
		"uftrace":   {[]byte("Ftrace!\x00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), ErrNotTrace, "uftrace"},
		"json":      {[]byte("{\"traceEvents\": [\n  {}\n]}  and more of this"), ErrNotTrace, "JSON"},
		"text":      {[]byte("methods\n  main 12 calls and so on and so on\n"), ErrNotTrace, "text"},
		"zeros":     {make([]byte, 100), ErrNotTrace, "zeros"},
		"textmode":  {[]byte("\x89braid\r\n\x1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), ErrNotTrace, "transferred as text"},
		"cut":       {whole[:20], ErrNotTrace, "ends within its header"},
		"magiconly": {whole[:3], ErrNotTrace, "ends within its header"},
		"newer":     {newer, ErrVersion, "format version 2, this braid reads up to version 1"},
		"bigendian": {swapped, ErrVersion, "big-endian"},
		"random":    {[]byte("\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89aaaaaaaaaa"), ErrNotTrace, "80 81 82"},
	} {
		_, err := NewReader(bytes.NewReader(c.b), int64(len(c.b)))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// resum corrects the checksum of a file header.
func resum(b []byte) []byte {
	return le.AppendUint32(b[:20], checksum(b[:20]))
}

func TestHostileLengths(t *testing.T) {
	// Lengths far beyond the file must not be believed, whatever their checksum says.
	for _, length := range []uint64{1, 100, MaxContent, MaxContent + 1, 1 << 40, 1<<63 - 1, 1<<64 - 1, 1<<64 - 40} {
		b := appendFileHeader(nil)
		b = sectionHeader{kind: KindRing, length: length}.append(b)
		r := read(t, b)
		if r.Len() != 0 || len(r.Problems()) != 1 || !errors.Is(r.Problems()[0], ErrTruncated) {
			t.Errorf("length %d: %d sections, problems %v", length, r.Len(), r.Problems())
		}
	}
}
