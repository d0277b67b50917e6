package stacks

import (
	"fmt"
	"strings"
	"testing"

	"braid/internal/stacks/stackstest"
	"braid/internal/tracefile"
)

// BenchmarkJoin joins a thousand samples with a ring of 200000 records.
func BenchmarkJoin(b *testing.B) {
	var script strings.Builder
	script.WriteString("main 10 ")
	for at := 100; at < 900_000; at += 9 {
		fmt.Fprintf(&script, "leaf %d ) %d ", at, at+4)
	}
	var samples []tracefile.Sample
	for at := uint64(500); at < 900_000; at += 900 {
		samples = append(samples, stackstest.Sample(stackstest.Pid, at, tracefile.EndComplete, "_start main qsort leaf memcpy", "vfs_write"))
	}
	tr := stackstest.Load(b, samples, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, script.String()+") 950000"))
	b.ReportAllocs()
	for b.Loop() {
		j, err := New(tr)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Each(func(*Sample) error { return nil }); err != nil || j.Stats.Samples != uint64(len(samples)) {
			b.Fatalf("%+v, %v", j.Stats, err)
		}
	}
}
