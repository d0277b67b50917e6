package buildsystems

import (
	"regexp"
	"strings"
	"testing"
)

var ccacheHits = regexp.MustCompile(`Hits: +(\d+) */`)

// build builds everything from scratch with these compilers, and says how many compilations ccache had in store.
func (p *project) build(cc, cxx string) (hits string) {
	p.t.Helper()
	p.run("rm -f pantry *.o *.a *.so *.d configured.h; ccache -z >/dev/null; " +
		"make -j16 CC='" + cc + "' CXX='" + cxx + "'")
	m := ccacheHits.FindStringSubmatch(p.run("ccache -s"))
	if m == nil {
		return "0"
	}
	return m[1]
}

// all are the functions of the program, for builds in which none is traced.
func all() (names []string) {
	for name := range wantCalls {
		names = append(names, name)
	}
	return names
}

// TestCcacheBehind: braid cc ccache gcc. What ccache has in store is taken, and only what fits: not what was compiled
// without braid, nor for other functions.
func TestCcacheBehind(t *testing.T) {
	for _, cc := range []string{"gcc", "clang"} {
		cxx := strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(cc)
		t.Run(cc, func(t *testing.T) {
			p := newProject(t, "project")
			for _, step := range []struct {
				prefix, hits string
				skipped      []string
			}{
				{"", "0", all()},
				{"braid cc ", "0", nil},
				{"braid cc ", "4", nil},
				{"", "4", all()},
				{"braid cc --skip sum ", "0", []string{"sum"}},
				{"braid cc ", "4", nil},
				{"braid cc --skip sum ", "4", []string{"sum"}},
			} {
				if hits := p.build(step.prefix+"ccache "+cc, step.prefix+"ccache "+cxx); hits != step.hits {
					t.Errorf("%sccache %s: %s hits, want %s", step.prefix, cc, hits, step.hits)
				}
				p.check("./pantry", step.skipped...)
			}
			p.noLitter()
		})
	}
}

// TestCcacheBefore: ccache braid cc gcc, and ccache with braid as its prefix. ccache has to run it each time, or to know
// that it differs.
func TestCcacheBefore(t *testing.T) {
	p := newProject(t, "project")
	for _, step := range []struct {
		cc, cxx string
		skipped []string
	}{
		{"ccache gcc", "ccache g++", all()},
		{"ccache braid cc gcc", "ccache braid cc g++", nil},
		{"ccache braid cc --skip sum gcc", "ccache braid cc --skip sum g++", []string{"sum"}},
		{"ccache braid cc gcc", "ccache braid cc g++", nil},
		{"ccache gcc", "ccache g++", all()},
	} {
		p.build(step.cc, step.cxx)
		p.check("./pantry", step.skipped...)
	}
	p.noLitter()
}
