package main_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"braid/inline"
	"braid/internal/tracefile"
)

// call is one call of a method as the decoder tells it.
type call struct {
	begin, end uint64 // counter
	method     uint64 // low half of its address, or 0
	depth      int
	flags      inline.SliceFlags
}

// decode gives a segment's calls in the order of their ends.
func decode(t *testing.T, seg *inline.Segment) (calls []call, stats inline.Stats) {
	t.Helper()
	d := inline.Decoder{Methods: inline.NewMethods(0)}
	out, err := d.Decode(seg, nil)
	if err != nil {
		t.Fatal(err)
	}
	out.Slices(seg.Begin, seg.End, func(s *inline.Slice) bool {
		calls = append(calls, call{s.Begin, s.End, d.Methods.Row(s.Method).Addr, int(s.Depth), s.Flags})
		return true
	})
	return calls, out.Stats
}

// newest is the segment that a ring of n slots would have left.
func newest(seg *inline.Segment, n int) *inline.Segment {
	cut := *seg
	gone := len(seg.Slots) - n
	cut.Slots, cut.Complete, cut.Anchors = seg.Slots[gone:], false, nil
	for _, a := range seg.Anchors {
		if a.Slot > uint64(gone) {
			a.Slot -= uint64(gone)
			cut.Anchors = append(cut.Anchors, a)
		}
	}
	return &cut
}

// mainRing reads the ring of a file's only recorded thread.
func mainRing(t *testing.T, file string) *tracefile.Ring {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var found *tracefile.Ring
	for ring, err := range r.Rings() {
		if err != nil {
			t.Fatal(err)
		}
		if found != nil {
			t.Fatal("the file has more than one ring")
		}
		ring.Slots = slices.Clone(ring.Slots) // good only until the next one
		found = ring
	}
	if found == nil {
		t.Fatal("the file has no ring")
	}
	return found
}

// The newest part of a ring decodes to the same calls as the end of the whole, wherever it was cut: every call that
// begins and ends in it is there with its time and method, and at the same depth over those that were open. Those that
// were entered before are there as cut.
func TestNewestPart(t *testing.T) {
	file, _ := record(t, 0, "--kernel", "none", "--", programs["target"], "mix", "20011")
	seg := mainRing(t, file).Segment()
	if !seg.Complete || len(seg.Slots) < 80_000 {
		t.Fatalf("complete: %v, %d slots", seg.Complete, len(seg.Slots))
	}
	whole, _ := decode(t, &seg)
	for _, n := range []int{1, 2, 3, 4, 5, 7, 64, 511, 512, 513, 4096, 8191, 8192, 30_011, len(seg.Slots) - 1, len(seg.Slots)} {
		cut := newest(&seg, n)
		part, stats := decode(t, cut)
		if stats.Damaged != 0 || stats.Ambiguous != 0 {
			t.Errorf("newest %d slots: %+v", n, stats)
		}
		tail := whole[len(whole)-len(part):]
		// How deep the thread was at the cut is not known beyond what its later exits tell: the rest is the difference.
		unknown := tail[len(tail)-1].depth - part[len(part)-1].depth
		cuts := 0
		for i, c := range part {
			w := tail[i]
			if c.end != w.end || c.depth+unknown != w.depth {
				t.Fatalf("newest %d slots, call %d of %d: %+v, in the whole %+v", n, i, len(part), c, w)
			}
			if c.flags&inline.CutStart != 0 {
				cuts++
				if w.begin > part[0].end && i > 0 {
					t.Errorf("newest %d slots, call %d: cut, but it began at %d", n, i, w.begin)
				}
			} else if c != (call{w.begin, w.end, w.method, c.depth, w.flags}) {
				t.Fatalf("newest %d slots, call %d of %d: %+v, in the whole %+v", n, i, len(part), c, w)
			}
		}
		if uint64(cuts) != stats.Orphans {
			t.Errorf("newest %d slots: %d calls are cut, the decoder says %d", n, cuts, stats.Orphans)
		}
	}
}

// A ring that wrapped while it was recorded ends as the whole of another run of the same program does: times differ
// from run to run, names and depths do not.
func TestWrappedRing(t *testing.T) {
	program := []string{"--", programs["target"], "mix", "20011"}
	full, _ := record(t, 0, append([]string{"--kernel", "none"}, program...)...)
	wrapped := filepath.Join(t.TempDir(), "wrapped.braid")
	o := braid(t, append([]string{"record", "-o", wrapped, "--ring", "64K"}, program...)...)
	checkRecorded(t, wrapped, o, 0)
	if !regexp.MustCompile(`^braid: 8192 records of 1 thread \(the newest: 1 ring filled up\)`).MatchString(o.summary()) {
		t.Errorf("the summary is %q", o.summary())
	}
	ring := mainRing(t, wrapped)
	if ring.Flags&tracefile.RingComplete != 0 || len(ring.Slots) != 8192 {
		t.Errorf("flags %v, %d slots", ring.Flags, len(ring.Slots))
	}
	whole, part := begun(t, full), begun(t, wrapped)
	if len(part) < 3000 || len(part) > len(whole) {
		t.Fatalf("%d calls in the wrapped ring, %d in the whole", len(part), len(whole))
	}
	for i, w := range whole[len(whole)-len(part):] {
		if part[i] != w {
			t.Fatalf("call %d of the last %d is %q, in the whole run %q", i, len(part), part[i], w)
		}
	}
	if m := report(t, wrapped).method(t, "[entered earlier]"); m.Calls != 0 || m.Cut < 2 { // main, mix and what else was open
		t.Errorf("%+v", m)
	}
}

// begun exports a file and returns the calls below mix that began in the ring, in order: name and depth.
func begun(t *testing.T, file string) []string {
	t.Helper()
	return checkPerfetto(t, file).Rows(t, `select name, depth from slice where name not in ('[entered earlier]', 'main', 'mix') and name not in ('major fault', 'direct reclaim') order by ts, id`)
}
