package symbols

import (
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDemangle(t *testing.T) {
	for raw, want := range map[string]string{
		// C++, as c++filt has it.
		"_ZN3foo3BarC1Ei":                        "foo::Bar::Bar(int)",
		"_ZNKSt6vectorIiSaIiEE4sizeEv":           "std::vector<int, std::allocator<int> >::size() const",
		"_ZN3foo3runEPFvvE.cold":                 "foo::run(void (*)()) [clone .cold]",
		"_ZN3foo4workILi3EEEvv.constprop.0":      "void foo::work<3>() [clone .constprop.0]",
		"_ZZ4mainENKUlvE_clEv":                   "main::{lambda()#1}::operator()() const",
		"_GLOBAL__sub_I_main":                    "_GLOBAL__sub_I_main",
		"_ZTv0_n24_N3foo3BarD1Ev":                "virtual thunk to foo::Bar::~Bar()",
		"_ZNSt3__14coutE@@LIBCPP_1":              "std::__1::cout",
		"_ZN12_GLOBAL__N_16hiddenEv":             "(anonymous namespace)::hidden()",
		"_Z1fILb1EEN9__gnu_cxx11__enable_ifIXT_": "_Z1fILb1EEN9__gnu_cxx11__enable_ifIXT_",
		// Rust, legacy and v0, from rustc's own documentation and tests.
		"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE":                                                     "core::fmt::Write::write_fmt",
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE": "<Test + 'static as foo::Bar<Test>>::bar",
		"_RNvC6_123foo3bar":                   "123foo::bar",
		"_RNvNtNtCs1234_7mycrate3foo3bar3baz": "mycrate::foo::bar::baz",
		"_RINvNtC3std3mem8align_ofjdE":        "std::mem::align_of::<usize, f64>",
		// Names that are not mangled stay.
		"main":                "main",
		"memcpy@@GLIBC_2.14":  "memcpy",
		"_start":              "_start",
		"@odd":                "@odd",
		"grün":                "grün",
		"evil\x1b[31mred\x07": "evil?[31mred?",
		"bad\xff\xfeutf8":     "bad??utf8",
	} {
		if got := Demangle(raw); got != want {
			t.Errorf("Demangle(%q)\n got %q\nwant %q", raw, got, want)
		}
	}
}

func TestDemangleIsBounded(t *testing.T) {
	// A Rust generic argument in which each tuple has the one before twice, as back references: 2^40 units, written out.
	name, last := "_RIC1fTlE", len("IC1f")
	for range 40 {
		at := len(name) - len("_R")
		ref := "B" + big.NewInt(int64(last-1)).Text(62) + "_"
		name += "T" + ref + ref + "E"
		last = at
	}
	if got := Demangle(name + "E"); len(got) != 1<<maxDemangle || !strings.HasPrefix(got, "f::<(i32,), ((i32,), (i32,)), ") {
		t.Errorf("%d bytes: %.60q...", len(got), got)
	}
	long := "_Z" + strings.Repeat("P", maxMangled)
	if got := Demangle(long); got != long {
		t.Errorf("a name beyond the limit was changed to %.40q...", got)
	}
}

func FuzzDemangle(f *testing.F) {
	f.Add("_ZNKSt6vectorIiSaIiEE4sizeEv")
	f.Add("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE")
	f.Add("_RINvNtC3std3mem8align_ofjdE")
	f.Add("_Z1fI1AIiiE1AIS_S_E1AIS0_S0_EEvv")
	f.Add("___Z1fv_block_invoke_2")
	f.Fuzz(func(t *testing.T, raw string) {
		got := Demangle(raw)
		if len(got) > max(1<<maxDemangle, len(raw))*utf8.UTFMax {
			t.Errorf("%d bytes from %d", len(got), len(raw))
		}
		if strings.ContainsAny(got, "\x00\x1b\n\r") || !utf8.ValidString(got) {
			t.Errorf("unprintable: %q", got)
		}
	})
}

// TestDemangleAgainstCxxfilt compares all names of the C++ library with binutils' own demangler.
func TestDemangleAgainstCxxfilt(t *testing.T) {
	path := strings.TrimSpace(run(t, "g++", "-print-file-name=libstdc++.so.6"))
	var raw []string
	for f := range readImage(t, path).Functions() {
		raw = append(raw, f.Raw)
	}
	list := source(t, "names", strings.Join(raw, "\n")+"\n")
	want := strings.Split(strings.TrimSuffix(run(t, "sh", "-c", "c++filt <"+list), "\n"), "\n")
	if len(want) != len(raw) {
		t.Fatalf("%d names, c++filt gave %d", len(raw), len(want))
	}
	// Ss, Si, So and Sd are abbreviations of the mangling; demanglers write them short in some places and long in others.
	short := strings.NewReplacer(
		"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string",
		"std::basic_istream<char, std::char_traits<char> >", "std::istream",
		"std::basic_ostream<char, std::char_traits<char> >", "std::ostream",
		"std::basic_iostream<char, std::char_traits<char> >", "std::iostream",
	)
	same := func(name string) string { return strings.ReplaceAll(short.Replace(name), " >", ">") }
	for i := range raw {
		if got, want := same(Demangle(raw[i])), same(want[i]); got != want {
			t.Errorf("%s\n got %s\nwant %s", raw[i], got, want)
		}
	}
	t.Logf("%d names", len(raw))
}
