package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page's table has the features and kernels of these tests.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), tableBegin)
	got, _, ok := strings.Cut(rest, tableEnd)
	if !ok {
		t.Fatal("docs/kernels.md has no table: make test-kernels")
	}
	want := strings.Split(table(nil), "\n")
	lines := strings.Split(got, "\n")
	if len(lines) != len(want) {
		t.Fatalf("the table has %d lines, want %d: make test-kernels", len(lines), len(want))
	}
	for i, line := range lines {
		known := strings.NewReplacer(" "+string(works)+" |", " ? |", " "+string(fails)+" |", " ? |", " "+string(nowhere)+" |", " ? |").Replace(line)
		if known != want[i] {
			t.Errorf("the table says %q, want %q with %s, %s or %s for each ?: make test-kernels", line, want[i], works, fails, nowhere)
		}
	}
}

// Each test that a feature names is there.
func TestFeatures(t *testing.T) {
	there := map[string]map[string]bool{}
	for _, r := range runs {
		names := map[string]bool{}
		files, err := filepath.Glob(filepath.Join("../..", r.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					names[fn.Name.Name] = true
				}
			}
		}
		there[r.name] = names
	}
	for _, f := range features {
		if f.quick > len(f.tests) || len(f.tests) == 0 {
			t.Errorf("%s: %d of %d tests are quick", f.name, f.quick, len(f.tests))
		}
		for _, name := range f.tests {
			if !there[f.run][name] {
				t.Errorf("%s: run %s has no test %s", f.name, f.run, name)
			}
		}
	}
}

// A feature works only if all of its tests ended well, in the run that they belong to.
func TestJudge(t *testing.T) {
	r := parse("=== kernels: run a\n=== RUN   TestOne\n--- PASS: TestOne (0.1s)\r\n    --- FAIL: TestOne/sub (0.0s)\n" +
		"--- FAIL: TestTwo (0.1s)\npanic: no\n=== kernels: run b\n--- PASS: TestTwo (1s)\n=== RUN   TestThree\n")
	for _, c := range []struct {
		run   string
		tests []string
		want  cell
	}{
		{"a", []string{"TestOne"}, works},
		{"a", []string{"TestOne", "TestTwo"}, fails},
		{"b", []string{"TestTwo"}, works},
		{"b", []string{"TestTwo", "TestThree"}, notTried},
		{"a", []string{"TestThree", "TestTwo"}, fails},
		{"b", []string{"TestOne"}, notTried},
		{"c", []string{"TestOne"}, notTried},
	} {
		if got := r.judge(feature{run: c.run, tests: c.tests}); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.run, c.tests, got, c.want)
		}
	}
}
