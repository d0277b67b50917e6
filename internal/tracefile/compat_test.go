package tracefile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file that version 1 wrote has to read the same for ever. testdata/v1.braid was written once, by writeSample.
func TestReadsVersion1(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "v1.braid"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Dump(&out, read(t, b), DumpOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "whole.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !bytes.Equal(b, sample(t)) {
		t.Error("the writer writes another file than version 1 did; if readers of version 1 can not read it, raise Version")
	}
}
