package sample

import (
	"os"
	"strings"
	"testing"

	"braid/internal/tracefile"
)

// Code that no file has is walked by its frame pointers, and a library that was loaded late and deleted has its names.
func TestModules(t *testing.T) {
	if os.Getenv("BRAID_TEST_SAMPLE") != "" {
		t.Log("a guest's programs are static")
		return
	}
	bin, library := compile(t, "modules", "modules.c", "-fomit-frame-pointer", "-ldl"), compile(t, "library.so", "library.c", "-shared", "-fPIC")
	r := sampleCommand(t, Options{Hz: 499}, bin, library)
	anonymous, deleted := 0, 0
	for i := range r.samples {
		s := &r.samples[i]
		chain := strings.Join(r.chain(s), " ")
		switch {
		case s.End != tracefile.EndComplete && s.End != tracefile.EndNone:
			t.Errorf("%v: %s", s.End, chain)
		case strings.HasPrefix(chain, "burn ?anon generated main"):
			anonymous++
			m, _ := r.table.Find(s.Tgid, s.User[1], s.Time)
			if m.Flags != tracefile.MappingAnon || s.Way != tracefile.StackAuto {
				t.Errorf("generated code: %+v, %v", m, s.Way)
			}
		case strings.HasPrefix(chain, "burn spin loaded main"):
			deleted++
			m, f := r.table.Find(s.Tgid, s.User[1], s.Time)
			if m.Path != library || m.Since == 0 || m.BuildID == "" || f.Start > s.User[1] || f.End <= s.User[1] {
				t.Errorf("a deleted library: %+v, %+v", m, f)
			}
		}
	}
	if anonymous < 20 || deleted < 20 {
		t.Errorf("%d samples through generated code, %d through a deleted library", anonymous, deleted)
	}

	r = sampleCommand(t, Options{Hz: 499, Stacks: tracefile.StackDWARF}, bin)
	ends := map[tracefile.StackEnd]int{}
	for i := range r.samples {
		ends[r.samples[i].End]++
	}
	if ends[tracefile.EndNoModule] < 20 {
		t.Errorf("by tables alone, generated code ends a stack: %v", ends)
	}
}
