package sample

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// BenchmarkSampling runs a busy program, a second of CPU time each, without sampling and with. It prints by how much the program
// took longer, what a sample costs the program, and what it costs braid to read and to unwind it.
func BenchmarkSampling(b *testing.B) {
	bin := b.TempDir() + "/busy"
	if text, err := exec.Command("gcc", "-O2", "-fno-omit-frame-pointer", "-o", bin, "testdata/busy.c").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	rounds := "1500000"
	plain := func() int64 {
		out, err := exec.Command(bin, rounds).Output()
		if err != nil {
			b.Fatal(err)
		}
		return number64(b, string(out))
	}
	for _, hz := range []int{99, 1000} {
		for _, way := range []tracefile.StackWay{tracefile.StackFP, tracefile.StackDWARF} {
			b.Run(fmt.Sprintf("%v/%d", way, hz), func(b *testing.B) {
				var without, with, reader int64
				samples := 0
				for b.Loop() {
					without += plain()
					r, out := sampleOutput(b, Options{Hz: hz, Stacks: way}, bin, rounds)
					reader += r.cpu
					with += number64(b, out)
					samples += len(r.samples)
				}
				b.ReportMetric(float64(with-without)/float64(without)*100, "percent")
				b.ReportMetric(float64(with-without)/float64(max(samples, 1)), "ns/sample")
				b.ReportMetric(float64(reader)/float64(max(samples, 1)), "reader-ns/sample")
				b.ReportMetric(float64(samples)/float64(b.N), "samples/op")
			})
		}
	}
}

func number64(b *testing.B, text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// ownCPU is the CPU time of this process, in ns.
func ownCPU(t testing.TB) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
