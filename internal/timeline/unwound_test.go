package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/inline"
)

func TestJoinUnwound(t *testing.T) {
	j := newJoiner(t)
	got := j.flat(t, one(records("A", 0, "B", 100, "C", 200, "^A", 300, ")", 400)), nil)
	var short []flat
	for _, f := range got {
		f.Self, f.Total = Split{}, Split{}
		short = append(short, f)
	}
	want := []flat{
		{"C", 200, 300, inline.Unwound, Split{}, Split{}},
		{"B", 100, 300, inline.Unwound, Split{}, Split{}},
		{"A", 0, 400, 0, Split{}, Split{}},
	}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Error(diff)
	}
}

// TestJoinSuspended: a coroutine's calls come in parts, also where a segment ends between two of them, and count once.
func TestJoinSuspended(t *testing.T) {
	const a, c, y = 'A' * 16, 'C' * 16, 'Y' * 16
	var slots []uint64
	slots = inline.AppendEntryFramed(slots, start, a, 0x9000)
	slots = inline.AppendEntry(slots, start+100, c)
	slots = inline.AppendEntryFramed(slots, start+200, y, 0x5000)
	slots = inline.AppendResumedFramed(slots, start+300, a, 0x8fc0)
	cut := len(slots)
	slots = inline.AppendResumedFramed(slots, start+500, y, 0x4fc0)
	slots = inline.AppendExit(slots, start+600)
	slots = inline.AppendExit(slots, start+700)
	slots = inline.AppendExit(slots, start+800)
	segment := func(from, to int, begin, end uint64) *Segment {
		return &Segment{Segment: inline.Segment{Slots: slots[from:to], Complete: true, Begin: begin, End: end}, Continues: from > 0}
	}
	for _, left := range []SliceFlags{inline.Suspended, inline.Unwound} {
		segments := one(segment(0, len(slots), start, start+1000))
		if left == inline.Unwound {
			segments = one(segment(0, cut, start, start+400), segment(cut, len(slots), start+400, start+1000))
		}
		j := newJoiner(t)
		var got []flat
		for _, f := range j.flat(t, segments, nil) {
			f.Self, f.Total = Split{}, Split{}
			got = append(got, f)
		}
		want := []flat{
			{"Y", 200, 300, left, Split{}, Split{}},
			{"C", 100, 300, left, Split{}, Split{}},
			{"Y", 500, 600, inline.Reentered, Split{}, Split{}},
			{"C", 500, 700, inline.Reentered, Split{}, Split{}},
			{"A", 0, 800, 0, Split{}, Split{}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		var table MethodTable
		if err := j.Sum(segments, nil, &table); err != nil {
			t.Fatal(err)
		}
		for i, r := range table.Rows {
			if m := j.letter(uint32(i)); m != "?" && r.Calls != 1 || left == inline.Suspended && r.Unwound != 0 {
				t.Errorf("%s: %d calls, %d unwound", m, r.Calls, r.Unwound)
			}
		}
	}
}
