package launcher

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkCompile measures a compilation with -c, plain and with braid cc, of an empty file and of one with 1000
// functions. With braid it holds two starts of this test binary, which is about as large as braid. CPU time, of all the
// processes together, is what to compare where other work goes on.
func BenchmarkCompile(b *testing.B) {
	var large strings.Builder
	for i := range 200 {
		fmt.Fprintf(&large, "int f%d(int x, int *p) { for (int i = 0; i < x; i++) p[i] += i * %d; return x > 3 ? p[3] : f%d_(x); }\n", i, i, i)
	}
	text := large.String()
	for i := range 200 {
		text = fmt.Sprintf("int f%d_(int);\n", i) + text
	}
	for _, file := range []struct{ name, text string }{{"empty", ""}, {"200 functions", text}} {
		for _, cc := range []string{"gcc", "clang-19"} {
			for _, braid := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/braid=%v", file.name, cc, braid)
				b.Run(name, func(b *testing.B) {
					s := newSandbox(b)
					s.write("x.c", file.text)
					words := []string{cc, "-O2", "-c", "x.c"}
					if braid {
						words = append([]string{"braid", "cc"}, words...)
					}
					var before, after unix.Rusage
					if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &before); err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						s.mustRun(words...)
					}
					if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &after); err != nil {
						b.Fatal(err)
					}
					cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
					b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/op")
				})
			}
		}
	}
}

// BenchmarkTrace measures the choice by patterns, for a C++ name, which has to be demangled.
func BenchmarkTrace(b *testing.B) {
	c := chooser{Only: []string{"ns::*"}, Skip: []string{"*::operator*", "ns::detail::*"}}
	for b.Loop() {
		if !c.trace("_ZN2ns5Thing3runEiRKSs") {
			b.Fatal("not chosen")
		}
	}
}
