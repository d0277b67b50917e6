package inline

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
)

// BenchmarkDecode decodes a full ring of 32 MiB, pairs its records and sums the time by method. It reports millions of
// records a second.
func BenchmarkDecode(b *testing.B) {
	for _, methods := range []int{100, 3000, 30000} {
		w := &writer{methods: NewMethods(methods), now: 1 << 40}
		rng := rand.New(rand.NewPCG(1, 2))
		program(rng, w, methods, 4<<20, 40, func() uint64 { return 20 + rng.Uint64N(300) })
		seg := w.ring(len(w.slots), 1<<40)

		b.Run(fmt.Sprintf("methods=%d/decode", methods), func(b *testing.B) {
			d := &Decoder{Methods: w.methods}
			cpu := cpuSeconds(b)
			for b.Loop() {
				if _, err := d.Decode(seg, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(w.want))*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
		})
		b.Run(fmt.Sprintf("methods=%d/paired", methods), func(b *testing.B) {
			d := &Decoder{Methods: w.methods}
			total := make([]uint64, w.methods.Len())
			cpu := cpuSeconds(b)
			for b.Loop() {
				out, err := d.Decode(seg, nil)
				if err != nil {
					b.Fatal(err)
				}
				out.Slices(seg.Begin, seg.End, func(s *Slice) bool {
					total[s.Method] += s.End - s.Begin
					return true
				})
			}
			b.ReportMetric(float64(len(w.want))*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
		})
	}
}

// BenchmarkFramed decodes what a C++ program writes: a third of its entries are framed, and one record in a thousand is of
// control that comes back over four methods.
func BenchmarkFramed(b *testing.B) {
	w := &writer{methods: NewMethods(3000), now: 1 << 40}
	w.begin = w.now
	rng := rand.New(rand.NewPCG(5, 6))
	for len(w.ends) < 1<<20 {
		w.now += 20 + rng.Uint64N(300)
		switch d, n := len(w.stack), rng.IntN(1000); {
		case n == 0 && d > 5 && w.stack[d-5].framed:
			w.resumed(4)
		case d == 0 || d < 40 && n < 330:
			w.entry(0x1000+16*rng.Uint64N(2000), false)
		case d < 40 && n < 500:
			w.framed(0x10_0000 + 16*rng.Uint64N(1000))
		default:
			w.exit()
		}
	}
	seg := w.ring(len(w.slots), w.begin)
	d := &Decoder{Methods: w.methods}
	cpu := cpuSeconds(b)
	for b.Loop() {
		if _, err := d.Decode(seg, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(w.ends))*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
}

// BenchmarkMethods looks words up.
func BenchmarkMethods(b *testing.B) {
	for _, n := range []int{100, 3000, 30000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := NewMethods(n)
			words := make([]uint32, 1<<16)
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range words {
				words[i] = 0x4000_0000 + uint32(rng.IntN(n))*112
				m.Add(0x5500_0000_0000 | uint64(words[i]))
			}
			var sum uint32
			for b.Loop() {
				for _, w := range words {
					sum += m.Narrow(w)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(words)), "ns/lookup")
			_ = sum
		})
	}
}

// cpuSeconds is the processor time that this process has used, which says more than the clock on a busy machine.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()) / 1e9
}
