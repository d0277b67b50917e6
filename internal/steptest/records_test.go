package steptest

import (
	"fmt"
	"strings"
)

// record is one decoded record: "name" is entered, "-" is an exit, "~name" is resumed.
type record struct {
	what   string
	time   uint32 // the counter's low half
	framed bool
	sp     uint32 // of a framed record: the stack pointer's low half
}

// parse reads slots as docs/format.md describes them, by itself, so that the decoder has a second opinion. zeros is how
// many slots were never written, from the first one at place hole in what is returned.
func parse(slots []uint64, names map[uint64]string) (records []record, zeros, hole int, err error) {
	low := map[uint32]string{}
	for a, n := range names {
		low[uint32(a)] = n
	}
	name := func(addr uint64, whole bool) string {
		n, ok := names[addr]
		if !whole {
			n, ok = low[uint32(addr)]
		}
		if !ok {
			err = fmt.Errorf("a record names %#x, which is no function", addr)
		}
		return n
	}
	var back []record // newest first
	for i := len(slots) - 1; i >= 0; i-- {
		s := slots[i]
		r := record{time: uint32(s >> 32)}
		switch w := uint32(s); {
		case s == 0:
			zeros++
			hole = len(back)
			continue
		case w == 0:
			r.what = "-"
		case w <= 4:
			i--
			if i < 0 {
				return nil, 0, 0, fmt.Errorf("half a record of kind %d", w)
			}
			if uint32(slots[i]) == 0 { // the second slot is written first
				zeros += 2
				hole = len(back)
				continue
			}
			r.framed, r.sp = w >= 3, uint32(slots[i]>>32)
			r.what = name(slots[i], !r.framed)
			if r.framed {
				r.what = name(uint64(uint32(slots[i])), false)
			}
			if w == 2 || w == 4 {
				r.what = "~" + r.what
			}
		case w < 16:
			return nil, 0, 0, fmt.Errorf("slot %d: reserved word %d", i, w)
		default:
			r.what = name(uint64(w), false)
		}
		if r.time == 0 {
			return nil, 0, 0, fmt.Errorf("slot %d: a record %q without a time", i, r.what)
		}
		back = append(back, r)
	}
	for i := len(back) - 1; i >= 0; i-- {
		records = append(records, back[i])
	}
	return records, zeros, len(back) - hole, err
}

// text renders records, one word each.
func text(records []record) string {
	var b strings.Builder
	for _, r := range records {
		b.WriteString(" " + r.what)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// cut takes the first call of a function out of records, with everything that it called, up to its exit or, if it has
// none, to the end. It returns where the call stood, or -1.
func cut(records []record, name string) (rest, call []record, at int) {
	for i, r := range records {
		if r.what != name {
			continue
		}
		depth := 0
		for j := i; j < len(records); j++ {
			switch records[j].what[0] {
			case '-':
				depth--
			case '~':
			default:
				depth++
			}
			if depth == 0 {
				return append(append([]record(nil), records[:i]...), records[j+1:]...), records[i : j+1], i
			}
		}
		return records[:i:i], records[i:], i
	}
	return records, nil, -1
}
