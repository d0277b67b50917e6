package analysis

import (
	"math/rand/v2"
	"testing"

	"braid/internal/kevent"
)

// Whatever a trace holds, the sums add up, and nothing is found in more time than there was.
func TestRandomTraces(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := &story{t: t}
		for i := range 1 + rng.IntN(3) {
			a := s.thread(uint32(50+i), "t")
			var tell func(depth int)
			tell = func(depth int) {
				a.call(names[rng.IntN(len(names))], func() {
					for range rng.IntN(4) {
						ns := 1 + rng.Int64N(ms)
						switch rng.IntN(9) {
						case 0:
							a.sleep(ns, uint32(49+rng.IntN(5)))()
						case 1:
							a.fsync(ns+3*us, rng.IntN(3))()
						case 2:
							a.preempted(ns)()
						case 3:
							a.fault(ns)()
						case 4:
							a.reclaim(ns)()
						case 5:
							a.block(ns)()
						default:
							a.run(ns)()
						}
						if depth > 0 {
							tell(depth - 1)
						}
					}
				})
			}
			for range 5 + rng.IntN(30) {
				tell(rng.IntN(5))
			}
			for range rng.IntN(20) { // damage
				a.slots[rng.IntN(len(a.slots))] = rng.Uint64()
			}
		}
		for range rng.IntN(10) { // and events that contradict others
			at := start + rng.Int64N(100*ms)
			s.add(at, kevent.AppendSwitch(nil, kevent.Header{Time: uint64(at), Tid: 50, CPU: uint16(rng.IntN(3)), Flags: kevent.FlagPrevTarget}, kevent.Switch{PrevTgid: pid}))
		}
		r := s.analyze(Options{Signatures: Builtin()})
		m := r.Moment
		if m == nil {
			t.Fatalf("seed %d: no moment", seed)
		}
		length, sum := m.ToNs-m.FromNs, int64(0)
		for _, ns := range m.Causes {
			sum += ns
		}
		if sum != length || length < 0 {
			t.Errorf("seed %d: %d ns by cause of %d", seed, sum, length)
		}
		var found, holders int64
		for _, f := range r.Findings {
			found += f.Ns
			for _, w := range f.Who {
				holders += w.Ns
			}
			if f.Ns > length || f.ExcessNs > f.Ns || holders > length {
				t.Errorf("seed %d: %+v of %d", seed, f, length)
			}
		}
		if found > length {
			t.Errorf("seed %d: %d ns found of %d", seed, found, length)
		}
		for i, l := range r.Chain[:len(r.Chain)-1] {
			if next := r.Chain[i+1]; !l.Outside && next.TotalNs > l.TotalNs || l.SelfNs > l.TotalNs && !l.Outside {
				t.Errorf("seed %d: %+v above %+v", seed, l, next)
			}
		}
	}
}
