package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooserTrace(t *testing.T) {
	const method = "_ZN2ns5Thing3runEiRKSs"      // ns::Thing::run(int, std::string const&)
	const template = "_Z3maxIiET_S0_S0_"         // int max<int>(int, int)
	const clone = "_ZN2ns5Thing3runEiRKSs.cold"  // of method
	const anonymous = "_ZN12_GLOBAL__N_14helpEv" // (anonymous namespace)::help()
	const broken = "_ZN2ns5Thing3run"            // no mangled name
	for _, c := range []struct {
		symbol     string
		only, skip []string
		want       bool
	}{
		{"main", nil, nil, true},
		{"main", []string{"main"}, nil, true},
		{"other", []string{"main"}, nil, false},
		{"other", []string{"main", "o*"}, nil, true},
		{"main", nil, []string{"m*"}, false},
		{"main", []string{"main"}, []string{"m*"}, false},
		{"hash.part.0", []string{"hash"}, nil, true},
		{"hash.part.0", nil, []string{"hash.part.*"}, false},
		{method, []string{"ns::Thing::run"}, nil, true},
		{method, []string{"ns::*::run(int, *)"}, nil, true},
		{method, []string{"_ZN2ns*"}, nil, true},
		{method, []string{"Thing::run"}, nil, false},
		{method, nil, []string{"ns::*"}, false},
		{clone, []string{"ns::Thing::run"}, nil, true},
		{template, []string{"max"}, nil, true},
		{template, []string{"max<int>"}, nil, true},
		{anonymous, nil, []string{"(anonymous namespace)::help"}, false},
		{broken, []string{"ns::*"}, nil, false},
	} {
		chooser := chooser{Only: c.only, Skip: c.skip}
		if got := chooser.trace(c.symbol); got != c.want {
			t.Errorf("%s with only %q, skip %q: %v, want %v; names %q", c.symbol, c.only, c.skip, got, c.want,
				functionNames(c.symbol))
		}
	}
}

func TestSplitPatterns(t *testing.T) {
	for s, want := range map[string][]string{
		"":                    nil,
		" , \n":               nil,
		"a,b*, c\nd":          {"a", "b*", "c", "d"},
		"ns::f(int, char*),g": {"ns::f(int, char*)", "g"},
		"f(,\ng,h),i":         {"f(,", "g", "h)", "i"},
	} {
		if diff := cmp.Diff(want, splitPatterns(s)); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	}
}

func TestParseOptions(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("# hot\nhash_*\n\n  mix \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRAID_CC_ONLY", "")
	t.Setenv("BRAID_CC_SKIP", "env*")
	t.Setenv("BRAID_CC_VERBOSE", "")
	o, err := parseOptions([]string{"--only", "a", "--only=b", "--skip", "c", "--list", list, "--no-runtime", "--verbose",
		"--", "gcc", "--verbose", "-c"})
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		choose:    chooser{Only: []string{"a", "b"}, Skip: []string{"c", "hash_*", "mix", "env*"}},
		noRuntime: true, verbose: true, command: []string{"gcc", "--verbose", "-c"},
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][]string{
		{}, {"--"}, {"--only"}, {"--only", "a"}, {"--nonsense", "gcc"}, {"--only", "[a", "gcc"}, {"--verbose=1", "gcc"},
	} {
		if _, err := parseOptions(args); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: error %v, want a usage error", args, err)
		}
	}
	if _, err := parseOptions([]string{"--list", list + ".absent", "gcc"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list that does not exist: %v", err)
	}
}
