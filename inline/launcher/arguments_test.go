package launcher

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCommandLine(t *testing.T) {
	all := cmp.AllowUnexported(commandLine{}, input{})
	c := func(name string) input { return input{name, languageC} }
	o := func(name string) input { return input{name, languageObject} }
	for _, test := range []struct {
		args string
		want commandLine
	}{
		{"-c a.c", commandLine{stage: stageObject, inputs: []input{c("a.c")}}},
		{"-c -o x.c.o a.c", commandLine{stage: stageObject, output: "x.c.o", inputs: []input{c("a.c")}}},
		{"-ox a.c", commandLine{output: "x", inputs: []input{c("a.c")}}},
		{"-S -c a.cc", commandLine{stage: stageAssembly, inputs: []input{c("a.cc")}}},
		{"-E -S a.cc", commandLine{stage: stageOther, inputs: []input{c("a.cc")}}},
		{"-S -E a.cc", commandLine{stage: stageOther, inputs: []input{c("a.cc")}}},
		{"-MM a.c", commandLine{stage: stageOther, inputs: []input{c("a.c")}}},
		{"-MD -MF a.c -MT b.c -MQ c.c -c d.c", commandLine{stage: stageObject, inputs: []input{c("d.c")}}},
		{"-include a.c -I b.c -isystem c.c -D d.c -U e.c f.c", commandLine{inputs: []input{c("f.c")}}},
		{"-Ib.c -includea.c -lx.c -L. -Dx=y.c f.o", commandLine{inputs: []input{o("f.o")}}},
		{"-Xlinker a.c -Xassembler b.c -T c.c -u d.c -z e.c -e f.c x.o y.a",
			commandLine{inputs: []input{o("x.o"), o("y.a")}}},
		{"-x c a b.o -x none c.o d.c -x assembler-with-cpp e -x c++ -",
			commandLine{openLanguage: true, inputs: []input{c("a"), c("b.o"), o("c.o"), c("d.c"),
				{"e", languageAssembly}, c("-")}}},
		{"a.s b.S c.sx d.f90 e.h f.m", commandLine{inputs: []input{{"a.s", languageAssembly}, {"b.S", languageAssembly},
			{"c.sx", languageAssembly}, {"d.f90", languageOther}, {"e.h", languageHeader}, {"f.m", languageOther}}}},
		{"-xc-header a.c", commandLine{openLanguage: true, inputs: []input{{"a.c", languageHeader}}}},
		{"-m32 a.c", commandLine{otherABI: true, inputs: []input{c("a.c")}}},
		{"-m32 -m64 a.c", commandLine{inputs: []input{c("a.c")}}},
		{"-Wl,-r a.o", commandLine{noRuntime: true, inputs: []input{o("a.o")}}},
		{"-Wl,-rpath,/x a.o", commandLine{inputs: []input{o("a.o")}}},
		{"-Xlinker -r a.o", commandLine{noRuntime: true, inputs: []input{o("a.o")}}},
		{"-rdynamic a.o", commandLine{inputs: []input{o("a.o")}}},
		{"-r a.o", commandLine{noRuntime: true, inputs: []input{o("a.o")}}},
		{"-flto=auto a.o", commandLine{lto: true, inputs: []input{o("a.o")}}},
		{"-flto -fno-lto a.o", commandLine{inputs: []input{o("a.o")}}},
		{"-Bx -B y a.o", commandLine{programPrefix: []string{"-Bx", "-By"}, inputs: []input{o("a.o")}}},
		{"-undef -traditional a.c", commandLine{inputs: []input{c("a.c")}}},
		{"-target aarch64-linux-gnu a.c", commandLine{target: "aarch64-linux-gnu", inputs: []input{c("a.c")}}},
		{"--target=i386-linux-gnu -Xclang a.c b.c", commandLine{target: "i386-linux-gnu", inputs: []input{c("b.c")}}},
		{"-print-prog-name=as", commandLine{stage: stageOther}},
		{"-Wp,-MD,x.d -c a.c", commandLine{stage: stageObject, inputs: []input{c("a.c")}}},
		{"-Wp,-MM a.c", commandLine{stage: stageOther, inputs: []input{c("a.c")}}},
	} {
		got, ok := parseCommandLine(strings.Fields(test.args), &compiler{family: familyGCC})
		got.assemble, got.machine = nil, nil
		if diff := cmp.Diff(test.want, got, all); diff != "" || !ok {
			t.Errorf("%s: ok %v: %s", test.args, ok, diff)
		}
	}
	for _, args := range []string{"-o", "a.c -x", "-c a.c -MF", "@absent a.c", "-include"} {
		if _, ok := parseCommandLine(strings.Fields(args), &compiler{family: familyGCC}); ok {
			t.Errorf("%s: understood", args)
		}
	}
}

