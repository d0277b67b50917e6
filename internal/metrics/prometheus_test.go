package metrics

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// full is a snapshot in which every metric has a value.
func full() *source {
	h := func(n uint64) *Histogram {
		return &Histogram{Buckets: []uint64{12: n, 13: n, 20: n}, Sum: n * 1_000_000, Count: 3 * n}
	}
	target := func(name string, pid int, n uint64) Target {
		return Target{Program: name, PID: pid, Threads: 4, ThreadsOn: 2, Records: 1000 * n, Wraps: n, Swaps: 2 * n, Starts: 3 * n, Stops: 4 * n, RingBytes: 64 << 20,
			Flushes: map[string]uint64{"slow": n, "hang": 1}, Lost: map[string]uint64{"ring_slots_overwritten": 7 * n}, MajorFaults: 5 * n,
			RunQueue: h(n), Fsync: h(2 * n), Reclaim: h(3 * n),
			OffCPU: map[string]*Histogram{"sleeping": h(n), "blocked": h(n)}, BlockIO: map[string]*Histogram{"read": h(n), "write": h(4)}}
	}
	return &source{snap: Snapshot{Targets: []Target{target("app", 11, 7), target("mail", 12, 13)},
		Lost: map[string]uint64{"kernel_ring_full_switch": 3}, Triggers: map[string]Trigger{"slow": {Fired: 20, Suppressed: 2}},
		KeptTraces: 5, KeptBytes: 1 << 20, Refused: map[string]uint64{"no_consent": 2}, Removed: map[string]uint64{"quota": 1},
		Hooks: map[string]bool{"sched_switch": true, "page_fault_user": false}}}
}

// observe counts calls of a method: 100 around 16 ms.
func observe(m *Methods) {
	for i := range 100 {
		m.Observe("app", "draw", 16*time.Millisecond+time.Duration(i)*time.Microsecond)
	}
}

func TestPromtool(t *testing.T) {
	m := NewMethods(0)
	observe(m)
	_, body := get(t, "http://"+serve(t, full(), m)+"/metrics")
	for _, d := range descs {
		if !strings.Contains(body, "\n"+d.name) {
			t.Errorf("%s is not served", d.name)
		}
	}
	c := exec.Command("promtool", "check", "metrics")
	c.Stdin = strings.NewReader(body)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// prom is a Prometheus that scrapes one address.
type prom struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *prom {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs: [{job_name: braid, static_configs: [{targets: ['%s']}]}]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // it can not say which port it got, so it is told a free one
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var log strings.Builder
	c := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--enable-feature=native-histograms", "--log.level=warn")
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil || t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log.String())
		}
	})
	return &prom{t, "http://" + addr}
}

// query returns the values of an instant query, by labels; nil if there are none or Prometheus is not there yet.
func (p *prom) query(expr string) map[string]float64 {
	p.t.Helper()
	c := exec.Command("promtool", "query", "instant", "--format=json", p.url, expr)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		if strings.Contains(stderr.String(), "bad_data") {
			p.t.Fatalf("%s: %s", expr, stderr.String())
		}
		return nil
	}
	var samples []struct {
		Metric map[string]string
		Value  [2]any
	}
	if err := json.Unmarshal(out, &samples); err != nil {
		p.t.Fatalf("%s: %s: %v", expr, out, err)
	}
	values := map[string]float64{}
	for _, s := range samples {
		v, err := strconv.ParseFloat(fmt.Sprint(s.Value[1]), 64)
		if err != nil {
			p.t.Fatalf("%s: %s", expr, out)
		}
		values[s.Metric["program"]+"/"+s.Metric["method"]] = v
	}
	return values
}

// await queries until there is something.
func (p *prom) await(expr string) map[string]float64 {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if v := p.query(expr); len(v) > 0 {
			return v
		}
	}
	p.t.Fatalf("%s: nothing", expr)
	return nil
}

// A real Prometheus scrapes, and knows what was put in; the dashboard's panels all show something.
func TestPrometheus(t *testing.T) {
	m := NewMethods(0)
	observe(m)
	p := startPrometheus(t, serve(t, full(), m))
	p.await(`count_over_time(up{job="braid"}[1m]) > 3`)
	for expr, want := range map[string]float64{
		`braid_target_records_total{program="app",pid="11"}`:          7000,
		`sum(braid_target_ring_wraps_total)`:                          20,
		`braid_target_flushes_total{program="mail",trigger="slow"}`:   13,
		`sum(braid_target_lost_total{name="ring_slots_overwritten"})`: 140,
		`braid_lost_total`:                                                                                3,
		`braid_triggers_fired_total{trigger="slow"}`:                                                      20,
		`braid_kernel_hook_present{hook="page_fault_user"}`:                                               0,
		`braid_run_queue_latency_seconds_count{program="app"}`:                                            21,
		`braid_run_queue_latency_seconds_sum{program="app"}`:                                              0.007,
		`braid_block_io_seconds_bucket{program="app",op="read",le="1.6384e-05"}`:                          14,
		`histogram_count(braid_method_duration_seconds{method="draw"})`:                                   100,
		`histogram_quantile(0.5, braid_method_duration_seconds) > bool 0.015`:                             1,
		`histogram_quantile(0.5, braid_method_duration_seconds) < bool 0.018`:                             1,
		`braid_build_info{version="1.2",revision="abc"}`:                                                  1,
		`process_resident_memory_bytes > bool 1000000`:                                                    1,
		`count({__name__=~"braid_.*",program="app",pid="11"}) < bool 400`:                                 1,
		`count(count by (__name__) ({__name__=~"braid_.*",__name__!~".*_(bucket|sum|count)"})) > bool 20`: 1,
	} {
		values := p.query(expr)
		if len(values) != 1 {
			t.Errorf("%s: %v", expr, values)
		}
		for _, v := range values {
			if v != want {
				t.Errorf("%s: %v, want %v", expr, v, want)
			}
		}
	}
	for _, e := range dashboard(t) {
		e = strings.TrimSuffix(e, "> 0") // shows only what grows; nothing does here
		if len(p.query(e)) == 0 {
			t.Errorf("the dashboard's %s: nothing", e)
		}
	}
}

// dashboard returns the expressions of the dashboard's panels, with its variables filled in.
func dashboard(t *testing.T) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/grafana/braid.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "30s", "$__interval", "30s", "$program", ".*", "$job", ".*")
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			e := fill.Replace(x.Expr)
			if strings.Contains(e, "$") {
				t.Errorf("%s: unknown variable in %s", p.Title, x.Expr)
			}
			out = append(out, e)
		}
	}
	if len(out) < 15 {
		t.Fatalf("only %d expressions", len(out))
	}
	return out
}

func TestDashboard(t *testing.T) {
	known := map[string]bool{"braid_method_duration_seconds": true, "process_cpu_seconds_total": true, "process_resident_memory_bytes": true}
	for _, d := range descs {
		known[d.name] = true
	}
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	rules := "groups: [{name: g, rules: [\n"
	for i, e := range dashboard(t) {
		for _, name := range regexp.MustCompile(`\b(braid|process)_\w+`).FindAllString(e, -1) {
			if !known[name] && !known[suffix.ReplaceAllString(name, "")] {
				t.Errorf("there is no metric %s: %s", name, e)
			}
		}
		q, _ := json.Marshal(e)
		rules += fmt.Sprintf("{record: 'r%d', expr: %s},\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules+"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// The page names every metric.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descs {
		if !strings.Contains(string(b), "| `"+d.name+"` |") {
			t.Errorf("docs/metrics.md does not describe %s", d.name)
		}
	}
}
