package symbols

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// FuzzELF reads an image and uses all of it. Memory is bounded: a file of n bytes must not take much more than n bytes,
// except for what .gnu_debugdata unpacks to.
func FuzzELF(f *testing.F) {
	small := base(fn("_ZN1a2a2Ev", 0x1000, 16), fn("outer", 0x1100, 256), fn("inner", 0x1110, 0),
		syntheticSym{"label", 0x1110, 0, elf.STT_NOTYPE, elf.STB_LOCAL, 1})
	f.Add(small.bytes())
	for _, big := range []bool{false, true} {
		s := small
		s.is32, s.big, s.machine = true, big, elf.EM_ARM
		f.Add(s.bytes())
	}
	s := small
	xz, err := os.ReadFile(filepath.Join("testdata", "small.elf.xz"))
	if err != nil {
		f.Fatal(err)
	}
	s.extra, s.syms = xz, nil
	f.Add(s.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		img, err := ReadImage(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if img != nil {
				t.Error("an image and an error")
			}
			return
		}
		if img.Len() > len(b) && !slices.Contains(img.Sources, ".gnu_debugdata") {
			t.Errorf("%d functions from %d bytes", img.Len(), len(b))
		}
		last := uint64(0)
		n := 0
		for fn := range img.Functions() {
			if n > 0 && fn.Addr <= last {
				t.Errorf("%#x after %#x", fn.Addr, last)
			}
			if n++; n > 1000 {
				break
			}
			last = fn.Addr
			if fn.Addr+fn.Size < fn.Addr || img.segmentEnd(fn.Addr) < fn.Addr+fn.Size {
				t.Errorf("%+v leaves its segment", fn)
			}
			if fn.Size > 0 && img.find(fn.Addr) < 0 {
				t.Errorf("%+v is not found", fn)
			}
		}
		table := newTable(place{img, 0x7fff_f000, "m", true}, place{img, 0x1_7fff_f000, "n", true})
		table.Collisions()
		table.Lookup(last + 0x7fff_f000)
		table.Resolve32(uint32(last + 0x7fff_f000))
	})
}

// FuzzXZ unpacks with a limit.
func FuzzXZ(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "small.elf.xz"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 20
		if out, err := unpackXZ(b, limit); err == nil && len(out) > limit {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileCounts has files whose headers promise more than there is.
func TestHostileCounts(t *testing.T) {
	good := base(fn("f", 0x1000, 16)).bytes()
	shoff := int(good[0x28]) | int(good[0x29])<<8
	change := func(off int, b ...byte) []byte {
		bad := slices.Clone(good)
		copy(bad[off:], b)
		return bad
	}
	ff := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	symtab := shoff + 3*64
	for _, c := range []struct {
		name  string
		file  []byte
		whole bool // the file is refused as a whole, not only its symbols
	}{
		{"number of segments", change(0x38, 0xff, 0xff), true},
		{"size of a program header", change(0x36, 1), true},
		{"offset of segments", change(0x20, ff...), true},
		{"segment wraps", change(64+0x10, ff...), true},
		{"number of sections", change(0x3c, 0xff, 0xff), false},
		{"number of sections in section 0", func() []byte {
			b := change(0x3c, 0, 0)
			copy(b[shoff+0x20:], ff)
			return b
		}(), false},
		{"offset of sections", change(0x28, ff...), false},
		{"section names", change(0x3e, 0xfe, 0xff), false},
		{"size of .symtab", change(symtab+0x20, ff...), false},
		{"size of .symtab, possible for a sparse file", change(symtab+0x20, 0, 0, 0, 0x10), false},
		{"offset of .symtab", change(symtab+0x18, ff...), false},
		{"size of a symbol", change(symtab+0x38, 0), false},
		{"names of .symtab", change(symtab+0x28, 0xff), false},
		{"names of .symtab are no strings", change(symtab+0x28, 3), false},
		{"size of .strtab", change(symtab+64+0x20, ff...), false},
	} {
		var img *Image
		var err error
		n := allocated(func() { img, err = ReadImage(bytes.NewReader(c.file), int64(len(c.file))) })
		switch {
		case c.whole && err == nil:
			t.Errorf("%s: no error", c.name)
		case !c.whole && (err != nil || len(img.Problems) == 0 || img.Len() != 0 || len(img.Segments) != 1):
			t.Errorf("%s: %v, %+v", c.name, err, img)
		}
		if n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", c.name, n)
		}
	}
}
