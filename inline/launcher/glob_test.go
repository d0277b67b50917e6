package launcher

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "anything/at::all", true},
		{"lua_*", "lua_call", true},
		{"lua_*", "xlua_call", false},
		{"*call", "lua_pcall", true},
		{"*a*b*c", "xxaxxbxbxc", true},
		{"*a*b*c", "xxaxxbxbxcx", false},
		{"f?o", "foo", true},
		{"f?o", "fo", false},
		{"f?o", "fäo", true},
		{"[a-c]x", "bx", true},
		{"[a-c]x", "dx", false},
		{"[!a-c]x", "dx", true},
		{"[^a-c]x", "ax", false},
		{"[]x]", "]", true},
		{"[!]x]", "]", false},
		{"[a-]", "-", true},
		{`[\]]`, "]", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"operator/", "operator/", true},
		{"A::*(int)", "A::f(int)", true},
		{"[", "[", false},
		{`a\`, `a\`, false},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 3000), false}, // not exponential
	} {
		if got := matchGlob(c.pattern, c.name); got != c.want {
			t.Errorf("matchGlob(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func TestCheckGlob(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"": true, "*": true, "[a]": true, "[]": false, "[!]": false, "[]]": true, "a[": false, `\`: false, `\\`: true,
		"[a-": false, `[\`: false, "[a": false, "operator[[]]": true,
	} {
		if err := checkGlob(pattern); (err == nil) != ok {
			t.Errorf("checkGlob(%q) = %v, want ok: %v", pattern, err, ok)
		}
	}
}

// FuzzMatchGlob compares with regexp for patterns of '*', '?' and plain characters, and looks for crashes in others.
func FuzzMatchGlob(f *testing.F) {
	f.Add("a*b?", "aXXbc")
	f.Add("[a-z]*", "hello")
	f.Add("[!", "x")
	f.Add(`\`, "x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := matchGlob(pattern, name)
		if got && checkGlob(pattern) != nil {
			// A malformed part may come behind the end of what was looked at, but then nothing may be left over.
			t.Errorf("malformed %q matches %q", pattern, name)
		}
		if strings.ContainsAny(pattern, `[\`) || !utf8.ValidString(pattern) || !utf8.ValidString(name) ||
			strings.ContainsRune(pattern+name, utf8.RuneError) {
			return
		}
		expression := strings.NewReplacer(`\*`, "(?s:.*)", `\?`, "(?s:.)").Replace(regexp.QuoteMeta(pattern))
		if want := regexp.MustCompile("^(?:" + expression + ")$").MatchString(name); got != want && !strings.Contains(name, "\n") {
			t.Errorf("matchGlob(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}
