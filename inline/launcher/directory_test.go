package launcher

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettings: what goes from the launcher to the assembler wrapper arrives, also where it is no UTF-8.
func TestSettings(t *testing.T) {
	want := settings{
		insertion:   insertion{Choose: chooser{Only: words{"ns::*"}, Skip: words{"\xff*"}}, Arch: "arm64", Block: "slot:2", Verbose: true},
		Clang:       words{"clang", "-I", "d\xe9pot", "\"'\n"},
		Assembly:    words{"a\xff.s"},
		Environment: words{"LIBRARY_PATH=/\xff:/x", "COMPILER_PATH="},
		SaveTemps:   true,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got settings
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" {
		t.Error(diff)
	}
}

func TestBuildID(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if id := buildID(self); len(id) < 16 {
		t.Errorf("this test has the build id %q", id)
	}
	if id := buildID("/bin/sh"); id != nil {
		t.Errorf("the shell has the build id %q", id)
	}
}
