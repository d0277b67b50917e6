package trigger

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesInDocs reads and checks each example of the page.
func TestExamplesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/triggers.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 2 {
		t.Fatalf("%d examples", len(examples))
	}
	s := compiled(t)
	for _, e := range examples {
		file := filepath.Join(t.TempDir(), "watch.yaml")
		if err := os.WriteFile(file, e[1], 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := Check(file, &out); err != nil {
			t.Errorf("%s\n%v", e[1], err)
		}
		if err := bySchema(s, string(e[1])); err != nil {
			t.Errorf("%s\nschema: %v", e[1], err)
		}
		if n := strings.Count(out.String(), "fires when"); n < 3 {
			t.Errorf("%d triggers explained:\n%s", n, out.String())
		}
	}
}

func TestCheckExplains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "watch.yaml")
	text := head + "  - name: t\n    cooldown: 90s\n    settle: 2s\n    programs: [a, b]\n    all: [{fsync: {longer: 100ms}}, {thermal: {above: 85}, for: 10s}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Check(file, &out); err != nil {
		t.Fatal(err)
	}
	want := `t (severity 3): fires when all of these hold:
  - a call of fsync or one of its relatives takes 100ms [kernel]
  - a thermal zone * is at 85 °C or hotter [poll]
    (all of this for 10s without a break)
  (each occurrence counts for 1s)
  for programs named a, b
  then not again for the same program for 1m30s; goes on recording for 2s
`
	if out.String() != want {
		t.Errorf("explained as\n%s\nwant\n%s", out.String(), want)
	}
}

// TestNeeds takes the smallest limit of the rules that are for a program.
func TestNeeds(t *testing.T) {
	c, err := Parse("f", []byte(head+`
  - {name: a, fsync: {longer: 200ms}}
  - {name: b, programs: [demo], any: [{fsync: {longer: 100ms}}, {major_faults: {per_second: 7}}, {crash: true}]}
  - {name: c, method: {name: f, longer: 1s, via: probe}}
  - {name: d, programs: ["x*"], method: {name: f, longer: 1s}}
  - {name: e, any: [{signal: SIGUSR1}, {signal: SIGUSR1}, {thermal: {above: 9}}, {socket: true}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	n, m := c.Needs(&Target{Name: "demo"}), c.Needs(&Target{Name: "cut-off-comm", Exe: "/bin/xterm"})
	if n.Kernel.Fsync != 1e8 || n.Kernel.MajorFaultsPerSecond != 7 || !n.Crash || len(n.Probe) != 1 || len(n.Ring) != 0 {
		t.Errorf("demo needs %+v", n)
	}
	if m.Kernel.Fsync != 2e8 || m.Kernel.MajorFaultsPerSecond != 0 || m.Crash || len(m.Ring) != 1 {
		t.Errorf("xterm needs %+v", m)
	}
	if s := c.System(); len(s.Signals) != 1 || len(s.Thermal) != 1 || !s.Socket || len(s.Pressure) != 0 {
		t.Errorf("system needs %+v", s)
	}
}
