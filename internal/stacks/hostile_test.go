package stacks

import (
	"math/rand/v2"
	"testing"

	"braid/internal/stacks/stackstest"
	"braid/internal/tracefile"
)

// TestHostile: rings and samples of random content give every frame, and neither end nor hang the program.
func TestHostile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	some := []uint64{0, 1, 5, 1 << 63, ^uint64(0), stackstest.T0, 0x5555_0000_1010, 0x5555_0000_1310, 0x7f00_0000_0210, 0xffff_ffff_8100_0110}
	pick := func() uint64 {
		if rnd.IntN(4) == 0 {
			return rnd.Uint64()
		}
		return some[rnd.IntN(len(some))]
	}
	for round := range 60 {
		var rings []*tracefile.Ring
		for range rnd.IntN(4) {
			r := &tracefile.Ring{Pid: stackstest.Pid, Tid: uint32(stackstest.Pid + rnd.IntN(2)), Flags: tracefile.RingFlags(rnd.IntN(32)),
				Sequence: uint32(rnd.IntN(3)), Begin: stackstest.T0 + uint64(rnd.IntN(2000)), End: stackstest.T0 + uint64(rnd.IntN(4000))}
			for range rnd.IntN(60) {
				at := (stackstest.T0 + uint64(rnd.IntN(4000))) << 32
				r.Slots = append(r.Slots, at|uint64([]uint32{0, 1, 2, 3, 4, 9, 0x1000, 0x1100, 0x1200, rnd.Uint32()}[rnd.IntN(10)]))
			}
			rings = append(rings, r)
		}
		var samples []tracefile.Sample
		for range 1 + rnd.IntN(40) {
			s := tracefile.Sample{Time: stackstest.T0 + uint64(rnd.IntN(4000)), Tgid: uint32(rnd.IntN(2) * stackstest.Pid), Tid: uint32(stackstest.Pid + rnd.IntN(3)),
				Flags: tracefile.SampleFlags(rnd.IntN(4)), Way: tracefile.StackWay(rnd.IntN(6)), End: tracefile.StackEnd(rnd.IntN(12)), Weight: pick()}
			if rnd.IntN(8) == 0 {
				s.Time = pick()
			}
			for range rnd.IntN(8) {
				s.User = append(s.User, pick())
			}
			for range rnd.IntN(3) {
				s.Kernel = append(s.Kernel, pick())
			}
			samples = append(samples, s)
		}
		j, err := New(stackstest.Load(t, samples, rings...))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		i := 0
		err = j.Each(func(s *Sample) error {
			var user, kernel int
			for _, f := range s.Frames {
				switch {
				case j.Functions[f.Func].Kind == Kernel:
					kernel++
				case !f.RingOnly:
					user++
				}
			}
			if in := samples[i]; user != len(in.User) || kernel < len(in.Kernel) || s.InKernel && kernel == 0 {
				t.Errorf("round %d, sample %d: %d user and %d kernel frames of %+v", round, i, user, kernel, in)
			}
			i++
			return nil
		})
		if err != nil || i != len(samples) {
			t.Fatalf("round %d: %d of %d samples, %v", round, i, len(samples), err)
		}
	}
}
