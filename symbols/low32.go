package symbols

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// Records keep the low 32 bits of a method pointer. lowIndex finds the whole function for them, among the functions of
// instrumented modules.
//
// It is a hash table with open addressing. A slot leads to the first function with its low bits; if there are more,
// twins has all of them.
type lowIndex struct {
	shift uint8   // 32 minus the logarithm of the number of slots
	slots []int32 // index of an entry plus 1; 0 is empty. A power of two, at most half full.
	all   []lowEntry
	twins map[uint32][]int32 // low bits that stand for several functions: the entries
}

type lowEntry struct {
	low uint32
	mod int32
	fn  int32
}

func newLowIndex(mods []ModuleInfo) lowIndex {
	n := 0
	for i := range mods {
		if mods[i].Instrumented && mods[i].Image != nil {
			n += mods[i].Image.Len()
		}
	}
	log := max(bits.Len(uint(n))+1, 3)
	x := lowIndex{shift: uint8(32 - log), slots: make([]int32, 1<<log), all: make([]lowEntry, 0, n)}
	for i := range mods {
		m := &mods[i]
		if !m.Instrumented || m.Image == nil {
			continue
		}
		for fn, addr := range m.Image.funcs.starts {
			x.add(lowEntry{uint32(addr + m.Bias), int32(i), int32(fn)}, mods)
		}
	}
	return x
}

// hash takes the high bits of a product with 2^32 divided by the golden ratio (Knuth, 6.4): functions are aligned, so
// low bits say little.
func (x *lowIndex) hash(low uint32) uint32 {
	return (low * 0x9e3779b1) >> x.shift
}

// next is the slot after i.
func (x *lowIndex) next(i uint32) uint32 {
	return (i + 1) & uint32(len(x.slots)-1)
}

func (x *lowIndex) add(e lowEntry, mods []ModuleInfo) {
	i := x.hash(e.low)
	for ; x.slots[i] != 0; i = x.next(i) {
		old := x.slots[i] - 1
		if x.all[old].low != e.low {
			continue
		}
		o := x.all[old]
		if mods[o.mod].Image == mods[e.mod].Image && mods[o.mod].Bias == mods[e.mod].Bias {
			return // the same module, named twice: loaded, unloaded and loaded again at the same place
		}
		if x.twins == nil {
			x.twins = make(map[uint32][]int32)
		}
		if x.twins[e.low] == nil {
			x.twins[e.low] = []int32{old}
		}
		x.twins[e.low] = append(x.twins[e.low], int32(len(x.all)))
		x.all = append(x.all, e)
		return
	}
	x.slots[i] = int32(len(x.all)) + 1
	x.all = append(x.all, e)
}

// find returns the first entry for the bits, or -1.
func (x *lowIndex) find(low uint32) int {
	for i := x.hash(low); x.slots[i] != 0; i = x.next(i) {
		if e := x.slots[i] - 1; x.all[e].low == low {
			return int(e)
		}
	}
	return -1
}

// Resolve32 returns the function of an instrumented module whose entry address has these low 32 bits. For Thumb code the
// mode bit may be set or not. If there is none or more than one (see Candidates32) it returns false and a symbol that
// renders what is known: module+0xoffset with the whole address if the bits lie in one instrumented module only, else
// [unknown] or [ambiguous] with the bits alone.
func (t *Table) Resolve32(low uint32) (Symbol, bool) {
	e := t.findLow(low)
	if e < 0 {
		t.unresolved.Add(1)
		return t.unknown32(low), false
	}
	if t.low.twins[t.low.all[e].low] != nil {
		t.unresolved.Add(1)
		return Symbol{Addr: uint64(low), Name: fmt.Sprintf("[ambiguous]+%#x", low), Module: -1}, false
	}
	t.resolved.Add(1)
	return t.symbol(int(t.low.all[e].mod), int(t.low.all[e].fn)), true
}

