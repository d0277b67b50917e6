package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A daemon that is killed at any moment of a flush leaves whole traces and no others. The next one takes over and removes
// what was begun. The program knows nothing of it.
func TestWatchKilledWhileFlushing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	config := watchFaults + "output:\n  dir: " + dir + "\n  limits: {per_week: 0, per_program: 0, per_trigger: 0}\n"
	v := newVictim(t, 2, 50*time.Microsecond)
	w := &watcher{dir: dir, socket: filepath.Join(t.TempDir(), "s")}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.consents(t, "programs: *\n")
	w.again(t, config)
	rng := rand.New(rand.NewPCG(1, 2))
	checked := map[string]bool{}
	took := 100 * time.Millisecond
	rounds, whole, cut := 30, 0, 0
	for i := range rounds {
		if i > 0 {
			w.again(t, config)
		}
		if left, err := os.ReadDir(filepath.Join(w.dir, ".tmp")); err != nil || len(left) > 0 {
			t.Errorf("round %d: the new daemon finds %v, %v", i, left, err)
		}
		w.has(t, v)
		c := command(t, "flush", "--socket", w.socket)
		began := time.Now()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(took))))
			w.cmd.Process.Kill()
		}
		code := waitCode(t, c)
		if i == 0 {
			took = time.Since(began)
			w.cmd.Process.Kill()
		}
		w.cmd.Wait()
		if !w.wholeTraces(t, checked) && code == 0 {
			t.Errorf("round %d: braid flush ended with 0, and there is no new trace", i)
		}
		if left, _ := os.ReadDir(filepath.Join(w.dir, ".tmp")); len(left) > 0 {
			cut++
		}
		if code == 0 {
			whole++
		}
	}
	t.Logf("a flush took %v; of %d, %d were answered, %d cut short while they wrote", took, rounds, whole, cut)
	w.again(t, config)
	w.has(t, v)
	r := report(t, w.flush(t, v.pid))
	if got := r.recorded(); len(got) != 3 {
		t.Errorf("threads with records: %v", got)
	}
	threes(t, r)
	w.ends(t)
	v.unharmed()
}

// wholeTraces checks every trace under its final name that is not in checked yet, and reports whether there was one.
func (w *watcher) wholeTraces(t *testing.T, checked map[string]bool) (fresh bool) {
	t.Helper()
	users, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if !u.IsDir() || u.Name() == ".tmp" {
			continue
		}
		traces, err := os.ReadDir(filepath.Join(w.dir, u.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range traces {
			if checked[e.Name()] {
				continue
			}
			checked[e.Name()], fresh = true, true
			base := filepath.Join(w.dir, u.Name(), e.Name(), e.Name())
			threes(t, report(t, base+".braid"))
			var side map[string]any
			if b, err := os.ReadFile(base + ".json"); err != nil || json.Unmarshal(b, &side) != nil {
				t.Errorf("%s.json: %v", base, err)
			}
			files, _ := filepath.Glob(filepath.Join(filepath.Dir(base), "*"))
			if slices.Sort(files); !slices.Equal(files, []string{base + ".braid", base + ".json"}) {
				t.Errorf("beside the trace: %v", files)
			}
		}
	}
	return fresh
}
