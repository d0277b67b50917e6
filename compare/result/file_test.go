package result

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func study() *Study {
	return &Study{
		Schema: Schema, Version: "v1", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Ended: time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC),
		Complete: true, Machine: Machine{Name: "A \"phone\"", Clusters: []Cluster{{Name: "big", CPUs: []int{7}, PinnedTo: 7}}},
		Method: Method{Seed: 1<<53 - 1, Margin: 0.03, Aligns: []int{0, 16}},
		Arms:   []Arm{{Name: "baseline", Ran: true}, {Name: "stub-on", Points: 2, Facts: map[string]string{"samples": "null\n   \"samples\": null"}}},
		Series: []Series{
			{Arm: "baseline", Workload: "listing", Cluster: "big", Samples: []Sample{{Calls: 10, WallNS: 20, CPUNS: 19}, {Launch: 1, Calls: 10, WallNS: 9, Discarded: "stolen"}}},
			{Arm: "stub-on", Workload: "listing", Cluster: "big", Expected: 20, Recorded: 19, Failure: "19 of 20", Samples: []Sample{}},
		},
		Discards: []Discard{{Arm: "baseline", Workload: "listing", Why: "stolen", Samples: 1}},
		Warnings: []Warning{{Code: "one-cpu", Text: "x"}},
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "study.json")
	want := study()
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("another result came back (-written +read):\n%s", d)
	}
	var again bytes.Buffer
	if err := Write(&again, got); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, again.Bytes()) {
		t.Errorf("writing it again gave another file: %v", err)
	}
	if !strings.Contains(again.String(), "\n    {\"launch\":0,\"round\":0,\"align\":0,\"calls\":10,") {
		t.Errorf("a sample is not one line:\n%s", again.String())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "no", "study.json"), want); err == nil || !strings.Contains(err.Error(), "study.json") {
		t.Errorf("into a folder that is not there: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, study()); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for name, c := range map[string]struct{ old, new, want string }{
		"other text":        {good, "hello", "line 1: invalid character 'h'"},
		"other JSON":        {good, "{}", "no field \"schema\""},
		"cut off":           {good[len(good)/2:], "", "unexpected end"},
		"another schema":    {"\"schema\": 1", "\"schema\": 9", "schema 9, this braid reads 1"},
		"an unknown field":  {"\"complete\"", "\"finished\"", "finished"},
		"a wrong type":      {"\"cpus\": 0", "\"cpus\": \"two\"", "line 12"},
		"an unknown arm":    {"\"arm\": \"stub-on\"", "\"arm\": \"other\"", "the arm \"other\""},
		"an arm twice":      {"\"name\": \"stub-on\"", "\"name\": \"baseline\"", "the arm \"baseline\" twice"},
		"an unknown kind":   {"\"cluster\": \"big\"", "\"cluster\": \"huge\"", "the cluster \"huge\""},
		"a series twice":    {"\"arm\": \"stub-on\"", "\"arm\": \"baseline\"", "two series"},
		"impossible calls":  {"\"calls\":10,\"wall_ns\":20", "\"calls\":0,\"wall_ns\":20", "impossible"},
		"a negative time":   {"\"wall_ns\":20", "\"wall_ns\":-20", "impossible"},
		"text after itself": {good, good + "x", "invalid character"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: %q is not in\n%s", name, c.old, good)
		}
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, err := Read(strings.NewReader(text)); name == "another schema" && !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v is not ErrSchema", name, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, study()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{\"schema\":1,\"series\":[{\"samples\":null}]}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		// What can be read can be written, and is the same then.
		var once, twice bytes.Buffer
		if err := Write(&once, s); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&once)
		if err != nil {
			t.Fatal(err)
		}
		once.Reset()
		if err := errors.Join(Write(&once, s), Write(&twice, again)); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("%v: %s then %s", err, &once, &twice)
		}
	})
}