// unknown32 renders bits that no function has.
func (t *Table) unknown32(low uint32) Symbol {
	mod, addr := -1, uint64(low)
	for i := range t.mods {
		if !t.mods[i].Instrumented {
			continue
		}
		for _, r := range t.mods[i].Ranges {
			past := uint64(low - uint32(r.Start)) // how far the bits lie beyond the start, modulo 4 GiB
			if past >= r.End-r.Start {
				continue
			}
			if mod >= 0 && r.Start+past != addr {
				return Symbol{Addr: uint64(low), Name: fmt.Sprintf("[unknown]+%#x", low), Module: -1}
			}
			mod, addr = i, r.Start+past
		}
	}
	if mod < 0 {
		return Symbol{Addr: uint64(low), Name: fmt.Sprintf("[unknown]+%#x", low), Module: -1}
	}
	return t.render(mod, addr)
}

// Candidates32 returns all functions of instrumented modules whose entry address has these low 32 bits. It does not
// count in Stats.
func (t *Table) Candidates32(low uint32) []Symbol {
	e := t.findLow(low)
	if e < 0 {
		return nil
	}
	entries := t.low.twins[t.low.all[e].low]
	if entries == nil {
		entries = []int32{int32(e)}
	}
	var out []Symbol
	for _, e := range entries {
		out = append(out, t.symbol(int(t.low.all[e].mod), int(t.low.all[e].fn)))
	}
	return out
}

func (t *Table) findLow(low uint32) int {
	if e := t.low.find(low); e >= 0 || low&1 == 0 {
		return e
	}
	e := t.low.find(low &^ 1)
	if e >= 0 && t.mods[t.low.all[e].mod].Image.thumb() {
		return e
	}
	return -1
}

// Select32 is Select for the low 32 bits of method pointers. Bits that stand for several functions select all of them,
// and count as unresolved; bits that stand for none are rendered as Resolve32 does.
func (t *Table) Select32(lows []uint32) []Symbol {
	lows = slices.Clone(lows)
	slices.Sort(lows)
	var out []Symbol
	for _, low := range slices.Compact(lows) {
		s, ok := t.Resolve32(low)
		if c := t.Candidates32(low); !ok && len(c) > 0 {
			out = append(out, c...)
			continue
		}
		out = append(out, s)
	}
	return detach(out)
}

// Collision says that two ranges of instrumented modules overlap modulo 4 GiB, so that records of functions there could
// be ambiguous. They are ambiguous for the functions that Shared counts.
type Collision struct {
	A, B       int    // indices in Table.Modules, A < B
	Start, End uint64 // the overlap, as low 32 bits; End is exclusive and at most 1<<32
	Shared     int    // low 32 bits within it at which both have a function
}

// Collisions returns all collisions, those of two modules in the order of addresses.
func (t *Table) Collisions() []Collision {
	type piece struct {
		start, end uint64 // low 32 bits
		mod        int
	}
	var pieces []piece
	for i := range t.mods {
		if !t.mods[i].Instrumented {
			continue
		}
		for _, r := range t.mods[i].Ranges {
			if r.End-r.Start >= 1<<32 {
				pieces = append(pieces, piece{0, 1 << 32, i})
				continue
			}
			start, end := r.Start&0xffffffff, r.Start&0xffffffff+(r.End-r.Start)
			pieces = append(pieces, piece{start, min(end, 1<<32), i})
			if end > 1<<32 {
				pieces = append(pieces, piece{0, end - 1<<32, i})
			}
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.mod, b.mod)) })
	var out []Collision
	for i, a := range pieces {
		for _, b := range pieces[i+1:] {
			if b.start >= a.end {
				break
			}
			if a.mod == b.mod {
				continue
			}
			c := Collision{A: min(a.mod, b.mod), B: max(a.mod, b.mod), Start: b.start, End: min(a.end, b.end)}
			for low, entries := range t.low.twins {
				if uint64(low) >= c.Start && uint64(low) < c.End && t.hasBoth(entries, c.A, c.B) {
					c.Shared++
				}
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Collision) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return out
}

func (t *Table) hasBoth(entries []int32, a, b int) bool {
	var hasA, hasB bool
	for _, e := range entries {
		hasA = hasA || int(t.low.all[e].mod) == a
		hasB = hasB || int(t.low.all[e].mod) == b
	}
	return hasA && hasB
}
