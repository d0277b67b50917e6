package torture

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	targets   = flag.String("target", "amd64,arm64,arm", "processors to build for, separated by commas; emulated ones get fewer cases, unless all are taken")
	suiteList = flag.String("suites", "", "suites, separated by commas (default all)")
	compilers = flag.String("compilers", "", "compilers, separated by commas (default all)")
	levels    = flag.String("levels", "", "levels, separated by commas (default all)")
	every     = flag.Int("every", 400, "take one case in so many")
	seed      = flag.String("seed", "braid", "chooses which")
	jobs      = flag.Int("jobs", 2, "cases at the same time")
	budget    = flag.Duration("for", 0, "begin no case later than this (0: do all)")
	resume    = flag.String("resume", "", "a file of results; what passed there is not done again, and new results are added")
	braidPath = flag.String("braid", "", "the braid command (default: built from this tree)")
	match     = flag.String("match", "", "only cases whose names match this regular expression, of all that there are")
	listOnly  = flag.Bool("list", false, "only list the cases")
)

// emulatedEvery is how much sparser the cases of an emulated processor are.
const emulatedEvery = 8

// TestSuites: every program of the suites that passes without stubs passes with them, recorded or not, and what was
// recorded is whole.
func TestSuites(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	name, err := regexp.Compile(*match)
	if err != nil {
		t.Fatal(err)
	}
	done := earlier(t)
	results := slices.Collect(maps.Values(done))
	bin := braid(t, root)
	for _, arch := range split(*targets) {
		target, ok := Targets[arch]
		if !ok {
			t.Fatalf("no target %q", arch)
		}
		selection := Selection{split(*suiteList), split(*compilers), split(*levels), *every, *seed}
		switch {
		case *match != "":
			selection.Every = 1
		case len(target.Emulator) > 0 && *every > 1:
			selection.Every *= emulatedEvery
		}
		cases, err := Cases(Roots{root, filepath.Join(cache, "braid-torture"), arch}, target, selection)
		if err != nil {
			t.Fatal(err)
		}
		cases = slices.DeleteFunc(cases, func(c Case) bool {
			_, passed := done[c.Key()]
			return passed || !name.MatchString(c.Key())
		})
		if *listOnly {
			for i := range cases {
				t.Log(cases[i].Key())
			}
			continue
		}
		runner, err := NewRunner(bin, t.TempDir(), target)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, judgeAll(t, runner, cases)...)
	}
	var b strings.Builder
	if err := WriteTable(&b, results); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\nnot traced: %v", b.String(), Reasons(results))
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// judgeAll judges cases side by side and reports each failure.
func judgeAll(t *testing.T, runner *Runner, cases []Case) []Result {
	var mu sync.Mutex
	var results []Result
	var log *os.File
	if *resume != "" {
		var err error
		if log, err = os.OpenFile(*resume, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err != nil {
			t.Fatal(err)
		}
		defer log.Close()
	}
	begun := time.Now()
	queue := make(chan *Case)
	var workers sync.WaitGroup
	for range *jobs {
		workers.Go(func() {
			for c := range queue {
				r, err := runner.Judge(c)
				mu.Lock()
				switch {
				case err != nil:
					t.Errorf("%s: %v", c.Key(), err)
				case r.Verdict != Passed && r.Verdict != Unsupported:
					t.Errorf("%s: %s: %s", r.Key, r.Verdict, r.Detail)
				}
				if err == nil {
					results = append(results, r)
					if line, err := json.Marshal(r); err == nil && log != nil {
						log.Write(append(line, '\n'))
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		if *budget > 0 && time.Since(begun) > *budget {
			t.Logf("%d of %d cases done", i, len(cases))
			break
		}
		queue <- &cases[i]
	}
	close(queue)
	workers.Wait()
	return results
}

// earlier reads the results to resume from; only the newest of a case counts, and failures are to be done again.
func earlier(t *testing.T) map[string]Result {
	done := map[string]Result{}
	if *resume == "" {
		return done
	}
	text, err := os.ReadFile(*resume)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", *resume, err)
		}
		delete(done, r.Key)
		if r.Verdict == Passed || r.Verdict == Unsupported {
			done[r.Key] = r
		}
	}
	return done
}

// braid is the command under test.
func braid(t *testing.T, root string) string {
	if *braidPath != "" {
		return *braidPath
	}
	bin := filepath.Join(t.TempDir(), "braid")
	c := exec.Command("go", "build", "-o", bin, "./cmd/braid")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building braid: %v\n%s", err, out)
	}
	return bin
}
