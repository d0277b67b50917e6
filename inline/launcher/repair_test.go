package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repairSource has three functions with one entry and one exit each.
const repairSource = `int first(int x) { return x + 1; }
int second(int x) { return x + 2; }
int third(int x) { return x + 3; }
`

// choosyAssembler is a real assembler's stand-in that rejects counter reads in one function, as an assembler that does
// not take a stub would. %FUNCTION% is that function, %MESSAGE% its error, %REAL% calls the real assembler.
const choosyAssembler = `#!/bin/sh
file=$(mktemp) || exit 9
trap 'rm -f "$file"' EXIT
case "$*" in
%WHEN%) ;;
*) rm -f "$file"; exec %REAL% "$@" ;;
esac
cat > "$file"
awk '/^[a-z]+:/ { f = $0; sub(/:.*/, "", f) }
	/rdtsc/ && f ~ /%FUNCTION%/ { print "%MESSAGE%"; bad = 1 }
	END { exit bad }' "$file" >&2 || exit 1
%REAL% "$@" < "$file"
`

// choosy writes that script for gcc's assembler or clang as its own assembler, and returns the compiler to call.
func (s *sandbox) choosy(cc, function, message string) []string {
	s.t.Helper()
	name, when, realTool := "as", "*", "/usr/bin/as"
	words := []string{cc, "-B" + filepath.Join(s.directory, "fake")}
	if strings.HasPrefix(cc, "clang") {
		name, when, realTool = cc, "*\\ assembler\\ *", "/usr/bin/"+cc
		words = []string{filepath.Join(s.directory, "fake", cc)}
	}
	message = strings.ReplaceAll(message, "STDIN", map[bool]string{true: "{standard input}:\" NR \": Error",
		false: "<stdin>:\" NR \":1: error"}[name == "as"])
	file := s.write("fake/"+name, strings.NewReplacer("%FUNCTION%", function, "%MESSAGE%", message, "%REAL%", realTool,
		"%WHEN%", when).Replace(choosyAssembler))
	if err := os.Chmod(filepath.Join(s.directory, file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return words
}

// TestRepair: where the assembler does not take a stub, only the function that it names goes without; where it does not
// say which, the file does. The build goes on in silence, and --verbose tells.
func TestRepair(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("x.c", repairSource)
		for _, c := range []struct {
			function, message string
			want              int    // stubs
			verbose           string // part of what --verbose says
		}{
			{"^second$", "STDIN: no such instruction", 4, "no stub in second"},
			{"^(first|third)$", "STDIN: no such instruction", 2, "no stub in third"},
			{"^second$", "Error: something somewhere", 0, "x.c has no stubs"},
		} {
			words := append(s.choosy(cc, c.function, c.message), "-O1", "-g", "-c", "x.c", "-o", "x.o")
			o := s.run("", append([]string{"braid", "cc"}, words...)...)
			if o.code != 0 || o.stdout+o.stderr != "" || s.stubs("x.o") != c.want {
				t.Errorf("%s: %d stubs, want %d: %+v", c.function, s.stubs("x.o"), c.want, o)
			}
			o = s.run("", append([]string{"braid", "cc", "--verbose"}, words...)...)
			if o.code != 0 || !strings.Contains(o.stderr, c.verbose) {
				t.Errorf("%s: --verbose: %+v", c.function, o)
			}
		}
		// A text that is wrong without stubs, too: the compiler's own message, once.
		s.write("bad.c", repairSource+"void bad(void) { __asm__(\"frobnicate\"); }\n")
		words := append(s.choosy(cc, "^second$", "STDIN: no such instruction"), "-O1", "-c", "bad.c", "-o", "bad.o")
		o := s.run("", append([]string{"braid", "cc"}, words...)...)
		if o.code != 1 || strings.Count(o.stderr, "frobnicate") == 0 || strings.Contains(o.stderr, "braid") {
			t.Errorf("bad inline assembly: %+v", o)
		}
	})
}

func TestFaults(t *testing.T) {
	const text = `	.type	a, @function
a:
	nop
	.size	a, .-a
	.type	"odd name", %function
"odd name":
	nop
.L5:
	nop
	.type	b.cold, @function
b.cold:
	nop
`
	for messages, want := range map[string][]string{
		"": nil,
		"{standard input}: Assembler messages:\n{standard input}:3: Error: x\n":      {"a"},
		"{standard input}:1: Error: x\n":                                             nil,
		"<stdin>:9:2: error: x\n{standard input}:3: Error: y\n<stdin>:3: error: y\n": {"a", "odd name"},
		"{standard input}:12: Fatal error: x":                                        {"b"},
		"{standard input}:12: Warning: x\nfile.c:3: Error: x":                        nil,
		"{standard input}:99999999999999999999: Error: x":                            nil,
	} {
		if got := faults([]byte(text), messages); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", messages, got, want)
		}
	}
}
