package export

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/internal/stacks"
	"braid/internal/stacks/stackstest"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

func TestFlame(t *testing.T) {
	var b bytes.Buffer
	c, err := Flame(&b, stackstest.Story(t), SVGOptions{})
	if err != nil || c.Samples != 8 {
		t.Fatalf("%+v, %v", c, err)
	}
	var titles []string
	for _, s := range texts(t, b.String()) {
		if strings.Contains(s, " sample") && strings.Contains(s, "%") {
			titles = append(titles, s)
		}
	}
	// From the threads upwards, each with what it called before its neighbour.
	want := []string{
		"app: 7 samples, 87.5 %, 7.00 ms",
		"_start: 5 samples, 62.5 %, 5.00 ms", "main: 5 samples, 62.5 %, 5.00 ms", "sort: 5 samples, 62.5 %, 5.00 ms, 2 itself",
		"qsort: 3 samples, 37.5 %, 3.00 ms", "compare: 3 samples, 37.5 %, 3.00 ms, 1 itself", "memcpy: 2 samples, 25 %, 2.00 ms",
		"main: 2 samples, 25 %, 2.00 ms", "write_all: 2 samples, 25 %, 2.00 ms", "__write: 1 sample, 12.5 %, 1.00 ms",
		"entry_SYSCALL_64: 1 sample, 12.5 %, 1.00 ms", "vfs_write: 1 sample, 12.5 %, 1.00 ms", "vfs_write: 1 sample, 12.5 %, 1.00 ms",
		"helper: 1 sample, 12.5 %, 1.00 ms", "_start: 1 sample, 12.5 %, 1.00 ms", "leaf: 1 sample, 12.5 %, 1.00 ms",
		"[unknown]: 1 sample, 12.5 %, 1.00 ms",
	}
	if d := cmp.Diff(want, titles); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	golden := filepath.Join("testdata", "flame.svg")
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(old, b.Bytes()) {
		t.Errorf("it is not %s any more (-update writes it anew): %v", golden, err)
	}
}

// TestFlameBounded: recursion without end, and more blocks than there are pixels.
func TestFlameBounded(t *testing.T) {
	var samples []tracefile.Sample
	for i := range uint64(3000) {
		user := "_start main"
		if i == 7 {
			user = strings.Repeat("leaf ", 2000)
		}
		samples = append(samples, stackstest.Sample(stackstest.Pid+2+uint32(i)%2, i, tracefile.EndComplete, user, ""))
	}
	samples = append(samples, stackstest.Sample(stackstest.Pid, 9000, tracefile.EndDepth, "main sort", ""))
	var b bytes.Buffer
	if _, err := Flame(&b, stackstest.Load(t, samples), SVGOptions{Width: MinSVGWidth}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(texts(t, b.String()), "\n")
	for _, want := range []string{"1 samples have more than 100 frames", "1 user stacks are cut", "samples are in blocks that are too narrow"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
	if b.Len() > 16<<10 {
		t.Errorf("%d bytes", b.Len())
	}
	if _, err := Flame(&b, stackstest.Load(t, nil), SVGOptions{}); !errors.Is(err, stacks.ErrNone) {
		t.Errorf("without samples: %v", err)
	}
	if _, err := Flame(&b, stackstest.Load(t, samples), SVGOptions{Width: 10}); err == nil {
		t.Error("a picture of 10 pixels")
	}
}
