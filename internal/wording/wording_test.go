package wording

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, c := range [][2]string{
		{"deflate_slow", "deflate_slow"},
		{"ns::thing(int, char const*) const", "ns::thing"},
		{"std::vector<std::pair<int, long>, A>::push_back(int const&)", "std::vector<>::push_back"},
		{"a_c_function_with_a_really_long_name_indeed", "a_c_fun...ng_name_indeed"},
		{"bool operator< <int>(some::type const&, some::type const&)", "bool operator< <int>"},
		{"(anonymous namespace)::f(void (*)(int))", "(anonym...s namespace)::f"},
		{"\x1b[31m\u00e4", "\x1b[31m\u00e4"},
	} {
		if got := Shorten(c[0], 24); got != c[1] && utf8.RuneCountInString(got) > 24 || got != c[1] && !strings.HasPrefix(c[0], "(anon") {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
	if got := Printable("\x1b[31m\u00e4\xff"); got != "?[31m\u00e4?" {
		t.Errorf("%q", got)
	}
}

func TestNumbers(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0", 999: "999ns", 1000: "1.00us", 999_499: "999us", 999_500: "1.00ms", 50_123_456: "50.1ms",
		1_000_000_000: "1.00s", 60_000_000_000: "60.0s", 7_200_000_000_000: "2.00h",
	} {
		if got := Duration(ns); got != want || len(got) > 6 {
			t.Errorf("%d: got %s, want %s", ns, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999_999: "999999", 1_000_000: "1.00M", 4_194_304: "4.19M", 2e9: "2.00G"} {
		if got := Count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 65536: "64.0KiB", 64 << 20: "64.0MiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
