package steptest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"braid/control"
	"braid/inline"
	layout "braid/inline/runtime"
)

// compile builds one source file with stubs.
func compile(t *testing.T, compiler, source string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(braidBin, "cc", compiler, "-O1", "-pthread", "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", source, err, out)
	}
	return bin
}

// recorded runs a program to its end, all of its threads recorded, and returns each thread's records as text.
func recorded(t *testing.T, bin string, args ...string) (stdout string, threads []string) {
	t.Helper()
	s, err := control.NewSession(layout.PolicyAll, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(bin, args...)
	c.Env = append(os.Environ(), s.Env())
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", bin, args, err)
	}
	areas, err := s.Areas()
	if err != nil || len(areas) != 1 {
		t.Fatalf("%d areas, %v", len(areas), err)
	}
	defer areas[0].Close()
	names := functions(t, bin, areas[0].Modules()[0].Bias)
	d := inline.Decoder{Methods: inline.NewMethods(8)}
	for _, th := range areas[0].Threads() {
		if !th.Recorded() {
			continue
		}
		seg, err := th.Collect(nil)
		if err != nil {
			t.Fatal(err)
		}
		records, zeros, _, err := parse(seg.Slots, names)
		if err != nil || zeros != 0 || seg.DroppedNewest != 0 || !seg.Exact || !seg.Complete {
			t.Errorf("%v, %d unwritten, %d dropped, exact %v, complete %v: %s", err, zeros, seg.DroppedNewest, seg.Exact, seg.Complete, text(records))
		}
		dec, err := d.Decode(&seg.Segment, nil)
		if err != nil {
			t.Fatal(err)
		}
		if st := dec.Stats; st.Damaged+st.Ambiguous+st.LostResumes+st.Orphans+st.Unwritten != 0 {
			t.Errorf("the decoder found %+v in %s", st, text(records))
		}
		threads = append(threads, text(records))
	}
	for name, n := range areas[0].Lost() {
		if n != 0 {
			t.Errorf("%s: %d", name, n)
		}
	}
	return string(out), threads
}

// functions are a program's, by their addresses at run time.
func functions(t *testing.T, bin string, bias uint64) map[uint64]string {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	names := map[uint64]string{}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 && s.Section != elf.SHN_UNDEF {
			names[bias+s.Value] = s.Name
		}
	}
	return names
}

// TestWaysToEnd compares all that threads record, up to their last function, with what they do.
func TestWaysToEnd(t *testing.T) {
	bin := compile(t, "g++", "testdata/exits.cc")
	const key = " key_gone leaf - -"
	for _, c := range []struct {
		way, want string
		threads   int
	}{
		// The C library has four rounds for destructors of keys. Those of thread-local objects come before.
		{"destructors", "with_destructors _ZN5local3useEv - leaf - - _ZN5localD1Ev leaf - -" + strings.Repeat(key, 4), 1},
		// Forced unwinding runs no landing pad here: the calls stay open.
		{"frames", "leaves_frames deep leaf - deep leaf - deep leaf - deep leaf -", 1},
		{"signals", "signalled" + strings.Repeat(" recurs leaf -", 4) + strings.Repeat(" leaf - -", 4) + " leaf - -", 1},
		{"quick", "quick leaf - -", 307},
	} {
		_, threads := recorded(t, bin, c.way)
		if len(threads) != c.threads {
			t.Errorf("%s: %d threads, want %d", c.way, len(threads), c.threads)
		}
		for _, got := range threads {
			got = strings.ReplaceAll(got, "localD2Ev", "localD1Ev")
			if c.way == "destructors" {
				got = strings.ReplaceAll(got, "_ZTW6object - ", "")
			}
			if got != c.want {
				t.Errorf("%s: recorded\n%q, want\n%q", c.way, got, c.want)
			}
		}
	}
	_, threads := recorded(t, bin, "outlives")
	if want := []string{"leaf -", "outlives" + strings.Repeat(" leaf -", 5) + " -"}; fmt.Sprint(threads) != fmt.Sprint(want) {
		t.Errorf("outlives: recorded %q, want %q", threads, want)
	}
}

// TestSmallestStack has a thread of 16 KiB register itself. What that takes of the stack is printed.
func TestSmallestStack(t *testing.T) {
	bin := compile(t, "gcc", "testdata/small.c")
	used := func(s string) int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	on, threads := recorded(t, bin)
	if len(threads) != 1 || threads[0] != "leaf -" {
		t.Errorf("recorded %q", threads)
	}
	off, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of 16384 used, %d without recording", used(on), used(string(off)))
}
