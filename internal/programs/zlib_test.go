package programs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// zlib builds Debian's zlib with its configure script, static and shared, and returns its directory.
func zlib(t *testing.T, cc compiler, flags string) string {
	t.Helper()
	return tree(t, "zlib", cc.name+strings.ReplaceAll(flags, " ", ""), func(t testing.TB, dir string) {
		mustRun(t, dir, []string{"CC=" + cc.c, "CFLAGS=" + flags}, "./configure")
		mustRun(t, dir, nil, "make", "-s", "-j2")
	})
}

// TestZlibTests: zlib's own tests pass, recorded or not, and a recording has every process of theirs.
func TestZlibTests(t *testing.T) {
	withCompilers(t, func(t *testing.T, cc compiler) {
		dir := zlib(t, cc, optimised)
		check := func(o outcome) {
			t.Helper()
			for _, test := range []string{"zlib test OK", "zlib shared test OK", "zlib 64-bit test OK"} {
				if o.code != 0 || !strings.Contains(o.stdout, test) {
					t.Errorf("exit code %d, no %q in:\n%s%s", o.code, test, o.stdout, o.stderr)
				}
			}
		}
		check(run(t, dir, nil, "make", "-s", "test"))
		o, file := recorded(t, dir, nil, nil, "make", "-s", "test")
		check(o)

		r, err := tracefile.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		tr, err := timeline.Load(r)
		if err != nil {
			t.Fatal(err)
		}
		processes := map[string]int{}
		for _, th := range tr.Threads {
			processes[th.Name]++
		}
		want := map[string]int{"minigzip": 2, "example": 1, "minigzipsh": 2, "examplesh": 1, "minigzip64": 2, "example64": 1}
		if fmt.Sprint(processes) != fmt.Sprint(want) {
			t.Errorf("records of %v, want %v", processes, want)
		}
		report := reportOf(t, file)
		for _, name := range []string{"deflate", "inflate", "test_large_deflate", "gz_write"} {
			if report[name] == 0 {
				t.Errorf("no calls of %s", name)
			}
		}
		if report["main"] != 9 {
			t.Errorf("%d calls of main", report["main"])
		}
	})
}

// reportOf is the number of calls of each method in braid's report.
func reportOf(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	var report struct {
		Methods []struct {
			Name  string
			Calls uint64
		}
	}
	if err := json.Unmarshal([]byte(mustRun(t, filepath.Dir(file), nil, "braid", "report", "--json", file)), &report); err != nil {
		t.Fatal(err)
	}
	calls := map[string]uint64{}
	for _, m := range report.Methods {
		calls[m.Name] += m.Calls
	}
	return calls
}

// sample writes a file of words with some noise, the same each time, and returns its path.
func sample(t *testing.T, dir string, size int) string {
	t.Helper()
	var b bytes.Buffer
	state := uint32(1)
	next := func(n uint32) uint32 { // Knuth's generator for 32 bits
		state = state*1664525 + 1013904223
		return state >> 16 % n
	}
	for b.Len() < size {
		fmt.Fprintf(&b, "%x ", next(1<<10)*next(1<<6))
		if next(50) == 0 {
			for range 200 {
				b.WriteByte(byte(next(256)))
			}
		}
	}
	path := filepath.Join(dir, "sample")
	write(t, path, b.String(), 0o644)
	return path
}

// minigzips are the program with the library linked in and with the library as a module of its own.
func minigzips(t *testing.T, dir string) map[string][]*image {
	t.Helper()
	return map[string][]*image{
		"minigzip":   {openImage(t, dir+"/minigzip")},
		"minigzipsh": {openImage(t, dir+"/minigzipsh"), openImage(t, dir+"/libz.so.1")},
	}
}

// TestZlibCounts: braid counts each function's calls as callgrind does, and its calls from each other, in one module
// and in two, compressing and decompressing; and the report of a run of its own has the same counts.
func TestZlibCounts(t *testing.T) {
	withCompilers(t, func(t *testing.T, cc compiler) {
		for _, flags := range []string{optimised, withoutTailCalls} {
			dir := zlib(t, cc, flags)
			env := []string{"LD_LIBRARY_PATH=" + dir}
			for name, images := range minigzips(t, dir) {
				t.Run(name+" "+flags, func(t *testing.T) {
					work := t.TempDir()
					in := sample(t, work, 300_000)
					content, err := os.ReadFile(in)
					if err != nil {
						t.Fatal(err)
					}
					for _, args := range [][]string{{"-6", in}, {"-d", in + ".gz"}} {
						command := append([]string{filepath.Join(dir, name)}, args...)
						copies := keep(t, args[1])
						o, c := exact(t, work, env, images, 1, flags == withoutTailCalls, command...)
						if o.code != 0 || len(c.unwound) > 0 {
							t.Fatalf("%+v; unwound %v", o, c.unwound)
						}
						allEnded(t, c)

						restore(t, copies)
						o, file := recorded(t, work, env, exactRecording, command...)
						if o.code != 0 {
							t.Fatalf("%+v", o)
						}
						want := map[string]uint64{}
						for k, n := range c.count { // which is callgrind's
							want[nameOf(k, images)] += n
						}
						if got := reportOf(t, file); fmt.Sprint(got) != fmt.Sprint(want) {
							t.Errorf("the report of another run has %v, want %v", got, want)
						}
					}
					back, err := os.ReadFile(in)
					if err != nil || !bytes.Equal(back, content) {
						t.Errorf("what was compressed and decompressed differs: %v", err)
					}
				})
			}
		}
	})
}

// saved is a file that a program is about to replace.
type saved struct {
	path    string
	content []byte
}

func keep(t *testing.T, path string) saved {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return saved{path, content}
}

func restore(t *testing.T, s saved) {
	t.Helper()
	write(t, s.path, string(s.content), 0o644)
}

// TestWrappedRing: a ring that holds the newest part only decodes to the end of what a ring that holds all does.
func TestWrappedRing(t *testing.T) {
	dir := zlib(t, gcc, optimised)
	work := t.TempDir()
	in := sample(t, work, 300_000)
	events := func(ring string) []string {
		copies := keep(t, in)
		o, file := recorded(t, work, nil, []string{"--kernel", "none", "--ring", ring}, dir+"/minigzip", in)
		if o.code != 0 {
			t.Fatalf("%+v", o)
		}
		restore(t, copies)
		return eventsOf(t, file)
	}
	whole := events("1G")
	for _, ring := range []string{"4K", "64K", "256K"} {
		part := events(ring)
		if len(part) < 400 || len(part) >= len(whole) {
			t.Errorf("%s: %d events of %d", ring, len(part), len(whole))
			continue
		}
		if !slices.Equal(part, whole[len(whole)-len(part):]) {
			t.Errorf("%s: its %d events are not the last of %d", ring, len(part), len(whole))
		}
	}
}

// eventsOf lists the beginnings and ends of all calls that are in a trace of one thread, oldest first.
func eventsOf(t *testing.T, file string) []string {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Threads) != 1 {
		t.Fatalf("records of %d threads", len(tr.Threads))
	}
	th := tr.Threads[0]
	var list []string
	err = tr.Joiner(th).Edges(tr.Segments(th), func(edges []timeline.Edge) error {
		for _, e := range edges {
			switch {
			case e.Begin && e.Flags == 0:
				list = append(list, "+"+th.Space.Name(e.Method).Name)
			case !e.Begin:
				list = append(list, "-")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
