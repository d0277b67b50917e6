package ctl

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
)

// checkTable renders a status and checks what holds for any.
func checkTable(t *testing.T, s *Status) string {
	t.Helper()
	var b strings.Builder
	if err := Render(&b, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := len([]rune(line)); n > width {
			t.Errorf("%d columns: %q", n, line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", line)
		}
	}
	return b.String()
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 10, ""}, {"one two", 7, "one two"}, {"one two", 6, "one|two"}, {"onetwothree", 4, "onet|woth|ree"},
		{"no consent: user 0 has no file", 12, "no consent:|user 0 has|no file"}, {"aaaa bbbb", 4, "aaaa|bbbb"},
	} {
		if got := strings.Join(wrapped(c.text, c.n), "|"); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestRender(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := &Status{Time: now,
		Daemon: Daemon{PID: 812, Version: "1.0", UptimeNs: uint64(26*time.Hour + 5*time.Minute), CPUNs: uint64(3 * time.Minute),
			RSSBytes: 41 << 20, RingBytes: 70 << 20, Kernel: "on", HooksMissing: []string{"page_fault_user"},
			Lost: map[string]uint64{"kernel_ring_full_switch": 12, "none": 0}},
		Targets: []Target{
			{PID: 4711, Name: "com.example.mail", UID: 10123, State: "on", Records: 1_234_567, RingBytes: 64 << 20, Flushes: 3, LastTrigger: "main-blocked",
				Threads: []Thread{{TID: 4711, Name: "main", On: true, Records: 1_234_000, Wraps: 2, RingBytes: 32 << 20, Swaps: 3},
					{TID: 4720, Name: "pool\x1b[31m", Records: 567, RingBytes: 32 << 20}}},
			{PID: 99, Name: "quiet", State: "off", Note: "no consent: user 0 has no file /var/lib/braid/0/consent"},
		},
		Triggers: []Trigger{{Name: "main-blocked", Fired: 3, Suppressed: 1, Last: now.Add(-90 * time.Second)}, {Name: "slow"}},
		Kept:     Kept{Dir: "/var/lib/braid", Traces: 3, Bytes: 210 << 20, Refused: map[string]uint64{"no_consent": 2}}}
	got := checkTable(t, s)
	want := `braid 1.0  pid 812  up 1d02h  cpu 0.19%  memory 41.0MiB  rings 70.0MiB
kernel on
hooks missing: page_fault_user
lost: kernel_ring_full_switch 12

    PID PROGRAM               UID STATE    THREADS  RECORDS FLUSHES TRIGGER
   4711 com.example.mail    10123 on           1/2     1.2M       3 main-bloc…
   4711   main                    on       32.0MiB     1.2M  wraps 2, swaps 3
   4720   pool?[31m               off      32.0MiB      567  wraps 0, swaps 0
     99 quiet                   0 off          0/0        0       0
          no consent: user 0 has no file /var/lib/braid/0/consent

TRIGGER                                     FIRED SUPPRESSED  LAST
main-blocked                                    3          1  1m30s ago
slow                                            0          0  -

kept: 3 traces, 210MiB in /var/lib/braid
not kept: no_consent 2
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Numbers of any size keep the columns.
func TestRenderExtremes(t *testing.T) {
	most := uint64(math.MaxUint64)
	lost := map[string]uint64{}
	for _, c := range "abcdefghijklmnop" {
		lost[strings.Repeat(string(c), 30)] = most
	}
	checkTable(t, &Status{Daemon: Daemon{PID: math.MaxInt, UptimeNs: most, CPUNs: most, RSSBytes: most, RingBytes: most, Lost: lost},
		Targets:  []Target{{PID: math.MaxInt, UID: math.MinInt, Records: most, Flushes: most, Name: strings.Repeat("ä", 99), Threads: []Thread{{Records: most, Wraps: most}}}},
		Triggers: []Trigger{{Name: strings.Repeat("x", 99), Fired: most, Last: time.Unix(0, 0)}},
		Kept:     Kept{Bytes: math.MinInt64, Dir: strings.Repeat("/d", 99)}})
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1.0k", 99_400: "99.4k", 99_500: "100k", 999_499: "999k", 999_500: "1.0M", most: "18.4E"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
