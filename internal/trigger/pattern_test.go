package trigger

import "testing"

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"**", "abc", true},
		{"a*c", "abbc", true}, {"a*c", "abcb", false}, {"*b*", "abc", true}, {"?", "", false}, {"?b", "ab", true},
		{"a*b*c", "aXbYbZc", true}, {"*ab", "aab", true}, {"[a]", "a", false}, {"[a]", "[a]", true},
	} {
		if Match(c.pattern, c.s) != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.s, !c.want)
		}
	}
}

func TestMatchMethod(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"f", "f", true}, {"f", "f(int)", true}, {"f", "f(void (*)(int)) const", true}, {"f", "g(f)", false},
		{"a::f", "a::f<int (*)(long)>(int)", false}, {"a::f*", "a::f<int (*)(long)>(int)", true},
		{"(anonymous namespace)::f", "(anonymous namespace)::f(int)", true},
		{"a::operator()", "a::operator()(int) const", true}, {"a::operator<", "a::operator<(b)", true},
		{"a::operator->", "a::operator->()", true}, {"a::operator<<", "a::operator<<(b<c>)", true},
		{"f(int)", "f(int)", true}, {"f(long)", "f(int)", false},
		{"f(int)::local::g", "f(int)::local::g(long)", true},
	} {
		if MatchMethod(c.pattern, c.name) != c.want {
			t.Errorf("MatchMethod(%q, %q) = %v (bare %q)", c.pattern, c.name, !c.want, bare(c.name))
		}
	}
}