func TestAssembleArguments(t *testing.T) {
	args := "-O2 -g3 -ggdb -gz=zlib -gdwarf-4 -march=native -fPIC -MMD -MF x.d -MT y -Iinc -D X=1 -DY -Wa,--fatal-warnings " +
		"-Xassembler -L -lm -Wl,-z,now -Xclang -disable-O0-optnone -mllvm -x86-foo -c -o a.o -x c a.c --target=x86_64-linux-gnu"
	cl, ok := parseCommandLine(strings.Fields(args), &compiler{family: familyClang})
	want := "-O2 -gz=zlib -march=native -fPIC -Iinc -Wa,--fatal-warnings -Xassembler -L -mllvm -x86-foo --target=x86_64-linux-gnu"
	if got := strings.Join(cl.assemble, " "); got != want || !ok {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIdentify(t *testing.T) {
	for _, c := range []struct {
		command string
		want    compiler
		args    int
	}{
		{"gcc-99 -c a.c", compiler{family: familyGCC, version: 99}, 2},
		{"/opt/x/arm-linux-gnueabihf-g++-99.1.2 a.c", compiler{family: familyGCC, version: 99, target: "arm-linux-gnueabihf", cplus: true}, 1},
		{"aarch64-linux-android30-clang++ a.c", compiler{family: familyClang, target: "aarch64-linux-android30", cplus: true}, 1},
		{"x86_64-w64-mingw32-gcc-99-posix", compiler{family: familyGCC, version: 99, target: "x86_64-w64-mingw32"}, 0},
		{"ccache clang-99 -c", compiler{family: familyClang, version: 99, ccache: true}, 1},
		{"ccache -s", compiler{}, 1},
		{"tcc a.c", compiler{}, 1},
		{"gcc-ar x", compiler{}, 1},
		{"clang-tidy x", compiler{}, 1},
		{"clang-cl x", compiler{}, 1},
		{"ld a.o", compiler{}, 1},
	} {
		got, args := identify(strings.Fields(c.command))
		got.command = nil
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(compiler{})); diff != "" || len(args) != c.args {
			t.Errorf("%s: %d arguments: %s", c.command, len(args), diff)
		}
	}
	// The system's own names lead, through links, to one that says it all.
	got, _ := identify([]string{"cc"})
	got.probe()
	if got.family == familyUnknown {
		t.Errorf("cc: %+v", got)
	}
}

func TestUntouched(t *testing.T) {
	gcc := compiler{command: []string{"gcc"}, family: familyGCC}
	clang := compiler{command: []string{"clang"}, family: familyClang, version: 19}
	for _, c := range []struct {
		compiler compiler
		args     string
		want     bool
	}{
		{gcc, "-c a.c", false},
		{gcc, "a.o", false},
		{gcc, "-r a.o", false}, // gcc -flto -r may generate code
		{clang, "-r a.o", true},
		{clang, "a.o", false},
		{clang, "-flto -c a.c", true},
		{clang, "-emit-llvm -c a.c", true},
		{clang, "-c -- a.c", false},
		{gcc, "-m32 -c a.c", true},
		{gcc, "-mx32 -c a.c", true},
		{clang, "--target=i686-linux-gnu -c a.c", true},
		{clang, "--target=x86_64-linux-gnu -c a.c", false},
		{gcc, "-ffreestanding -c a.c", true},
		{gcc, "-ffixed-r11 -c a.c", true},
		{gcc, "-fcall-saved-r10 -c a.c", true},
		{gcc, "-ffixed-rbx -c a.c", false},
		{gcc, "-mcmodel=kernel -c a.c", true},
		{gcc, "-c a.S", true},
		{gcc, "-c a.f90", true},
		{gcc, "a.h -o a.h.gch", true},
		{gcc, "-v", true},
		{gcc, "-lfoo", true},
		{gcc, "--version", true},
		{gcc, "-c a.c -o", true},
		{compiler{command: []string{"mips-linux-gnu-gcc"}, family: familyGCC, target: "mips-linux-gnu"}, "-c a.c", true},
		{gcc, "-fsplit-stack -c a.c", false}, // it draws a warning
		{clang, "-flto -S a.c", true},
		{compiler{command: []string{"tcc"}}, "-c a.c", true},
	} {
		p := makePlan(&options{}, &c.compiler, strings.Fields(c.args))
		if got := p.untouched != ""; got != c.want {
			t.Errorf("%s %s: untouched %v (%s), want %v", c.compiler.command, c.args, got, p.untouched, c.want)
		}
	}
}

func TestPlanRuntime(t *testing.T) {
	gcc := compiler{command: []string{"gcc"}, family: familyGCC}
	for args, want := range map[string]string{
		"a.c":                 "-B/D a.c -dp -fno-ipa-ra /R.o",
		"-x c a":              "-B/D -x c a -dp -fno-ipa-ra -x none /R.o",
		"-shared a.o":         "-B/D -shared a.o -dp -fno-ipa-ra /R.o",
		"-nostdlib a.c":       "-B/D -nostdlib a.c -dp -fno-ipa-ra",
		"-nodefaultlibs a.c":  "-B/D -nodefaultlibs a.c -dp -fno-ipa-ra",
		"-nostartfiles a.c":   "-B/D -nostartfiles a.c -dp -fno-ipa-ra /R.o",
		"-c a.c b.c":          "-B/D -c a.c b.c -dp -fno-ipa-ra",
		"-S a.c":              "-S a.c -dp -fno-ipa-ra",
		"-ffreestanding a.c":  "-ffreestanding a.c /R.o",
		"a.f90 b.o -lgfor":    "a.f90 b.o -lgfor /R.o",
		"-Bmine a.c -B other": "-B/D -Bmine a.c -B other -dp -fno-ipa-ra /R.o",
	} {
		p := makePlan(&options{}, &gcc, strings.Fields(args))
		if got := strings.Join(p.arguments(strings.Fields(args), "/D", "/R.o"), " "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", args, got, want)
		}
	}
	p := makePlan(&options{noRuntime: true}, &gcc, []string{"a.c"})
	if got := p.arguments([]string{"a.c"}, "/D", "/R.o"); slices.Contains(got, "/R.o") {
		t.Errorf("--no-runtime: %q", got)
	}
	clang := compiler{command: []string{"clang"}, family: familyClang, version: 19}
	args := []string{"-o", "x", "--", "a.c"}
	p = makePlan(&options{}, &clang, args)
	want := "-faddrsig -fdwarf-directory-asm -B/D -o x -fno-integrated-as -fverbose-asm -Xclang -fintegrated-as -- a.c /R.o"
	if got := strings.Join(p.arguments(args, "/D", "/R.o"), " "); got != want {
		t.Errorf("clang with --:\ngot  %s\nwant %s", got, want)
	}
}

func TestSplitAssemblerArgs(t *testing.T) {
	for args, want := range map[string][3]string{
		"--64 -o a.o /tmp/x.s":              {"--64 -o a.o", "/tmp/x.s", "a.o"},
		"--64 -o a.o /tmp/x.s -g -gdwarf-5": {"--64 -o a.o -g -gdwarf-5", "/tmp/x.s", "a.o"},
		"-I inc --64 -o a.o":                {"-I inc --64 -o a.o", "", "a.o"},
		"-o":                                {"-o", "", ""},
		"":                                  {"", "", ""},
	} {
		rest, in, out := splitAssemblerArgs(strings.Fields(args))
		if got := [3]string{strings.Join(rest, " "), in, out}; got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func FuzzSourceName(f *testing.F) {
	f.Add([]byte("\t.file\t\"a b\\\"c.c\"\n"))
	f.Add([]byte("\t.file\t\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		if name := sourceName(text); len(name) > 3*4096 {
			t.Errorf("a name of %d bytes", len(name))
		}
	})
}

func TestSourceName(t *testing.T) {
	for text, want := range map[string]string{
		"\t.file\t\"a.c\"\n\t.text\n":               "a.c",
		"\t.text\n\t.file\t\"dir/a \\\"b\\\".c\"\n": `dir/a "b".c`,
		"\t.file\t1 \"x.c\"\n":                      "",
		"\t.file\t\"a.c":                            "",
		"":                                          "",
	} {
		if got := sourceName([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
