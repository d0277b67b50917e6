package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What testdata/waits.c does.
const (
	lockWaits = 5
	pipeTurns = 7
)

// whoWaits is what a report in JSON says of waits.
type whoWaits struct {
	Threads []struct{ Pid, Tid int }
	Waits   *struct {
		Locks []struct {
			Pid      int
			Address  string
			Waits    int
			TimedOut int   `json:"timed_out"`
			TotalNs  int64 `json:"total_ns"`
			MaxNs    int64 `json:"max_ns"`
			Waiting  []struct {
				Method string
				Waits  int
			}
			Released []struct {
				Tid    int
				Method string
				Waits  int
			}
		}
		Calls []waitCalls
	}
	Analysis struct {
		Explanation []string
		Findings    []waitFound
	}
}

type waitCalls struct {
	Class, Call string
	Waits       int
	TotalNs     int64 `json:"total_ns"`
	SleptNs     int64 `json:"slept_ns"`
}

type waitFound struct {
	Method, Cause string
	Waits         []struct {
		What, Address string
		Who           []struct {
			Tid    int
			Method string
		}
	}
}

func waitsOf(t *testing.T, args ...string) (r whoWaits) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, append([]string{"report", "--json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Waits == nil {
		t.Fatal("the report has no waits")
	}
	return r
}

// TestWaits: who waited for which lock in which method, and who released it in which, is the same in the report, the
// explanation and Perfetto.
func TestWaits(t *testing.T) {
	file, _ := record(t, 0, "--threads", "all", "--kernel", "sched,wait", "--", programs["waits"])
	r := waitsOf(t, "--why", "--method", "wait_for_lock", file)
	main, worker := r.Threads[0].Pid, 0
	for _, th := range r.Threads {
		if th.Tid != th.Pid {
			worker = th.Tid
		}
	}

	address := ""
	for _, l := range r.Waits.Locks {
		if len(l.Waiting) != 1 || l.Waiting[0].Method != "wait_for_lock" {
			continue
		}
		address = l.Address
		by := l.Released
		if l.Pid != main || l.Waits != lockWaits || l.TimedOut != 0 || len(by) != 1 || by[0].Tid != worker || by[0].Method != "hold_the_lock" ||
			by[0].Waits != lockWaits || l.MaxNs <= 0 || l.TotalNs < l.MaxNs {
			t.Errorf("the lock: %+v", l)
		}
	}
	if address == "" {
		t.Fatalf("no lock that was waited for in wait_for_lock: %+v", r.Waits.Locks)
	}
	pipes := slices.IndexFunc(r.Waits.Calls, func(c waitCalls) bool { return c.Call == "read pipe" })
	if pipes < 0 {
		t.Fatalf("no waits for pipes: %+v", r.Waits.Calls)
	}
	if c := r.Waits.Calls[pipes]; c.Class != "stream" || c.Waits < pipeTurns || c.SleptNs <= 0 || c.SleptNs > c.TotalNs {
		t.Errorf("waits for pipes: %+v", c)
	}

	checkExplained(t, r, "lock", "futex_wait", address, worker, "hold_the_lock")
	checkExplained(t, waitsOf(t, "--why", "--method", "ask", file), "stream", "read pipe", "", worker, "answer")

	text := must(t, "report", file)
	for _, want := range []string{
		`(?m)^ +` + fmt.Sprint(lockWaits) + ` .* ` + address + ` +wait_for_lock$`,
		`(?m)^ +` + fmt.Sprint(lockWaits) + ` .* released by \S+ \(` + fmt.Sprint(worker) + `\) in hold_the_lock$`,
		`(?m)^ +\d+ .*  read pipe$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	checkWaitsDrawn(t, file, worker)
}

// checkExplained checks that a wait was found that a thread ended in a method.
func checkExplained(t *testing.T, r whoWaits, cause, what, address string, by int, method string) {
	t.Helper()
	i := slices.IndexFunc(r.Analysis.Findings, func(f waitFound) bool { return f.Cause == cause && len(f.Waits) > 0 })
	if i < 0 {
		t.Fatalf("found %+v\n%s", r.Analysis.Findings, strings.Join(r.Analysis.Explanation, "\n"))
	}
	f := r.Analysis.Findings[i]
	if w := f.Waits[0]; w.What != what || w.Address != address || len(w.Who) == 0 || w.Who[0].Tid != by || w.Who[0].Method != method {
		t.Errorf("found %+v\n%s", f, strings.Join(r.Analysis.Explanation, "\n"))
	}
}

// checkWaitsDrawn compares what Perfetto imports with what was recorded.
func checkWaitsDrawn(t *testing.T, file string, worker int) {
	t.Helper()
	tr := checkPerfetto(t, file)
	if tr == nil { // in a guest
		return
	}
	counts := map[string]int{}
	for _, m := range regexp.MustCompile(`syscall_wait tid=(\d+) tgid=\d+ call=(\w+)`).FindAllStringSubmatch(must(t, "dump", file), -1) {
		counts[m[1]+" "+m[2]]++
	}
	var want []string
	for k, n := range counts {
		want = append(want, fmt.Sprint(k, " ", n))
	}
	slices.Sort(want)
	const on = ` join thread_track c on c.id = s.track_id join thread t using (utid) `
	got := tr.Rows(t, `select tid, substr(s.name, 1, instr(s.name || ' ', ' ') - 1) call, count(*) from slice s`+on+`
		where c.name = 'waits' and s.name != 'released' group by 1, 2`)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("waits for each thread and call: %v, recorded were %v", got, want)
	}
	arrows := tr.Rows(t, `select count(*) from flow f join slice s on s.id = f.slice_out`+on+` join slice i on i.id = f.slice_in
		where s.name = 'futex wake-up' and i.name = 'released' and tid = `+fmt.Sprint(worker)+` and i.ts >= s.ts
		and exists (select 1 from slice m join thread_track mt on mt.id = m.track_id
			where mt.utid = t.utid and m.name = 'hold_the_lock' and m.ts <= s.ts and m.ts + m.dur >= s.ts)`)
	if !slices.Equal(arrows, []string{fmt.Sprint(lockWaits)}) {
		t.Errorf("%v arrows from hold_the_lock, want %d", arrows, lockWaits)
	}
	if n := tr.Rows(t, `select count(*) from flow where slice_out not in (select id from slice) or slice_in not in (select id from slice)`); n[0] != "0" {
		t.Errorf("%s arrows without an end", n[0])
	}
}
