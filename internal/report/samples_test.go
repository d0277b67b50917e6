package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"braid/internal/stacks/stackstest"

	"github.com/google/go-cmp/cmp"
)

// sampled is the part of a report's text that is about samples.
func sampled(t *testing.T, o Options) string {
	t.Helper()
	r, err := Build(stackstest.Story(t), o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > Width+1 {
			t.Errorf("wider than %d columns: %s", Width, line)
		}
	}
	_, text, _ := strings.Cut(b.String(), "\nsamples: ")
	text, _, _ = strings.Cut(text, "\n\nclock:")
	return text
}

func TestSamplesText(t *testing.T) {
	want := `8 of cpu-clock at 1000 Hz, 8.00ms of CPU time, 25% in the kernel
  SELF   %  TOTAL   % KIND    FUNCTION
     2  25      5  63 method  sort
     2  25      2  25 native  memcpy
     2  25      2  25 kernel  vfs_write
     1  13      3  38 method  compare
     1  13      1  13 native  [unknown]
     0   0      7  88 method  main
     0   0      6  75 native  _start
     0   0      3  38 native  qsort
     0   0      2  25 method  write_all
     0   0      1  13 native  __write
     0   0      1  13 kernel  entry_SYSCALL_64
     0   0      1  13 method  leaf

SAMPLES ITSELF NATIVE KERNEL  METHOD, AND WHERE IT WAS IN NATIVE CODE AND KERNEL
      3      1      2      0  compare
                                memcpy 2
      2      2      0      0  sort
      2      0      0      2  write_all
                                vfs_write 2
      1      0      1      0  leaf
                                [unknown] 1
user stacks: 5 whole; 1 by frame pointers, which may lack callers; 1 cut; 1
  missing
method records supplied 6 methods that 3 stacks lacked`
	if d := cmp.Diff(want, sampled(t, Options{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestSamplesChosen: the options for threads and length hold for samples, too.
func TestSamplesChosen(t *testing.T) {
	want := `1 of cpu-clock at 1000 Hz, 1.00ms of CPU time, 0% in the kernel
  SELF   %  TOTAL   % KIND    FUNCTION
     1 100      1 100 native  [unknown]
       2 more functions

SAMPLES ITSELF NATIVE KERNEL  METHOD, AND WHERE IT WAS IN NATIVE CODE AND KERNEL
      1      0      1      0  leaf
                                [unknown] 1
user stacks: 1 whole`
	if d := cmp.Diff(want, sampled(t, Options{Thread: "help*", Top: 1})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := sampled(t, Options{Top: 2}); !strings.Contains(got, "10 more functions") || !strings.Contains(got, "2 more methods") {
		t.Errorf("%s", got)
	}
}

func TestSamplesJSON(t *testing.T) {
	r, err := Build(stackstest.Story(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct{ Samples Samples }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Samples
	if s.Methods[0].Name != "compare" || s.Functions[0].Name != "sort" || len(s.Functions) != 12 || len(s.Methods) != 4 {
		t.Errorf("%+v", s)
	}
	var self, parts uint64
	for _, f := range s.Functions {
		self += f.Self
	}
	for _, m := range s.Methods {
		parts += m.Itself + m.Native + m.Kernel
		within := uint64(0)
		for _, w := range m.Within {
			within += w.Samples
		}
		if m.Itself+within != m.Samples {
			t.Errorf("%s: %d itself and %d within, of %d", m.Name, m.Itself, within, m.Samples)
		}
	}
	if self != s.Count || parts != s.Count {
		t.Errorf("%d samples have %d functions and %d parts of methods", s.Count, self, parts)
	}
	s.Functions, s.Methods = nil, nil
	want := Samples{Count: 8, CPUNs: 8e6, Event: "cpu-clock", FrequencyHz: 1000, InKernel: 2, Cut: 1, WithRing: 7, RingMethods: 6, RingSamples: 3,
		Stacks: map[string]uint64{"complete": 5, "chain": 1, "cut": 1, "none": 1}}
	if d := cmp.Diff(want, s, cmp.AllowUnexported(Samples{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	without, err := Build(story(t, true), Options{})
	if err != nil || without.Samples != nil {
		t.Errorf("without samples: %+v, %v", without.Samples, err)
	}
}
