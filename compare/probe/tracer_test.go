package probe

import (
	"errors"
	"os"
	"testing"
)

func statics(t *testing.T, functions ...string) []Site {
	t.Helper()
	sites, err := Statics(targetPath, functions)
	if err != nil {
		t.Fatal(err)
	}
	return sites
}

// expected is what a tracer counts for so many calls. Kernels before 5.15 don't tell entries from returns.
func expected(tr *Tracer, calls uint64) (c Counts) {
	o := tr.options
	c.Events = calls * uint64(o.Kind.Points())
	if o.Record && tr.cookies && o.Kind != Return {
		c.Entries = calls
	}
	if o.Record && tr.cookies && o.Kind != Entry {
		c.Returns = calls
	}
	return c
}

// Every kind records each call once, of its own process alone, and nothing any more once it is detached.
func TestKindsRecordExactly(t *testing.T) {
	p, other := start(t), start(t)
	for _, kind := range kinds(t) {
		function, sites := "nested", entries(t, "nested")
		calls := uint64(10) // it calls itself
		if kind == Static {
			function, sites, calls = "usdt", statics(t, "usdt"), 1
		}
		for _, record := range []bool{false, true} {
			o := Options{Kind: kind, Record: record, RingBytes: 1 << 20}
			tr := open(t, o)
			p.call(function, 5)
			take(t, tr, Counts{})
			attach(t, tr, p, sites)
			p.call(function, 100)
			other.call(function, 7)
			take(t, tr, expected(tr, 100*calls))
			take(t, tr, Counts{})
			p.call(function, 1)
			take(t, tr, expected(tr, calls))
			detach(t, tr)
			p.call(function, 3)
			take(t, tr, Counts{})
			states, _, err := Look(p.pid(), targetPath, sites)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range states {
				if s != Untouched {
					t.Errorf("%+v: %s at %#x after Detach", o, s, sites[i].Address)
				}
			}
			if err := tr.Close(); err != nil {
				t.Errorf("%+v: %v", o, err)
			}
		}
	}
}

// Static probes with a semaphore are watched while they are traced, so that the program does the work for them.
func TestSemaphoreCountsWatchers(t *testing.T) {
	p := start(t)
	tr := open(t, Options{Kind: Static})
	sites := statics(t, "usdt")
	if len(sites) != 2 || sites[0].Return || !sites[1].Return || sites[0].Semaphore == 0 {
		t.Fatalf("static sites are %+v", sites)
	}
	if n := p.call("usdt", 1); n != 0 {
		t.Fatalf("%d watchers before", n)
	}
	attach(t, tr, p, sites)
	if n := p.call("usdt", 1); n != 2 {
		t.Errorf("%d watchers of two probes", n)
	}
	take(t, tr, Counts{Events: 2})
	detach(t, tr)
	if n := p.call("usdt", 1); n != 0 {
		t.Errorf("%d watchers after", n)
	}
	if _, err := Statics(targetPath, []string{"nested"}); err == nil {
		t.Error("a function without a static probe has one")
	}
}

// A ring that is full drops events, and says how many.
func TestFullRingCountsDrops(t *testing.T) {
	p := start(t)
	tr := open(t, Options{Kind: Entry, Record: true, RingBytes: 1})
	attach(t, tr, p, entries(t, "mov"))
	const calls = 1000
	p.call("mov", calls)
	c, err := tr.Take()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel leaves the last byte of the ring free.
	if fit := uint64(os.Getpagesize()-1) / RecordBytes; c.Events != fit || c.Dropped != calls-fit {
		t.Errorf("%d events and %d dropped in a ring for %d", c.Events, c.Dropped, fit)
	}
	p.call("mov", 3)
	take(t, tr, expected(tr, 3))
}

// An Attach that fails takes back what it did.
func TestFailedAttachLeavesNothing(t *testing.T) {
	for _, kind := range kinds(t) {
		p := start(t)
		tr := open(t, Options{Kind: kind})
		good := entries(t, "nested")
		bad := good[0]
		bad.Offset = 1 << 40
		if err := tr.Attach(p.pid(), targetPath, []Site{good[0], bad}); err == nil {
			t.Errorf("%s: attached behind the file's end", kind)
		}
		if err := tr.Attach(0, targetPath, good); err == nil {
			t.Errorf("%s: attached to all processes", kind)
		}
		if err := tr.Attach(p.pid(), targetPath, nil); err == nil {
			t.Errorf("%s: attached to no site", kind)
		}
		if n := tr.Attached(); n != 0 {
			t.Errorf("%s: %d links are left", kind, n)
		}
		p.call("nested", 1)
		take(t, tr, Counts{})
		if states, _, err := Look(p.pid(), targetPath, good); err != nil || states[0] != Untouched {
			t.Errorf("%s: %v, %v", kind, states, err)
		}
	}
}

func TestCloseAfterProcessEnded(t *testing.T) {
	for _, kind := range kinds(t) {
		tr, err := Open(Options{Kind: kind, Record: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(string(kind), func(t *testing.T) {
			p := start(t)
			attach(t, tr, p, entries(t, "nested"))
		})
		for range 2 {
			if err := tr.Close(); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Entries(targetPath, []string{"nested", "nobody"}); err == nil {
		t.Error("found a function that is not there")
	}
	if _, err := Entries(targetPath+"x", []string{"nested"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a missing file: %v", err)
	}
	if _, err := Open(Options{Kind: "magic"}); err == nil || errors.Is(err, ErrNoKind) {
		t.Errorf("an unknown kind: %v", err)
	}
}
