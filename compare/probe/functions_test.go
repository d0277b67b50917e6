package probe

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// All functions of a program are found once, in order, without those that no return probe may be in.
func TestFunctions(t *testing.T) {
	all, err := Functions(targetPath, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, s := range all {
		names = append(names, s.Symbol)
		if i > 0 && s.Address <= all[i-1].Address || s.Offset == 0 || len(s.Code) == 0 {
			t.Errorf("%+v after %+v", s, all[max(0, i-1)])
		}
	}
	if !slices.Contains(names, "main") || !slices.Contains(names, "push") || slices.Contains(names, "_start") || slices.Contains(names, "_init") {
		t.Errorf("%q", names)
	}
	some, err := Functions(targetPath, func(name string) bool { return strings.HasPrefix(name, "push") })
	if err != nil || len(some) == 0 || len(some) >= len(all) {
		t.Errorf("%d of %d, %v", len(some), len(all), err)
	}
	want, err := Entries(targetPath, []string{"push"})
	if err != nil || !slices.ContainsFunc(some, func(s Site) bool { return s.Offset == want[0].Offset && s.Symbol == "push" }) {
		t.Errorf("%+v is not among %+v: %v", want, some, err)
	}
	for _, name := range []string{"_start", "main.cold", "__sigsetjmp", "vfork", "_dl_runtime_resolve", "__braid_slow"} {
		if returns(name) {
			t.Errorf("%s would get a return probe", name)
		}
	}
}

// Probes at returns break programs whose stacks move: this test is one.
func TestFunctionsOfGo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Functions(self, func(string) bool { return true }); err == nil || !strings.Contains(err.Error(), "Go") {
		t.Errorf("functions of a Go program: %v", err)
	}
}

// Probes in a file are met by every process that runs it, also by those that start later.
func TestAttachFile(t *testing.T) {
	for _, kind := range []Kind{Multi, Pair} {
		if Supported(kind) != nil {
			continue
		}
		tracer, err := Open(Options{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		sites, err := Entries(targetPath, []string{"push"})
		if err != nil {
			t.Fatal(err)
		}
		if err := tracer.AttachFile(targetPath, sites); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			p := start(t)
			p.call("push", 1009)
		}
		if c, err := tracer.Take(); err != nil || c.Events != 2*2*1009 {
			t.Errorf("%s: %+v, %v", kind, c, err)
		}
		if err := tracer.Attach(0, targetPath, sites); err == nil {
			t.Error("0 is a process")
		}
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
	}
}
