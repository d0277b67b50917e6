package analysis

import (
	"fmt"
	"testing"
)

// BenchmarkAnalyze says how long a call takes, with both passes, reading and decoding. A thousand switches are among a
// million calls.
func BenchmarkAnalyze(b *testing.B) {
	const calls = 1_000_000
	s := &story{t: b}
	a := s.thread(51, "worker")
	for i := range calls / 10 {
		a.call("handle", a.run(100), func() {
			for k := range 9 {
				a.call(fmt.Sprintf("leaf%d", k), a.run(50))
			}
			if i%100 == 0 {
				a.sleep(10*us, 0)()
			}
		})
	}
	tr := s.load()
	for _, c := range []struct {
		name string
		o    Options
	}{{"plain", Options{}}, {"signatures", Options{Signatures: Builtin()}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				r, err := Analyze(tr, c.o)
				if err != nil || r.Moment == nil {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
		})
	}
}
