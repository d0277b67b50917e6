package inline

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// coroutines writes a thread whose own stack and coroutines switch to each other at random. Each one calls methods, some
// of them framed, throws, and switches from a framed method, as swapcontext does.
func coroutines(rng *rand.Rand, records int) *writer {
	const body, yield = 0x5000, 0x6000
	w := &writer{methods: NewMethods(0), now: 1<<40 + rng.Uint64N(1<<33)}
	w.begin = w.now
	started := 0
	for len(w.ends) < records {
		w.now += 20 + rng.Uint64N(400)
		depth := 0
		for i := range w.stack {
			if w.stack[i].stack == w.on {
				depth++
			}
		}
		switch n := rng.IntN(10); {
		case depth == 0:
			w.entry(body, false)
		case n < 3 && depth < 6:
			w.entry(0x1000+16*rng.Uint64N(5), false)
		case n < 5 && depth < 6:
			w.framed(0x2000 + 16*rng.Uint64N(5))
		case n < 8 && depth > 1:
			w.exit()
		case n == 8 && depth > 2:
			if k := 1 + rng.IntN(depth-1); w.stack[len(w.stack)-k].framed {
				w.resumed(k - 1)
			}
		case n == 9:
			w.framed(yield)
			w.now += 30
			if to := rng.IntN(5); to > started {
				started++
				w.start(started)
			} else if to != w.on {
				w.swap(to)
			}
		}
	}
	return w
}

func TestCoroutines(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := coroutines(rng, 1+rng.IntN(800))
		s := w.ring(len(w.slots), w.begin)
		got := decode(t, w.methods, s)
		check(t, s, &got)
		if diff := cmp.Diff(w.want, got.Events); diff != "" || got.Stats.LostResumes+got.Stats.Orphans != 0 {
			t.Fatalf("seed %d: %+v\n%s", seed, got.Stats, diff)
		}
	}
}
