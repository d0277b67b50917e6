package programs

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// rounds is how often each compilation is measured. The median of five is told.
const rounds = 5

// BenchmarkCompileSQLite measures what stubs cost at the compilation of one large file, sqlite3.c with -O2: size of the
// code, and time, both of the clock and of the processor (all processes of the compiler together; that is what to
// compare where other work goes on). Compilations with and without stubs take turns.
func BenchmarkCompileSQLite(b *testing.B) {
	for _, cc := range []compiler{gcc, clang} {
		b.Run(cc.name, func(b *testing.B) {
			dir := sqliteSource(b)
			var with, without []cost
			for range b.N {
				for range rounds {
					without = append(without, compileCost(b, cc.without(), dir))
					with = append(with, compileCost(b, cc, dir))
				}
			}
			p, s := median(without), median(with)
			b.ReportMetric(0, "ns/op") // it would be the sum of all
			b.ReportMetric(float64(p.code), "code-B")
			b.ReportMetric(float64(s.code), "traced-code-B")
			b.ReportMetric(float64(s.code)/float64(p.code), "code-x")
			b.ReportMetric(p.cpu.Seconds(), "cpu-s")
			b.ReportMetric(s.cpu.Seconds()/p.cpu.Seconds(), "cpu-x")
			b.ReportMetric(s.wall.Seconds()/p.wall.Seconds(), "wall-x")
		})
	}
}

// sqliteSource is a directory with sqlite3.c.
func sqliteSource(b *testing.B) string {
	return tree(b, "sqlite3", "amalgamation", func(t testing.TB, dir string) {
		mustRun(t, dir, nil, "./configure", "--quiet", "--disable-tcl")
		mustRun(t, dir, nil, "make", "-s", "sqlite3.c")
	})
}

// cost is what one compilation took and made.
type cost struct {
	wall, cpu time.Duration
	code      uint64 // bytes
}

func compileCost(b *testing.B, cc compiler, dir string) cost {
	b.Helper()
	object := filepath.Join(b.TempDir(), "sqlite3.o")
	c := command(dir, nil, sh(fmt.Sprintf("%s -O2 -c -o %s sqlite3.c", cc.c, object))...)
	begin := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%q: %v\n%s", c.Args, err, out)
	}
	return cost{time.Since(begin), processorTime(c), codeSize(b, object)}
}

// median takes each figure's.
func median(list []cost) cost {
	middle := func(of func(cost) uint64) uint64 {
		var values []uint64
		for _, c := range list {
			values = append(values, of(c))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		time.Duration(middle(func(c cost) uint64 { return uint64(c.wall) })),
		time.Duration(middle(func(c cost) uint64 { return uint64(c.cpu) })),
		middle(func(c cost) uint64 { return c.code }),
	}
}
