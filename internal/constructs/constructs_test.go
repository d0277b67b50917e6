package constructs

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestConstructs builds and runs every program of testdata.
func TestConstructs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.c*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, f := range files {
		s, err := readSpec(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.name(), func(t *testing.T) {
			for _, c := range s.settings() {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					check(t, s, c)
				})
			}
		})
	}
}

// check builds a program in one way and runs it in all.
func check(t *testing.T, s *spec, c setting) {
	dir := t.TempDir()
	source, err := filepath.Abs(s.file)
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat([]string{s.driver(c), c.level}, s.words("flags", c), c.variant, []string{source, "-o"})
	must(t, dir, append(words, "plain")...)
	must(t, dir, append(append([]string{braidBin, "cc"}, words...), "stubs")...)
	if wanted := s.words("symbol", c); wanted != nil {
		there := strings.Fields(must(t, dir, "nm", "stubs"))
		for _, w := range wanted {
			if !slices.Contains(there, w) {
				t.Errorf("no symbol %s", w)
			}
		}
	}
	judge(t, s, c, dir)
}

// judge runs the program that was built as plain and as stubs in dir.
func judge(t *testing.T, s *spec, c setting, dir string) {
	t.Helper()
	want, err := run(dir, nil, filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	if e := strings.Join(s.words("exit", c), ""); e != "" && e != strconv.Itoa(want.code) || e == "" && want.code != 0 {
		t.Fatalf("without stubs: exit code %d\n%s", want.code, want.output)
	}
	program := filepath.Join(dir, "stubs")
	if got, err := run(dir, nil, program); err != nil || got != want {
		t.Errorf("untraced: exit code %d, %v\n%s\nwithout stubs: %d\n%s", got.code, err, got.output, want.code, want.output)
	}
	got, tr, err := traced(dir, nil, s.words("splice", c), program)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("traced: exit code %d\n%s\nwithout stubs: %d\n%s", got.code, got.output, want.code, want.output)
	}
	trees, err := s.trees(c)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(trees)
	if !slices.Equal(tr.threads, trees) {
		t.Errorf("call trees:\n  %s\nwant:\n  %s", strings.Join(tr.threads, "\n  "), strings.Join(trees, "\n  "))
	}
	if len(tr.faults) > 0 {
		t.Errorf("faults: %s", strings.Join(tr.faults, "; "))
	}
}
