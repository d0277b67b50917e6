package sample

import (
	"bytes"
	"strings"
	"testing"

	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// sampleBody is a sample's body with two kernel frames, three user frames, registers, and some stack.
func sampleBody(copied bool) []byte {
	var b []byte
	for _, v := range []uint64{0x401000, 12<<32 | 11, 5_000, 3, 1_000_000, 8, contextKernel, 0xffffffff81000010, 0xffffffff81000020,
		contextUser, 0x401000, 0x402000, 0x403000, ^uint64(0)} {
		b = le.AppendUint64(b, v)
	}
	if !copied {
		return b
	}
	b = le.AppendUint64(b, unix.PERF_SAMPLE_REGS_ABI_64)
	for i := range perfRegs {
		b = le.AppendUint64(b, uint64(0x1000+i*8))
	}
	b = le.AppendUint64(b, 32)
	b = append(b, bytes.Repeat([]byte{7}, 32)...)
	return le.AppendUint64(b, 24)
}

func TestDecodeSample(t *testing.T) {
	s, _, ok := decodeSample(sampleBody(true), true, nil)
	if !ok || s.pid != 11 || s.tid != 12 || s.cpu != 3 || s.period != 1_000_000 {
		t.Errorf("%v %+v", ok, s)
	}
	if d := cmp.Diff([][]uint64{{0xffffffff81000010, 0xffffffff81000020}, {0x401000, 0x402000, 0x403000}}, [][]uint64{s.kernel, s.user}); d != "" {
		t.Errorf("frames: -want +got\n%s", d)
	}
	if v, ok := s.stack.Word(s.stack.base + 16); !ok || v != 0x0707070707070707 || len(s.stack.b) != 24 {
		t.Errorf("%x, %v of %d bytes of stack", v, ok, len(s.stack.b))
	}
	if _, ok := s.stack.Word(s.stack.base + 17); ok {
		t.Error("a word beyond the copy")
	}
	body := sampleBody(true)
	for n := range len(body) { // cut anywhere, it is no sample
		if _, _, ok := decodeSample(body[:n], true, nil); ok {
			t.Errorf("%d of %d bytes are taken for a sample", n, len(body))
		}
	}
}

func FuzzRecords(f *testing.F) {
	for _, copied := range []bool{false, true} {
		body := sampleBody(copied)
		b := le.AppendUint32(nil, unix.PERF_RECORD_SAMPLE)
		b = le.AppendUint32(b, uint32(8+len(body))<<16)
		f.Add(append(b, body...), copied)
	}
	f.Fuzz(func(t *testing.T, b []byte, copied bool) {
		for _, r := range records(nil, b, 0) {
			decodeSample(r.body, copied, nil)
			if m, ok := decodeMmap(r.body); ok && m.end <= m.start {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// A later mapping takes what it covers, and children begin with what their parent had.
func TestSpace(t *testing.T) {
	s := newSpaces()
	for i, m := range []mmapRecord{
		{pid: 1 << 30, start: 0x1000, end: 0x9000, path: "/a"},
		{pid: 1 << 30, start: 0x3000, end: 0x5000, path: "/b (deleted)"},
		{pid: 1 << 30, start: 0x8000, end: 0xa000, path: "//anon"},
	} {
		s.mapped(m, uint64(i+1))
	}
	child := s.of(1<<30).fork(1<<30+1, 9)
	for addr, path := range map[uint64]string{0xfff: "", 0x1000: "/a", 0x2fff: "/a", 0x3000: "/b", 0x4fff: "/b", 0x5000: "/a", 0x7fff: "/a", 0x8000: "//anon", 0xa000: ""} {
		for _, p := range []*space{s.of(1 << 30), child} {
			got := ""
			if m := p.find(addr); m != nil {
				got = m.m.Path
				if addr < m.m.Start || addr >= m.m.End || p == child && (m.since != 9 || m.pid != child.pid) {
					t.Errorf("%x lies in %+v", addr, m)
				}
			}
			if got != path {
				t.Errorf("%x lies in %q, want %q", addr, got, path)
			}
		}
	}
	if m := child.find(0x5000); m.m.Offset != 0x4000 {
		t.Errorf("the rest of a mapping has offset %x", m.m.Offset)
	}
}

const kallsyms = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000100 t helper
ffffffff81000180 r data
ffffffff81000200 W weak
ffffffffc0000000 t $x	[ext4]
ffffffffc0000000 t ext4_read	[ext4]
ffffffffc0000100 t ext4_write	[ext4]
ffffffffc0100000 t bpf_prog_1	[bpf]
ffffffffc0200000 t bpf_prog_2	[bpf]
`

func TestKernelNames(t *testing.T) {
	out := &tracefile.Frames{}
	addrs := []uint64{0xffffffff80000000, 0xffffffff81000010, 0xffffffff81000110, 0xffffffff81000190, 0xffffffffc0000020,
		0xffffffffc0000120, 0xffffffffc0100010, 0xffffffffc0200010}
	nameKernel(out, addrs, parseKallsyms(strings.NewReader(kallsyms)))
	table := out.Table()
	var got []string
	for _, a := range addrs {
		m, f := table.Find(0, a, 1)
		switch {
		case m == nil:
			got = append(got, "-")
		case f == nil:
			got = append(got, m.Path)
		default:
			got = append(got, f.Name+" "+m.Path)
		}
	}
	want := []string{"-", "_text [kernel.kallsyms]", "helper [kernel.kallsyms]", "helper [kernel.kallsyms]", "ext4_read [ext4]", "ext4_write [ext4]",
		"bpf_prog_1 [bpf]", "bpf_prog_2 [bpf]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	out = &tracefile.Frames{}
	nameKernel(out, addrs, parseKallsyms(strings.NewReader("0000000000000000 T _text\n0000000000000000 T helper\n")))
	if m, f := out.Table().Find(0, addrs[2], 1); m == nil || m.Flags&tracefile.MappingHidden == 0 || f != nil {
		t.Errorf("addresses are hidden: %+v, %+v", m, f)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Hz: -1}, {Hz: 1 << 30}, {StackBytes: 100}, {StackBytes: 70_000}, {StackBytes: 8193}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	o := Options{}
	if err := o.check(); err != nil || o.Hz != DefaultHz || o.StackBytes != DefaultStackBytes || o.Stacks != tracefile.StackAuto {
		t.Errorf("the default is %+v, %v", o, err)
	}
}
