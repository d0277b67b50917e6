package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitResponse(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		" \n\t ":                   nil,
		"-c a.c\n-o\ta.o":          {"-c", "a.c", "-o", "a.o"},
		`'a b' "c d" e\ f`:         {"a b", "c d", "e f"},
		`-DX='"s"' -DY=\"s\" "a\"`: {`-DX="s"`, `-DY="s"`, `a"`},
		`'' ""`:                    {"", ""},
		`a'b'"c"d`:                 {"abcd"},
		`'a\'b'`:                   {"a'b"},
		`a\`:                       {"a"},
	} {
		if diff := cmp.Diff(want, splitResponse(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestExpandResponseFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return "@" + path
	}
	inner := file("inner", "-c 'x y.c'")
	outer := file("outer", "-O2 "+inner+" -g")
	got, ok := expandResponseFiles([]string{"-a", outer, "@", "@" + dir + "/absent", "-z"})
	want := []string{"-a", "-O2", "-c", "x y.c", "-g", "@", "@" + dir + "/absent", "-z"}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ok %v: %s", ok, diff)
	}

	loop := file("loop", "-a @"+dir+"/loop")
	if _, ok := expandResponseFiles([]string{loop}); ok {
		t.Error("a file that names itself was expanded")
	}
	bomb := file("bomb", strings.Repeat("@"+dir+"/bomb ", 1000))
	if _, ok := expandResponseFiles([]string{bomb}); ok {
		t.Error("a file that names itself many times was expanded")
	}
	// What a pipe holds can be read once only.
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := expandResponseFiles([]string{"@" + dir + "/fifo"}); ok {
		t.Error("a pipe was read")
	}
}

// FuzzSplitResponse: quoting what was split and splitting it again gives the same.
func FuzzSplitResponse(f *testing.F) {
	f.Add(`-DX='"s"' "a\"b" c\ d`)
	f.Add("'")
	f.Add(`\`)
	f.Fuzz(func(t *testing.T, text string) {
		args := splitResponse(text)
		var again strings.Builder
		for _, a := range args {
			again.WriteByte('"')
			for i := 0; i < len(a); i++ {
				again.WriteByte('\\')
				again.WriteByte(a[i])
			}
			again.WriteString("\" ")
		}
		if diff := cmp.Diff(args, splitResponse(again.String())); diff != "" {
			t.Error(diff)
		}
	})
}
