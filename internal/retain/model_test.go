package retain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The model keeps all that was ever kept in a list, and knows the limits as one would say them. After each operation it
// compares what the folder really holds.
type model struct {
	t    *testing.T
	o    Options
	now  time.Time
	kept []Entry
}

func (m *model) recent(e Entry) bool { return m.now.Sub(e.Time) < week }

// less is the order in which traces go.
func (m *model) less(a, b Entry) bool {
	if m.o.Keep == KeepCampaign && (a.Campaign == "c") != (b.Campaign == "c") {
		return b.Campaign == "c"
	}
	if a.Severity != b.Severity {
		return a.Severity < b.Severity
	}
	if m.o.Keep == KeepFirst {
		return a.Time.After(b.Time)
	}
	if a.Score != b.Score {
		return a.Score < b.Score
	}
	return a.Time.Before(b.Time)
}

// check compares the store's list, and the files, with limits; and with the state before: op may have added one trace.
func (m *model) check(s *Store, op string, added *Entry, refused error) {
	m.t.Helper()
	fail := func(format string, args ...any) {
		m.t.Helper()
		m.t.Fatalf("%s: %s\nbefore %s\nafter  %s", op, fmt.Sprintf(format, args...), brief(m.kept), brief(s.List()))
	}
	after := s.List()
	var bytes int64
	week, program, trigger := 0, map[string]int{}, map[string]int{}
	for _, e := range after {
		for _, p := range []string{e.Trace, e.Summary} {
			st, err := os.Stat(p)
			if err != nil {
				fail("%v", err)
			}
			bytes += st.Size()
		}
		if m.recent(e) {
			week++
			program[e.Program]++
			trigger[e.Program+" "+e.Trigger]++
		}
	}
	l := m.o.Limits
	if week > l.PerWeek {
		fail("%d in a week, limit %d", week, l.PerWeek)
	}
	for p, n := range program {
		if n > l.PerProgram {
			fail("%d of %s, limit %d", n, p, l.PerProgram)
		}
	}
	for p, n := range trigger {
		if n > l.PerTrigger {
			fail("%d of %s, limit %d", n, p, l.PerTrigger)
		}
	}
	if bytes > l.Quota {
		fail("%d bytes, quota %d", bytes, l.Quota)
	}
	entries, err := filepath.Glob(filepath.Join(m.o.Dir, "*", "*", "*"))
	if err != nil || len(entries) != 2*len(after) {
		fail("%d files for %d traces: %v", len(entries), len(after), err)
	}
	has := func(list []Entry, name string) bool {
		return slices.ContainsFunc(list, func(e Entry) bool { return e.Name == name })
	}
	for _, e := range after {
		if !has(m.kept, e.Name) && (added == nil || e.Name != added.Name) {
			fail("%s came from nowhere", e.Name)
		}
	}
	if refused != nil && len(after) != len(m.kept) && reason(refused) != "" {
		fail("refused (%v), but others went", refused)
	}
	for _, gone := range m.kept {
		if has(after, gone.Name) || added == nil {
			continue
		}
		if m.less(*added, gone) {
			fail("%s went for one that is worth less", gone.Name)
		}
		// Everything that is worth less than it, and as easy to remove, went before it: of its own program and trigger, all
		// limits that it stood under are theirs too.
		for _, e := range after {
			if e.Name != added.Name && e.Program == gone.Program && e.Trigger == gone.Trigger && m.recent(e) == m.recent(gone) && m.less(e, gone) {
				fail("%s went, %s stayed", gone.Name, e.Name)
			}
		}
	}
	m.kept = after
}

func brief(list []Entry) (s string) {
	for _, e := range list {
		s += fmt.Sprintf(" %d/%.0f/%s%s", e.Severity, e.Score, e.Name, e.Campaign)
	}
	return s
}

func TestModel(t *testing.T) {
	for seed := range uint64(9) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := &model{t: t, now: start, o: Options{Dir: folder(t),
				Limits: Limits{PerWeek: 4 + r.IntN(8), PerProgram: 2 + r.IntN(4), PerTrigger: 1 + r.IntN(3), Quota: 10_000 + r.Int64N(40_000), MaxAge: 20 * 24 * time.Hour}}}
			m.o.Keep = []Keep{KeepWorst, KeepFirst, KeepCampaign}[seed%3]
			if m.o.Keep == KeepCampaign {
				m.o.Campaign = "c"
			}
			m.o.Now = func() time.Time { return m.now }
			s := open(t, m.o)
			added, refusals := 0, 0
			for i := range 150 {
				m.now = m.now.Add(time.Duration(r.IntN(12)) * time.Hour)
				switch op := r.IntN(20); {
				case op < 16:
					c := Candidate{Program: string(rune('a' + r.IntN(3))), UID: os.Geteuid(), Trigger: string(rune('x' + r.IntN(3))),
						Severity: r.IntN(4), Score: float64(r.IntN(3)), Time: m.now, Bytes: int64(r.IntN(12_000))}
					if r.IntN(3) == 0 {
						c.Campaign = "c"
					}
					e, err := put(s, c, r.IntN(12_000))
					if err != nil && reason(err) == "" {
						t.Fatal(err)
					}
					if e == nil {
						refusals++
						// A refusal when it was written comes after room was made for what was said.
						var before []Entry
						for _, k := range m.kept {
							if slices.ContainsFunc(s.List(), func(e Entry) bool { return e.Name == k.Name }) {
								before = append(before, k)
							}
						}
						m.kept = before
					} else {
						added++
					}
					m.check(s, fmt.Sprintf("%d: put %+v", i, c), e, err)
				case op < 18:
					if err := s.Sweep(m.now); err != nil {
						t.Fatal(err)
					}
					m.check(s, fmt.Sprintf("%d: sweep", i), nil, nil)
					for _, e := range m.kept {
						if m.now.Sub(e.Time) > m.o.Limits.MaxAge {
							t.Fatalf("%s is too old", e.Name)
						}
					}
				case op < 19:
					before := s.List()
					s.Close()
					s = open(t, m.o)
					m.check(s, fmt.Sprintf("%d: open again", i), nil, nil)
					if len(s.List()) > len(before) {
						t.Fatalf("%d before, %d after opening again", len(before), len(s.List()))
					}
				default:
					m.now = m.now.Add(-time.Duration(r.IntN(10)) * time.Hour) // the clock is set
				}
			}
			if added < 10 || refusals == 0 {
				t.Errorf("%d were added, %d refused: too few to mean anything", added, refusals)
			}
		})
	}
}
