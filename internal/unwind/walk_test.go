package unwind

import (
	"slices"
	"testing"
)

// words is memory, by address.
type words map[uint64]uint64

func (m words) Word(addr uint64) (uint64, bool) {
	v, ok := m[addr]
	return v, ok
}

// Without tables, frame pointers lead on if they may.
func TestChain(t *testing.T) {
	mem := words{0x1000: 0x1040, 0x1008: 0x401, 0x1040: 0, 0x1048: 0x501}
	start := Regs{PC: 0x301}
	start.R[AMD64.fp], start.R[AMD64.sp] = 0x1000, 0xff0
	w := Walker{Arch: AMD64, Limit: 10, FramePointers: true, Find: func(addr uint64) Code { return Code{Known: addr < 0x500} }}
	regs := start
	frames, end, tables, chained := w.Walk(nil, &regs, mem)
	if want := []uint64{0x301, 0x400, 0x500}; !slices.Equal(frames, want) || end != Chain || tables || !chained {
		t.Errorf("%x, end %d, %v %v", frames, end, tables, chained)
	}
	delete(mem, 0x1048)
	regs = start
	if frames, end, _, _ = w.Walk(nil, &regs, mem); len(frames) != 2 || end != Cut {
		t.Errorf("memory is missing: %x, end %d", frames, end)
	}
	mem[0x1040], mem[0x1048] = 0x1000, 0x401 // a circle
	regs = start
	if frames, end, _, _ = w.Walk(nil, &regs, mem); len(frames) > 3 || end != Bad {
		t.Errorf("a circle: %x, end %d", frames, end)
	}
	w.FramePointers = false
	regs = start
	if frames, end, _, _ = w.Walk(nil, &regs, mem); len(frames) != 1 || end != NoTable {
		t.Errorf("frame pointers were not allowed: %x, end %d", frames, end)
	}
	w.Limit, w.FramePointers = 1, true
	regs = start
	if frames, end, _, _ = w.Walk(nil, &regs, mem); len(frames) != 1 || end != Depth {
		t.Errorf("one frame is allowed: %x, end %d", frames, end)
	}
}

// On arm64 a signal handler returns to the vdso's trampoline, and an innermost function of the vdso to its link register.
// Addresses are signed.
func TestARM64Vdso(t *testing.T) {
	const signed = 0x7a << 56
	caller := &Table{arch: ARM64, rows: map[uint64]*row{}}
	w := Walker{Arch: ARM64, Limit: 10, FramePointers: true, Find: func(addr uint64) Code {
		switch {
		case addr >= 0x9000 && addr < 0xa000: // the vdso
			return Code{Known: true, Bias: 0x9000, Trampoline: addr == 0x9800}
		case addr < 0x1000: // a program with tables, which know nothing here
			return Code{Known: true, Table: caller}
		}
		return Code{}
	}}
	var regs Regs
	regs.PC, regs.R[30], regs.R[29], regs.R[31] = 0x9100, signed|0x500, 0x7000, 0x6f00
	mem := words{0x7000: 0, 0x7008: signed | 0x700}
	frames, end, _, _ := w.Walk(nil, &regs, mem)
	if want := []uint64{0x9100, 0x4ff, 0x6ff}; !slices.Equal(frames, want) || end != Chain {
		t.Errorf("a function of the vdso: %x, end %d", frames, end)
	}

	regs = Regs{PC: 0x9800} // the trampoline itself
	regs.R[31] = 0x6000
	mem = words{}
	for i := range uint64(33) {
		mem[0x6000+arm64SigRegs+i*8] = i
	}
	mem[0x6000+arm64SigRegs+29*8], mem[0x6000+arm64SigRegs+31*8], mem[0x6000+arm64SigPC] = 0x7000, 0x6f00, 0x600
	mem[0x7000], mem[0x7008] = 0, 0x700
	frames, _, _, _ = w.Walk(nil, &regs, mem)
	if want := []uint64{0x9800, 0x600, 0x6ff}; !slices.Equal(frames, want) { // what was interrupted is no return address
		t.Errorf("a signal frame: %x", frames)
	}
}

func TestExpressions(t *testing.T) {
	var regs Regs
	regs.PC = 0x40107b
	regs.R[7] = 0x1000
	m := machine{regs: &regs, arch: AMD64, mem: words{0x1008: 77}}
	for _, c := range []struct {
		name    string
		program []byte
		want    uint64
		bad     bool
	}{
		{"a linkage table's", []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x1010, false}, // rsp+8+(rip&15>=11)<<3
		{"memory", []byte{0x77, 8, 0x06}, 77, false},
		{"no such memory", []byte{0x77, 16, 0x06}, 0, true},
		{"arithmetic", []byte{0x35, 0x33, 0x1e, 0x32, 0x1c, 0x12, 0x22, 0x1f, 0x20}, 25, false}, // ~-(2*(5*3-2))
		{"signed constants", []byte{0x09, 0xff, 0x0b, 0xfe, 0xff, 0x29}, 0, false},
		{"a jump", []byte{0x31, 0x28, 2, 0, 0x31, 0x31, 0x37}, 7, false},
		{"a circle", []byte{0x31, 0x2f, 0xfc, 0xff}, 0, true},
		{"nothing", nil, 0, true},
		{"half an operand", []byte{0x0c, 1, 2}, 0, true},
		{"nonsense", []byte{0xff}, 0, true},
	} {
		got, err := m.eval(c.program)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%s: %#x, %v", c.name, got, err)
		}
	}
}
