package inline

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStale puts what an earlier lap left into slots of a run at random. The other records keep their times, and calls
// their nesting.
func TestStale(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := &writer{methods: NewMethods(0), now: 1<<40 + rng.Uint64N(1<<33)}
		w.begin = w.now
		unwritten := 0
		for range 200 {
			w.now += 20 + rng.Uint64N(2000)
			switch d := len(w.stack); {
			case d > 0 && d < 20 && rng.IntN(4) == 0:
				w.framed(0x2000 + 16*rng.Uint64N(9))
			case d == 0 || d < 20 && rng.IntN(2) == 0:
				w.entry(0x1000+16*rng.Uint64N(50), rng.IntN(8) == 0)
			default:
				w.exit()
			}
			if len(w.ends) < 2 || rng.IntN(20) > 0 {
				continue
			}
			then := w.now - 4*Slack - rng.Uint64N(1<<31)
			switch rng.IntN(4) {
			case 0:
				w.unwritten(0)
				unwritten++
			case 1:
				w.unwritten(Pack(then, 0x1000+16*rng.Uint32N(50)))
				unwritten++
			case 2:
				w.unwritten(PackFrame(0x2000, then+50), Pack(then+50, WordResumedFramed))
				unwritten += 2
			case 3:
				w.unwritten(Pack(then, WordExit|0x1000), Pack(then+20, WordEntryFramed), Pack(then+80, 0x1010))
				unwritten += 3
			}
			for range 3 { // the next one is among records of its own
				w.now += 50
				w.entry(0x1000, false)
			}
		}
		s := w.ring(len(w.slots), w.begin)
		got := decode(t, w.methods, s)
		check(t, s, &got)
		if diff := cmp.Diff(w.want, got.Events); diff != "" || got.Stats.Unwritten != uint64(unwritten) || got.Stats.Ambiguous+got.Stats.Damaged > 0 {
			t.Fatalf("seed %d: %d unwritten, %+v\n%s", seed, unwritten, got.Stats, diff)
		}
	}
}
