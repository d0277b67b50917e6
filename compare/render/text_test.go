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

// Arms with the same title and the same reason are one line.
func TestMissed(t *testing.T) {
	s := server.study()
	for i := range s.Arms {
		if a := &s.Arms[i]; a.Group == result.GroupProbe {
			a.Title, a.Class, a.Ran, a.WhyNot, a.NextStep = "uprobe", "", false, "no probes here", "a newer kernel"
		}
	}
	var found []missing
	for _, m := range newView(s, sketch(s)).missed() {
		if m.Why == "no probes here" {
			found = append(found, m)
		}
	}
	if len(found) != 1 || found[0].Name != "uprobe (32 arms)" || found[0].Next != "a newer kernel" {
		t.Errorf("%+v", found)
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
	section := newView(s, sketch(s)).page().Sections[0]
	seen := 0
	for _, g := range section.Costs[0].Groups {
		for _, seat := range g.Seats {
			for _, r := range seat.Rows {
				if r.Name == "JVM, no agent" {
					seen++
					if r.Point != "-" || r.Overhead != "-" || r.Verdict != "" {
						t.Errorf("among the costs: %+v", r)
					}
				}
			}
		}
	}
	for _, w := range section.Wholes {
		for _, r := range w.Rows {
			if r.Name == "JVM, no agent" {
				seen++
				if r.Overhead != "-" || r.P != "" || r.Verdict != "" || r.Takes == "-" {
					t.Errorf("in a whole workload: %+v", r)
				}
			}
		}
	}
	for _, r := range section.Curve.Tables[0].Rows {
		if r.Name == "JVM, no agent" {
			t.Error("it is among the overheads")
		}
	}
	if seen != 2 {
		t.Errorf("it was seen %d times, want 2", seen)
	}
}

// TestVerdicts has the t test and the interval disagree.
func TestVerdicts(t *testing.T) {
	v := newView(server.study(), &estimate.Study{Margin: 0.03})
	ok := estimate.Test{OK: true}
	for want, r := range map[string]estimate.Row{
		"within 3 %": {IsNotInferior: true, IsSlower: true, Overhead: estimate.Value{Low: 0.001, High: 0.02, OK: true}},
		"slower":     {IsSlower: true, Overhead: estimate.Value{Low: 0.001, High: 0.2, OK: true}},
		"undecided":  {IsSlower: true, Overhead: estimate.Value{Low: -0.001, High: 0.2, OK: true}},
		"":           {IsSlower: true},
	} {
		r.Arm, r.Slower, r.NotInferior = "uftrace", ok, ok
		if got := v.verdict(&r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestEmulated says nothing about times that mean nothing.
func TestEmulated(t *testing.T) {
	s := phone.study()
	s.Machine.Emulated = true
	fs := Findings(s, sketch(s))
	if len(fs) != 1 || !strings.Contains(fs[0].Text, "recorded exactly the events") || strings.Contains(fs[0].Text, " ns") {
		t.Errorf("%+v", fs)
	}
	s.Series[len(s.Series)-1].Recorded++
	if fs = Findings(s, sketch(s)); !strings.Contains(fs[0].Text, "not all was recorded, or failed, with stub, on, with the kernel's events.") {
		t.Errorf("%+v", fs)
	}
	p := newView(s, sketch(s)).page()
	if len(p.Tiles) > 0 || !slices.ContainsFunc(p.Warnings, func(w result.Warning) bool { return w.Code == "emulated" }) {
		t.Errorf("tiles %v, warnings %v", p.Tiles, p.Warnings)
	}
}

// TestOnlyWhatIntervalsSupport widens intervals until nothing can be told apart.
func TestOnlyWhatIntervalsSupport(t *testing.T) {
	s := server.study()
	e := sketch(s)
	for i := range e.Rows {
		r := &e.Rows[i]
		for _, v := range []*estimate.Value{&r.Point, &r.Added, &r.Overhead, &r.ToClock, &r.ToStub} {
			if v.OK {
				v.Low, v.High = v.Median-1e6, v.Median+1e6
			}
		}
		r.IsSlower, r.IsNotInferior, r.AboveNoise = false, false, false
	}
	all := ""
	for _, f := range Findings(s, e) {
		all += f.Topic + ": " + f.Text + "\n"
		if f.Topic == "class" || f.Topic == "amortisation" {
			t.Errorf("%s", f.Text)
		}
	}
	for _, want := range []string{"as much as the bare clock read as far as can be told", "costs nothing that this study could measure",
		"does not make a measurable difference", "that can't be told apart from it", "makes no difference that could be measured", "Not decided: "} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	for _, no := range []string{"costs more", "Slower:", "Within 3 %"} {
		if strings.Contains(all, no) {
			t.Errorf("%q is in\n%s", no, all)
		}
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
		"probe":    regexp.MustCompile(`^The cheapest probe costs 31\d ns .* 3[123]\.\d × an inlined trace point: uprobe, count, nop turned into a call\.$`),
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
