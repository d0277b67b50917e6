package retain

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// folder makes a folder of traces with consent for everything of every user.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "traces")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, consentFile), "programs: *\nusers: *\nrecorders: *\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return start }
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// put keeps a trace of that many bytes.
func put(s *Store, c Candidate, size int) (*Entry, error) {
	if c.Bytes == 0 {
		c.Bytes = int64(size)
	}
	slot, err := s.Admit(c)
	if err != nil {
		return nil, err
	}
	defer slot.Abort()
	if err := os.WriteFile(slot.Path, bytes.Repeat([]byte("t"), size), 0o644); err != nil {
		return nil, err
	}
	return slot.Commit(map[string]int{"size": size})
}

func reason(err error) Reason {
	var r *RefusedError
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func candidate(severity int, after time.Duration) Candidate {
	return Candidate{Program: "app", UID: os.Geteuid(), Trigger: "slow", Severity: severity, Time: start.Add(after - time.Hour)}
}

func severities(s *Store) string {
	var out []string
	for _, e := range s.List() {
		out = append(out, strconv.Itoa(e.Severity))
	}
	return strings.Join(out, " ")
}

func TestKeepsTraceAsItsUsers(t *testing.T) {
	dir := folder(t)
	uid := os.Geteuid()
	if uid == 0 {
		uid = 65534
	}
	s := open(t, Options{Dir: dir})
	c := Candidate{Program: "a/../b app", UID: uid, Trigger: "main blocked", Severity: 3, Score: 1.5, Campaign: "c", Time: start}
	e, err := put(s, c, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if want := "2026-11-21T12-00-00.000Z_a-..-b-app_main-blocked"; e.Name != want {
		t.Errorf("name %s, want %s", e.Name, want)
	}
	for path, mode := range map[string]os.FileMode{
		filepath.Join(dir, strconv.Itoa(uid)): os.ModeDir | 0o700,
		filepath.Dir(e.Trace):                 os.ModeDir | 0o700,
		e.Trace:                               0o600,
		e.Summary:                             0o600,
	} {
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", path, st.Mode(), mode)
		}
		if d, err := os.Open(path); err != nil || !ownedBy(d, uid) {
			t.Errorf("%s is not user %d's: %v", path, uid, err)
		}
	}
	b, err := os.ReadFile(e.Summary)
	if err != nil {
		t.Fatal(err)
	}
	var side Sidecar
	if err := json.Unmarshal(b, &side); err != nil || side.Entry.Severity != 3 || !strings.Contains(string(side.Summary), "1000") {
		t.Errorf("summary %s: %v", b, err)
	}
	if e.Bytes != 1000+int64(len(b)) {
		t.Errorf("%d bytes, want 1000 and the summary's %d", e.Bytes, len(b))
	}
	if names, _ := list(s.tmp); len(names) != 0 {
		t.Errorf("left in .tmp: %v", names)
	}
	// The same name again.
	e2, err := put(s, c, 10)
	if err != nil || e2.Name != e.Name+"_2" {
		t.Errorf("second: %v, %v", e2, err)
	}
	before := s.List()
	s.Close()
	after := open(t, Options{Dir: dir}).List()
	if len(after) != 2 || len(before) != 2 {
		t.Fatalf("%d before, %d after opening again", len(before), len(after))
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("before %+v\nafter %+v", before[i], after[i])
		}
	}
}

func TestSummaryOnly(t *testing.T) {
	s := open(t, Options{Dir: folder(t), SummaryOnly: true})
	e, err := put(s, candidate(1, 0), 1000)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := os.ReadDir(filepath.Dir(e.Summary))
	if e.Trace != "" || len(names) != 1 || names[0].Name() != e.Name+".json" {
		t.Errorf("kept %+v: %v", e, names)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	s := open(t, Options{Dir: folder(t)})
	slot, err := s.Admit(candidate(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	write(t, slot.Path, "x")
	if err := slot.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := slot.Commit(nil); !errors.Is(err, ErrDone) {
		t.Errorf("commit after abort: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(slot.Path)); !errors.Is(err, os.ErrNotExist) || len(s.List()) != 0 {
		t.Errorf("left: %v, %v", err, s.List())
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := folder(t)
	s := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrBusy) {
		t.Errorf("second store: %v", err)
	}
	s.Close()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrUnsafe) {
		t.Errorf("folder that all can write to: %v", err)
	}
	for _, o := range []Options{{}, {Dir: dir, Keep: "best"}, {Dir: dir, Keep: KeepCampaign}, {Dir: dir, Campaign: "x"}} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v was opened", o)
		}
	}
}

func TestWhoGoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    Options
		in      []int // severities, an hour apart
		want    string
		refused Reason
	}{
		{"the oldest of the least severe", Options{Limits: Limits{PerWeek: 3}}, []int{2, 1, 1, 3}, "2 1 3", ""},
		{"less severe than all", Options{Limits: Limits{PerWeek: 2}}, []int{2, 3, 1}, "2 3", ReasonPerWeek},
		{"equals: the newer stays", Options{Limits: Limits{PerProgram: 2}}, []int{1, 2, 1}, "2 1", ""},
		{"first: equals: the older stays", Options{Keep: KeepFirst, Limits: Limits{PerTrigger: 2}}, []int{1, 1, 1}, "1 1", ReasonPerTrigger},
		{"first: the more severe comes in, the newest goes", Options{Keep: KeepFirst, Limits: Limits{PerWeek: 2}}, []int{1, 1, 2}, "1 2", ""},
		{"quota", Options{Limits: Limits{Quota: 40_000}}, []int{3, 1, 2, 2, 4}, "3 2 4", ""},
		{"larger than the quota", Options{Limits: Limits{Quota: 9_000}}, []int{1}, "", ReasonQuota},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Dir = folder(t)
			s := open(t, c.opts)
			var err error
			for i, severity := range c.in {
				_, err = put(s, candidate(severity, time.Duration(i)*time.Minute), 10_000)
				if err != nil && i < len(c.in)-1 {
					t.Fatal(err)
				}
			}
			if reason(err) != c.refused || (err == nil) != (c.refused == "") {
				t.Errorf("the last: %v, want %q", err, c.refused)
			}
			if got := severities(s); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
			if n := s.Stats().Refused[c.refused]; c.refused != "" && n != 1 {
				t.Errorf("refusals counted: %d", n)
			}
		})
	}
}

