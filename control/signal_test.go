package control

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"braid/inline"
	"braid/inline/runtime"
)

// TestSignalsWithinStubs has a thread that does almost nothing but trace points interrupted by signals whose handler has
// trace points as well. Wherever in a stub a signal lands, every call of both must be there, and the calls must nest.
func TestSignalsWithinStubs(t *testing.T) {
	bin := build(t, "signals")
	s, err := NewSession(runtime.PolicyMain, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	calls := repeats(t, 2000003)
	c := exec.Command(bin, strconv.Itoa(calls))
	c.Env = append(os.Environ(), s.Env())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var handled int
	if _, err := fmt.Sscan(strings.TrimSpace(string(out)), &handled); err != nil || handled == 0 {
		t.Fatalf("%d signals handled (%q): %v", handled, out, err)
	}
	seg := drain(t, s)[0]
	m := inline.NewMethods(8)
	for _, v := range seg.Slots {
		if uint32(v) > 15 {
			m.Add(uint64(uint32(v)))
		}
	}
	d, err := (&inline.Decoder{Methods: m}).Decode(&seg.Segment, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, exits := count(seg.Segment)
	if want := 1 + calls + 3*handled; entries != want || exits != want {
		t.Errorf("%d entries and %d exits with %d signals, want %d of both", entries, exits, handled, want)
	}
	if len(d.Open) != 0 || d.Orphans != 0 || d.Stats.Damaged != 0 || d.Stats.Ambiguous != 0 {
		t.Errorf("open %d, orphans %d, %+v", len(d.Open), d.Orphans, d.Stats)
	}
	back := 0
	for i := 1; i < len(seg.Slots); i++ {
		if int32(uint32(seg.Slots[i]>>32)-uint32(seg.Slots[i-1]>>32)) < 0 {
			back++
		}
	}
	t.Logf("%d signals, %d steps back in time", handled, back)
}
