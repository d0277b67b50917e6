package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var named = regexp.MustCompile(`braid doctor: ([a-z_]+(?:, [a-z_]+)*)\b`)

// TestNamedElsewhere: each check that an error names is there, and each check has its row in the docs. Errors say
// (braid doctor: btf) where a check explains them.
func TestNamedElsewhere(t *testing.T) {
	uses := map[string]int{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return errOrSkip(err)
		}
		if !strings.HasSuffix(path, ".go") || filepath.Dir(path) == "." {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			for id := range strings.SplitSeq(m[1], ", ") {
				if uses[id]++; !slices.Contains(IDs(), id) {
					t.Errorf("%s names the check %q, which does not exist", path, id)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"privileges", "pidns", "ptrace", "lockdown", "kernel", "btf", "memlock", "uprobes", "perf_paranoid", "tracefs"} {
		if uses[id] == 0 {
			t.Errorf("no error points to the check %q", id)
		}
	}
	docs, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(docs), -1)
	for _, id := range IDs() {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[1] == id }) {
			t.Errorf("docs/doctor.md has no row for the check %q", id)
		}
	}
	for _, row := range rows {
		if id := row[1]; !slices.Contains(IDs(), id) && !slices.Contains(jsonFields, id) {
			t.Errorf("docs/doctor.md has a row for %q, which is no check", id)
		}
	}
}

// jsonFields are those of a check, which the docs describe.
var jsonFields = []string{"id", "title", "status", "found", "lost", "do"}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}
