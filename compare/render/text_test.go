package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"braid/compare/estimate"
	"braid/compare/result"
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

// TestOtherBaselines has a program in another language with a baseline of its own: that is no slow tracer.
func TestOtherBaselines(t *testing.T) {
	m := server
	m.without = nil
	s := m.study()
	var b bytes.Buffer
	if err := Text(&b, s, sketch(s)); err != nil {
		t.Fatal(err)
	}
	table := b.String()[strings.Index(b.String(), "Cost of a trace point"):]
	jvm := ""
	table = strings.ReplaceAll(table, "241 ms", "") // how long it takes is said
	for l := range strings.Lines(table) {
		if strings.HasPrefix(l, "JVM, no agent") {
			jvm += l
		}
	}
	if jvm == "" || strings.ContainsAny(jvm, "0123456789") || strings.Contains(jvm, "slower") {
		t.Errorf("the row of the other baseline: %q", jvm)
	}
}

// TestRealEstimates has the true costs of the made-up machine found, through the file form and the real estimates.
func TestRealEstimates(t *testing.T) {
	s := server.study()
	s.Series = slices.DeleteFunc(s.Series, func(x result.Series) bool {
		return !(x.Workload == "listing" && x.Parameter == 0 || x.Workload == "startup") || strings.Contains(x.Arm, "uprobe") && x.Arm != "uprobe-count-nop5"
	})
	e := estimate.Of(s)
	fs := Findings(s, e)
	for topic, want := range map[string]*regexp.Regexp{
		"inline":   regexp.MustCompile(`^An inlined trace point costs 9\.[678]\d ns \(.* to .*\) here, 1\.0[234] × the bare clock read\.$`),
		"off":      regexp.MustCompile(`^Compiled in and turned off it costs 0\.(3|4)\d ns`),
		"kernel":   regexp.MustCompile(`does not make a measurable difference|costs more: 9\.7`),
		"probe":    regexp.MustCompile(`^The cheapest probe costs 31\d ns .* 3[123]\.\d × an inlined trace point: uprobe, count, optimized\.$`),
		"external": regexp.MustCompile(`XRay, basic 4[345]\.\d ns \(4\.[456]\d ×\); .*perf 1,\d+ ns`),
		"startup":  regexp.MustCompile(`Slower: .*perf \(3\d\d to 3\d\d %\)`),
		"noise":    regexp.MustCompile(`differ by -?0\.0\d+ to -?0\.0\d+ ns`),
	} {
		found := ""
		for _, f := range fs {
			if f.Topic == topic {
				found += f.Sentence() + "\n"
			}
		}
		if !want.MatchString(strings.TrimSpace(found)) {
			t.Errorf("%s: %q does not match %s", topic, found, want)
		}
	}
	var b bytes.Buffer
	if err := Text(&b, s, e); err != nil {
		t.Fatal(err)
	}
	checkWidth(t, "real", b.String())
}
