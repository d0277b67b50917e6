package analysis

import (
	"fmt"
	"syscall"
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
			before := cpuNs(b)
			for b.Loop() {
				r, err := Analyze(tr, c.o)
				if err != nil || r.Moment == nil {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(cpuNs(b)-before)/float64(b.N)/calls, "cpu-ns/call")
		})
	}
}

// cpuNs is the CPU time of this process: on a machine that others use, too, it says more than the clock on the wall.
func cpuNs(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
