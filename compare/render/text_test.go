package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got; -update writes it anew):\n%s", path, d)
	}
}

func TestText(t *testing.T) {
	for name, m := range map[string]model{"server.txt": server, "phone.txt": phone} {
		s := m.study()
		var b bytes.Buffer
		if err := Text(&b, s, sketch(s)); err != nil {
			t.Fatal(err)
		}
		checkWidth(t, name, b.String())
		golden(t, name, b.String())
	}
}

func checkWidth(t *testing.T, name, text string) {
	t.Helper()
	for l := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > 100 {
			t.Errorf("%s: a line of %d columns: %s", name, n, l)
		}
	}
}