func TestCampaignGoesFirst(t *testing.T) {
	s := open(t, Options{Dir: folder(t), Keep: KeepCampaign, Campaign: "login", Limits: Limits{PerWeek: 1}})
	for i, c := range []struct {
		severity int
		campaign string
		refused  Reason
	}{{5, "", ""}, {1, "login", ""}, {9, "other", ReasonPerWeek}, {2, "login", ""}} {
		cand := candidate(c.severity, time.Duration(i)*time.Minute)
		cand.Campaign = c.campaign
		if _, err := put(s, cand, 10); reason(err) != c.refused {
			t.Errorf("%d: %v, want %q", i, err, c.refused)
		}
	}
	if got := severities(s); got != "2" {
		t.Errorf("kept %q", got)
	}
}

// A trace that was admitted can lose its place to one that was written faster.
func TestTwoAtOnce(t *testing.T) {
	s := open(t, Options{Dir: folder(t), Limits: Limits{PerWeek: 1, Quota: 100_000}})
	slow, err := s.Admit(candidate(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	write(t, slow.Path, "x")
	if _, err := put(s, candidate(2, 0), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Commit(nil); reason(err) != ReasonPerWeek {
		t.Errorf("the less severe one: %v", err)
	}
	// What is held for one is not given to another.
	big := candidate(3, 0)
	big.Bytes = 60_000
	held, err := s.Admit(big)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(big); reason(err) != ReasonQuota {
		t.Errorf("room that is held: %v", err)
	}
	held.Abort()
	if slot, err := s.Admit(big); err != nil {
		t.Errorf("room that was given back: %v", err)
	} else {
		slot.Abort()
	}
}

func TestMoreThanWasSaid(t *testing.T) {
	s := open(t, Options{Dir: folder(t), Limits: Limits{Quota: 5_000}})
	c := candidate(1, 0)
	c.Bytes = 100
	if _, err := put(s, c, 6_000); reason(err) != ReasonQuota {
		t.Errorf("more than the quota: %v", err)
	}
	if names, _ := list(s.tmp); len(names) != 0 || len(s.List()) != 0 {
		t.Errorf("left: %v, %v", names, s.List())
	}
}

func TestFreeSpace(t *testing.T) {
	s := open(t, Options{Dir: folder(t), Limits: Limits{MinFree: 1000}})
	disk := int64(100_000)
	s.free = func() (int64, error) {
		left := disk
		for _, e := range s.entries {
			left -= e.Bytes
		}
		for slot := range s.slots {
			if st, err := os.Stat(slot.Path); err == nil {
				left -= st.Size()
			}
		}
		return left, nil
	}
	for i := range 4 {
		if _, err := put(s, candidate(2, time.Duration(i)*time.Minute), 40_000); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.List()); n != 2 || s.Stats().Removed[ReasonFree] != 2 {
		t.Errorf("%d kept, %v", n, s.Stats())
	}
	if _, err := put(s, candidate(1, 0), 40_000); reason(err) != ReasonFree {
		t.Errorf("less severe: %v", err)
	}
	disk = 0 // others have filled it
	if _, err := put(s, candidate(9, 0), 10); reason(err) != ReasonFree || len(s.List()) != 2 {
		t.Errorf("nothing that could go makes room: %v, %d kept", err, len(s.List()))
	}
}

func TestSweep(t *testing.T) {
	dir := folder(t)
	s := open(t, Options{Dir: dir, Limits: Limits{MaxAge: 48 * time.Hour}})
	for i := range 5 {
		c := candidate(i%2, 0)
		c.Time = start.Add(time.Duration(i-4) * 24 * time.Hour / 2)
		if _, err := put(s, c, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(start.Add(13 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := severities(s); got != "0 1 0" || s.Stats().Removed[ReasonAge] != 2 {
		t.Errorf("kept %q, %v", got, s.Stats().Removed)
	}
	// The clock went back by a year: nothing goes, and everything counts.
	if err := s.Sweep(start.AddDate(-1, 0, 0)); err != nil || len(s.List()) != 3 {
		t.Errorf("clock set back: %v, %d kept", err, len(s.List()))
	}
	// The user removes one.
	if err := os.RemoveAll(filepath.Dir(s.List()[0].Summary)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(start); err != nil || len(s.List()) != 2 || s.Stats().Removed[ReasonGone] != 1 {
		t.Errorf("after the user removed one: %v, %v", err, s.Stats())
	}
	s.Close()
	if got := severities(open(t, Options{Dir: dir, Limits: Limits{PerProgram: 1}})); got != "1" {
		t.Errorf("after the limit was lowered: kept %q", got)
	}
}
