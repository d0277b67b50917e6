package tracefile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	sampleSamples = &Samples{Event: SampleCPUClock, Stacks: StackAuto, Kernel: true, Frequency: 99, Samples: []Sample{
		{Time: 5_400_000_000, Tid: 4243, Tgid: 4242, CPU: 1, Flags: SampleKernel, Way: StackDWARF, End: EndComplete, Weight: 10_101_010,
			Kernel: []uint64{0xffffffff81000010, 0xffffffff81000123}, User: []uint64{0x7f0000000802, 0x555500001110, 0x555500001204}},
		{Time: 5_300_000_000, Tid: 4242, Tgid: 4242, Way: StackNone, End: EndNone, Weight: 7},
	}}
	sampleFrames = &Frames{
		Mappings: []Mapping{
			{Flags: MappingKernel, Start: 0xffffffff81000000, End: 0xffffffff82000000, Path: "[kernel.kallsyms]"},
			{Pid: 4242, Start: 0x555500001000, End: 0x555500003000, Offset: 0x1000, Bias: 0x555500000000, Path: "/usr/bin/app", BuildID: "00ff"},
			{Pid: 4242, Flags: MappingDeleted | MappingAnon, Start: 0x7f0000000000, End: 0x7f0000001000, Path: "/old.so"},
			{Pid: 4242, Start: 0x7f0000000000, End: 0x7f0000001000, Since: 5_350_000_000, Path: "/lib/new.so"},
		},
		Functions: []Function{
			{Mapping: 0, Start: 0xffffffff81000000, End: 0xffffffff81000020, Name: "finish", Raw: "finish"},
			{Mapping: 1, Start: 0x555500001200, End: 0x555500001300, Name: "main", Raw: "main"},
			{Mapping: 1, Start: 0x555500001100, End: 0x555500001200, Name: "ns::work(int)", Raw: "_ZN2ns4workEi"},
			{Mapping: 3, Start: 0x7f0000000800, End: 0x7f0000000900, Name: "fresh", Raw: "fresh"},
			{Mapping: 2, Start: 0x7f0000000800, End: 0x7f0000000900, Name: "stale", Raw: "stale"},
		},
	}
)

// sampled writes a trace with samples and reads it.
func sampled(t testing.TB) *Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.braid")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, err := range []error{w.WriteSamples(sampleSamples), w.WriteFrames(sampleFrames), w.WriteFrames(sampleFrames), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, b)
}

func TestSamplesRoundTrip(t *testing.T) {
	r := sampled(t)
	n := 0
	for s, err := range r.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		want := *sampleSamples
		want.Samples = append([]Sample(nil), want.Samples...)
		if d := cmp.Diff(want.Samples[0], s.Samples[0]); d != "" {
			t.Errorf("-written +read\n%s", d)
		}
		if got := s.Samples[1]; len(got.Kernel)+len(got.User) != 0 || got.Weight != 7 || got.Time != 5_300_000_000 {
			t.Errorf("the sample without frames became %+v", got)
		}
		if s.Event != want.Event || s.Frequency != 99 || !s.Kernel || s.Stacks != StackAuto {
			t.Errorf("head: %+v", s)
		}
		n++
	}
	f, err := r.Frames()
	if err != nil || n != 1 || len(r.Problems()) != 0 {
		t.Fatalf("%d sections, %v, %v", n, err, r.Problems())
	}
	half := &Frames{Mappings: f.Mappings[:4], Functions: f.Functions[:5]}
	if d := cmp.Diff(sampleFrames, half); d != "" {
		t.Errorf("-written +read\n%s", d)
	}
	if len(f.Functions) != 10 || f.Functions[6].Mapping != 5 {
		t.Errorf("the second section's functions lie in the wrong mappings: %+v", f.Functions)
	}
}

func TestFrameTable(t *testing.T) {
	table := sampleFrames.Table()
	for _, c := range []struct {
		pid        uint32
		addr, time uint64
		path, name string
	}{
		{0, 0xffffffff81000010, 1, "[kernel.kallsyms]", "finish"},
		{0, 0xffffffff81000020, 1, "[kernel.kallsyms]", ""},
		{4242, 0x5555000011ff, 1, "/usr/bin/app", "ns::work(int)"},
		{4242, 0x555500001200, 1, "/usr/bin/app", "main"},
		{4242, 0x555500001000, 1, "/usr/bin/app", ""},
		{4242, 0x7f0000000800, 5_300_000_000, "/old.so", "stale"},
		{4242, 0x7f0000000800, 5_400_000_000, "/lib/new.so", "fresh"},
		{4242, 0x7f0000001000, 5_400_000_000, "", ""},
		{4243, 0x7f0000000800, 5_400_000_000, "", ""},
	} {
		m, f := table.Find(c.pid, c.addr, c.time)
		path, name := "", ""
		if m != nil {
			path = m.Path
		}
		if f != nil {
			name = f.Name
		}
		if path != c.path || name != c.name {
			t.Errorf("pid %d, address %x at %d: %q in %q, want %q in %q", c.pid, c.addr, c.time, name, path, c.name, c.path)
		}
	}
}

func TestDumpSamples(t *testing.T) {
	var out bytes.Buffer
	if err := Dump(&out, sampled(t), DumpOptions{Limit: 3}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"cpu-clock, 99 Hz, stacks auto, kernel frames, 2 samples\n",
		"  5.400000000 cpu 1 tid 4243 tgid 4242 kernel weight 10101010 stack dwarf, complete\n" +
			"    kernel ffffffff81000010 finish+0x10 ([kernel.kallsyms])\n" +
			"    kernel ffffffff81000123 ? ([kernel.kallsyms])\n" +
			"    user   00007f0000000802 fresh+0x2 (/lib/new.so)\n" +
			"    user   0000555500001110 ns::work(int)+0x10 (/usr/bin/app)\n" +
			"    user   0000555500001204 main+0x4 (/usr/bin/app)\n" +
			"  5.300000000 cpu 0 tid 4242 tgid 4242 user weight 7 stack none, none\n",
		"/old.so build id \"\" deleted anonymous\n", "... 1 more mappings", "... 2 more functions",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}

func FuzzDecodeSamples(f *testing.F) {
	f.Add(AppendSamples(nil, sampleSamples))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSamples(b)
		if err != nil {
			return
		}
		if again, err := DecodeSamples(AppendSamples(nil, s)); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v became %v, %v", s, again, err)
		}
	})
}

func FuzzDecodeFrames(f *testing.F) {
	b, err := AppendFrames(nil, sampleFrames)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeFrames(b)
		if err != nil {
			return
		}
		table := s.Table()
		for i := range s.Functions {
			table.Find(s.Mappings[s.Functions[i].Mapping].Pid, s.Functions[i].Start, 1)
		}
		if b, err = AppendFrames(nil, s); err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeFrames(b); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v became %v, %v", s, again, err)
		}
	})
}
