package tracepoint

import (
	"os"
	"testing"
)

// TestVariantsRecordWhatTheyShould runs a short measurement: it asserts that the arm that records did, never a time.
func TestVariantsRecordWhatTheyShould(t *testing.T) {
	fs, err := Run(Options{Rounds: 3, Calls: 1009, Aligns: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	if n := fs[3].RecordsVerified; n != 8*1009*2 {
		t.Errorf("%d records, want %d", n, 8*1009*2)
	}
}

func BenchmarkTracePoint(b *testing.B) {
	for range b.N {
		fs, err := Run(Options{})
		if err != nil {
			b.Fatal(err)
		}
		Print(os.Stdout, fs)
		b.ReportMetric(fs[3].Median, "ns/point-on")
		b.ReportMetric(fs[2].Median, "ns/point-off")
		b.ReportMetric(fs[3].Median/fs[1].Median, "x-clock")
		b.ReportMetric(fs[4].Median, "ns/point-no-clock")
	}
}
