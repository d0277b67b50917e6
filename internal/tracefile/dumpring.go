package tracefile

import (
	"fmt"

	"braid/inline"
)

// ringFlagNames are the flags in the order of their bits.
var ringFlagNames = []string{"complete", "exited", "exact-end", "continues", "process-gone"}

func (f RingFlags) String() string {
	s := ""
	for i, n := range ringFlagNames {
		if f&(1<<i) != 0 {
			s += " " + n
		}
	}
	if rest := f >> len(ringFlagNames); rest != 0 {
		s += fmt.Sprintf(" 0x%x", uint32(rest)<<len(ringFlagNames))
	}
	if s == "" {
		return "none"
	}
	return s[1:]
}

func (d *dumper) ring(b []byte) error {
	r, err := DecodeRing(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "  pid %d tid %d name %q sequence %d flags %v\n", r.Pid, r.Tid, r.Comm(), r.Sequence, r.Flags)
	fmt.Fprintf(d.w, "  counter %d..%d, %d slots, dropped: %d newest, %d oldest\n",
		r.Begin, r.End, len(r.Slots), r.DroppedNewest, r.DroppedOldest)
	for _, a := range r.Anchors {
		fmt.Fprintf(d.w, "  anchor before slot %d: last %016x, counter %d..%d\n", a.Slot, a.Last, a.First, a.Until)
	}
	n := d.limit(len(r.Slots))
	pointer := pointers(r.Slots)
	for i, s := range r.Slots[:n] {
		fmt.Fprintf(d.w, "  %6d %016x %s\n", i, s, d.meaning(r.Slots, i, pointer))
	}
	d.more(n, len(r.Slots), "slots")
	return nil
}

// pointers tells which slots are the first half of a record of two. Only backwards is that unambiguous: the newest slot
// is a record, and a record of two slots has its pointer before it.
func pointers(slots []uint64) []bool {
	is := make([]bool, len(slots))
	for i := len(slots) - 1; i >= 0; i-- {
		if inline.Double(uint32(slots[i])) && i > 0 {
			i--
			is[i] = true
		}
	}
	return is
}

// meaning renders slot i: its record, or that it belongs to the next one.
func (d *dumper) meaning(slots []uint64, i int, pointer []bool) string {
	s := slots[i]
	when, word := s>>32, uint32(s)
	switch {
	case pointer[i] && framed(uint32(slots[i+1])):
		return fmt.Sprintf("  sp %08x pointer %s", when, d.nameNarrow(word))
	case pointer[i]:
		return "  pointer " + d.nameWide(s)
	case s == 0:
		return "  unwritten"
	case word == inline.WordExit:
		return fmt.Sprintf("%08x exit", when)
	case word >= inline.WordReservedMin && word <= inline.WordReservedMax:
		return fmt.Sprintf("%08x reserved %d", when, word)
	}
	kind, what := "entry", ""
	if word == inline.WordResumed || word == inline.WordResumedFramed {
		kind = "resumed"
	}
	switch {
	case !inline.Double(word):
		what = d.nameNarrow(word)
	case i == 0:
		what = "[pointer overwritten]"
	case framed(word):
		what = d.nameNarrow(uint32(slots[i-1]))
	default:
		what = d.nameWide(slots[i-1])
	}
	return fmt.Sprintf("%08x %s %s", when, kind, what)
}

// framed reports whether a record with this word holds a stack pointer.
func framed(word uint32) bool {
	return word == inline.WordEntryFramed || word == inline.WordResumedFramed
}

func (d *dumper) nameNarrow(word uint32) string {
	name, ok := d.narrow[word&^uint32(d.bit0)]
	switch {
	case !ok:
		return fmt.Sprintf("[0x%x]", word)
	case name == "":
		return fmt.Sprintf("[0x%x: several]", word)
	}
	return printable(name)
}

func (d *dumper) nameWide(addr uint64) string {
	if name, ok := d.wide[addr&^d.bit0]; ok {
		return printable(name)
	}
	return fmt.Sprintf("[0x%x]", addr)
}
