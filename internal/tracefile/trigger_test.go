package tracefile

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTriggerAndSnapshots(t *testing.T) {
	meta := *sampleMeta
	meta.Trigger = &Trigger{
		Name: "slow commit", Kind: "method", Severity: "high", TimeNs: 5_500_000_000, Pid: 4242, Tid: 4243, Method: "ns::work(int)",
		Reason: "it took 212 ms", Values: map[string]float64{"latency_ns": 212e6, "none": math.NaN(), "all": math.Inf(1)},
	}
	snaps := []Snapshot{
		{TimeNs: 9, Texts: map[string]string{"/proc/pressure/io": "some avg10=0.00\n"}, Missing: []string{"/proc/1/stack: not permitted"}},
		{TimeNs: 7, Threads: []SnapshotThread{{Pid: 4242, Tid: 4243, Name: "worker", State: "D", Wait: "io_schedule", Stack: []string{"io_schedule", "x"}}}},
	}
	path := filepath.Join(t.TempDir(), "app.braid")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.WriteMeta(&meta), w.WriteSnapshot(&snaps[0]), w.WriteSnapshot(&snaps[1]), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, b)
	got, err := r.Meta()
	if err != nil {
		t.Fatal(err)
	}
	want := *meta.Trigger
	want.Values = map[string]float64{"latency_ns": 212e6} // the others can not be written, and must not cost the trace
	if d := cmp.Diff(&want, got.Trigger); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(meta.Trigger.Values) != 3 {
		t.Error("the caller's values were changed")
	}
	found, err := r.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Snapshot{snaps[1], snaps[0]}, found); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var out bytes.Buffer
	if err := Dump(&out, r, DumpOptions{Kinds: []Kind{KindSnapshot}}); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Count(s, "\nsnapshot, ") != 2 || !strings.Contains(s, `"wait": "io_schedule"`) || len(r.Problems()) != 0 {
		t.Errorf("%v\n%s", r.Problems(), s)
	}
}

// A section that is no snapshot costs itself only.
func TestDamagedSnapshot(t *testing.T) {
	b := appendFileHeader(nil)
	for i, content := range []string{`{"time_ns":1}`, `{"time_ns":"x"}`} {
		b = sectionHeader{kind: KindSnapshot, index: uint32(i), length: uint64(len(content)), crc: checksum([]byte(content))}.append(b)
		b = append(b, content...)
		b = append(b, make([]byte, padding(uint64(len(content))))...)
	}
	r := read(t, b)
	if got, err := r.Snapshots(); err != nil || len(got) != 1 || len(r.Problems()) != 2 { // it has no end section either
		t.Errorf("%v, %v, %v", got, err, r.Problems())
	}
}
