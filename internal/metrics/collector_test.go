package metrics

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// source is a snapshot that tests change between scrapes.
type source struct {
	snap Snapshot
	err  error
}

func (s *source) Metrics() (*Snapshot, error) { return &s.snap, s.err }

// gather scrapes, and returns values by name and labels: "name{a=b}". A histogram is its count and sum.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry() // fails on what is not described, and on series that are there twice
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[key] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				out[key] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				out[key+" count"] = float64(m.Histogram.GetSampleCount())
				out[key+" sum"] = m.Histogram.GetSampleSum()
				for _, b := range m.Histogram.Bucket {
					out[fmt.Sprintf("%s %g", key, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return out
}

func want(t *testing.T, got map[string]float64, key string, v float64) {
	t.Helper()
	if g, ok := got[key]; !ok || g != v {
		t.Errorf("%s is %v (%v), want %v", key, g, ok, v)
	}
}

func TestHistogram(t *testing.T) {
	h := &Histogram{Buckets: make([]uint64, 64), Sum: 5e9, Count: 99} // the count was read a moment later
	h.Buckets[0], h.Buckets[9], h.Buckets[10], h.Buckets[34], h.Buckets[35], h.Buckets[63] = 1, 2, 4, 8, 16, 32
	s := &source{snap: Snapshot{Targets: []Target{{Program: "app", PID: 1, RunQueue: h, OffCPU: map[string]*Histogram{"io": {Buckets: []uint64{7}}}}}}}
	got := gather(t, NewCollector(s, Options{}))
	const name = "braid_run_queue_latency_seconds{pid=1,program=app} "
	want(t, got, name+"count", 63)
	want(t, got, name+"sum", 5)
	want(t, got, name+"1.024e-06", 3)
	want(t, got, name+"2.048e-06", 7)
	want(t, got, name+"34.359738368", 15)
	want(t, got, "braid_off_cpu_seconds{cause=io,pid=1,program=app} count", 7)
	want(t, got, "braid_off_cpu_seconds{cause=io,pid=1,program=app} 34.359738368", 7)
	buckets := 0
	for k := range got {
		if strings.HasPrefix(k, name) {
			buckets++
		}
	}
	if buckets != 26+2 {
		t.Errorf("%d buckets", buckets-2)
	}
}

// However many programs, triggers and losses there are, the number of series has an end, and sums never go down.
func TestBounded(t *testing.T) {
	s := &source{}
	c := NewCollector(s, Options{MaxTargets: 3, MaxNames: 4})
	last := map[string]float64{}
	most := 0
	for round := range 20 {
		s.snap = Snapshot{Lost: map[string]uint64{}, Triggers: map[string]Trigger{}}
		for i := range 20 {
			pid := 100 + i
			if i >= 3 {
				pid += 20 * (round / 2) // short-lived: another process every other round
			}
			s.snap.Targets = append(s.snap.Targets, Target{Program: fmt.Sprint("p", pid), PID: pid, Records: uint64(10 * (round + 1)), RingBytes: 5,
				Flushes: map[string]uint64{fmt.Sprint("t", pid): 1}, Fsync: &Histogram{Buckets: []uint64{0, uint64(round)}}})
			s.snap.Lost[fmt.Sprint("l", i)] = 1
			s.snap.Triggers[fmt.Sprint("t", round*20+i)] = Trigger{Fired: 1}
		}
		got := gather(t, c)
		most = max(most, len(got))
		for k, v := range got {
			if v < last[k] && strings.Contains(k, "program=other") {
				t.Errorf("round %d: %s went from %v to %v", round, k, last[k], v)
			}
		}
		want(t, got, "braid_ring_bytes{pid=,program=other}", 17*5)
		want(t, got, "braid_target_records_total{pid=100,program=p100}", float64(10*(round+1)))
		last = got
	}
	// 17 at a time, each seen last in an odd round.
	sum := 0.0
	for round := 1; round < 20; round += 2 {
		sum += 17 * 10 * float64(round+1)
	}
	want(t, last, "braid_target_records_total{pid=,program=other}", sum)
	names := map[string]bool{}
	for k := range last {
		if strings.HasPrefix(k, "braid_lost_total") {
			names[k] = true
		}
	}
	if len(names) != 5 || last["braid_lost_total{name=other}"] != 16 {
		t.Errorf("%v, other %v", slices.Sorted(maps.Keys(names)), last["braid_lost_total{name=other}"])
	}
	if most > 600 {
		t.Errorf("%d values in one scrape", most)
	}
}

func TestForeignNames(t *testing.T) {
	s := &source{snap: Snapshot{Targets: []Target{
		{Program: "a\xff\n\"", PID: 1}, {Program: strings.Repeat("ä", 200), PID: 2}, {Program: "twice", PID: 2}, {Program: "other", PID: 3}},
		Lost: map[string]uint64{"x\xff": 1, "x\xfe": 2}}}
	got := gather(t, NewCollector(s, Options{}))
	want(t, got, "braid_target_records_total{pid=1,program=a?\n\"}", 0)
	want(t, got, "braid_target_records_total{pid=2,program="+strings.Repeat("ä", 64)+"}", 0)
	want(t, got, "braid_lost_total{name=x?}", 3)
}

func TestMethodsBounded(t *testing.T) {
	m := NewMethods(2)
	for i := range 5 {
		m.Observe("app", fmt.Sprint("m", i), time.Duration(i)*time.Millisecond)
	}
	got := gather(t, m)
	want(t, got, "braid_method_duration_seconds{method=m1,program=app} count", 1)
	want(t, got, "braid_method_duration_seconds{method=other,program=other} count", 3)
}

// serve runs a server, and returns its address.
func serve(t *testing.T, src Source, m *Methods) string {
	t.Helper()
	s, err := Listen("127.0.0.1:0", src, m, Options{Version: "1.2", Revision: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return s.Addr()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestServer(t *testing.T) {
	s := &source{}
	addr := serve(t, s, nil)
	if code, body := get(t, "http://"+addr+"/metrics"); code != 200 || !strings.Contains(body, `braid_build_info{revision="abc",version="1.2"} 1`) ||
		!strings.Contains(body, "process_cpu_seconds_total") {
		t.Errorf("%d\n%s", code, body)
	}
	for path, want := range map[string]int{"/healthz": 200, "/": 404, "/metrics/x": 404} {
		if code, _ := get(t, "http://"+addr+path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if resp, err := http.Post("http://"+addr+"/metrics", "", nil); err != nil || resp.StatusCode != 405 {
		t.Errorf("POST: %v, %v", resp, err)
	}
	if _, err := Listen(addr, s, nil, Options{}); err == nil {
		t.Error("an address that is in use")
	}
}

// A daemon that can not say its counts says so, and says nothing wrong.
func TestSourceFails(t *testing.T) {
	s := &source{err: errors.New("stuck")}
	addr := serve(t, s, nil)
	if code, body := get(t, "http://"+addr+"/healthz"); code != 503 || !strings.Contains(body, "stuck") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get(t, "http://"+addr+"/metrics"); code != 200 || !strings.Contains(body, "braid_scrape_errors_total 1") || strings.Contains(body, "braid_targets") {
		t.Errorf("%d\n%s", code, body)
	}
}
