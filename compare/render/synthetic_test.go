package render

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"braid/compare/result"
)

// model is a machine made up for tests: what a trace point costs with each arm, and how noisy it is.
type model struct {
	seed     uint64
	name     string
	arch     string
	virtual  string
	clusters []result.Cluster
	slower   map[string]float64 // by cluster: factor on all times
	change   map[string]float64 // by arm: factor on its cost
	noise    float64            // standard deviation of a sample, as a share
	rounds   int
	without  []string // arms that could not run
	loop     bool     // calls in a tight loop were measured too
}

var server = model{
	seed: 1, name: "Example Server 2", arch: "amd64", virtual: "kvm", noise: 0.004, rounds: 6,
	clusters: []result.Cluster{{Name: "all", CPUs: []int{0, 1, 2, 3}, Capacity: 1024, Model: "Example CPU @ 3.10GHz", MaxKHz: 3_100_000, PinnedTo: 2, SyscallNS: 151, SyscallAfterNS: 149}},
	without:  []string{"jvm-baseline", "jvmti", "lttng"}, loop: true,
}

var phone = model{
	seed: 2, name: "Example Phone 9", arch: "arm64", noise: 0.006, rounds: 5,
	clusters: []result.Cluster{
		{Name: "little", CPUs: []int{0, 1, 2, 3}, Capacity: 310, Model: "Cortex-A55", MaxKHz: 1_800_000, PinnedTo: 1},
		{Name: "big", CPUs: []int{4, 5, 6, 7}, Capacity: 1024, Model: "Cortex-X1", MaxKHz: 2_840_000, PinnedTo: 7},
	},
	slower:  map[string]float64{"little": 3.1, "big": 1.1},
	change:  map[string]float64{"clock": 0.55, "stub-on": 0.7},
	without: []string{"jvm-baseline", "jvmti", "lttng", "uftrace", "perf", "xray-basic", "xray-fdr"},
}

type modelArm struct {
	result.Arm
	cost float64 // ns of a trace point
}

// arms are those of the real study, with costs that were measured by hand once.
func (m model) arms() []modelArm {
	a := func(group, name, title string, points, cost float64) modelArm {
		return modelArm{result.Arm{Name: name, Title: title, Group: group, Points: points, Ran: true, Baseline: "baseline"}, cost}
	}
	all := []modelArm{
		a(result.GroupFloor, "baseline", "baseline", 0, 0),
		a(result.GroupFloor, "baseline2", "baseline, again", 0, 0),
		a(result.GroupFloor, "clock", "bare clock read", 2, 9.4),
		a(result.GroupInline, "stub-off", "stub, off", 2, 0.4),
		a(result.GroupInline, "stub-on", "stub, on", 2, 9.7),
		a(result.GroupInline, "stub-on-kernel", "stub, on, with the kernel's events", 2, 9.75),
		a(result.GroupCompiled, "handler", "compiled-in call, minimal handler", 2, 10.0),
		a(result.GroupCompiled, "gettime", "the same, with clock_gettime", 2, 24),
	}
	classes := []struct {
		name, class, site string
		factor            float64
	}{
		{"nop5", "nop turned into a call", "nopl (%rax,%rax)", 1},
		{"push", "emulated push", "push %rbp", 1.4},
		{"other", "single-stepped", "xor %eax,%eax", 27},
	}
	kinds := []struct {
		name, title  string
		points, cost float64
	}{{"uprobe", "uprobe", 1, 311}, {"uretprobe", "uretprobe", 1, 820}, {"pair", "uprobe+uretprobe", 2, 560}, {"multi", "uprobe_multi", 2, 540},
		{"session", "uprobe session", 2, 480}, {"usdt", "USDT", 1, 360}}
	for _, k := range kinds {
		for _, mode := range []string{"count", "record"} {
			for _, c := range classes {
				if k.name == "usdt" && c.name != "nop5" {
					continue
				}
				cost := k.cost * c.factor
				if mode == "record" {
					cost += 85
				}
				if k.name == "usdt" {
					c.class, c.site = "emulated nop", "nop"
				}
				p := a(result.GroupProbe, k.name+"-"+mode+"-"+c.name, k.title+", "+mode, k.points, cost)
				p.Class, p.Site = c.class, c.site
				all = append(all, p)
			}
		}
	}
	all = append(all,
		a(result.GroupExternal, "uftrace", "uftrace", 2, 53),
		a(result.GroupExternal, "xray-basic", "XRay, basic", 2, 44),
		a(result.GroupExternal, "xray-fdr", "XRay, FDR", 2, 52),
		a(result.GroupExternal, "lttng", "LTTng-UST", 2, 92),
		a(result.GroupExternal, "bpftrace", "bpftrace", 2, 980),
		a(result.GroupExternal, "perf", "perf", 2, 1500),
		a(result.GroupExternal, "jvm-baseline", "JVM, no agent", 0, 0.2),
		a(result.GroupExternal, "jvmti", "JVMTI method events", 2, 1700),
	)
	all[len(all)-1].Baseline = "jvm-baseline"
	why := map[string][2]string{
		"jvmti": {"java is not installed", "apt-get install default-jdk-headless"},
		"lttng": {"lttng is not installed", "apt-get install lttng-tools liblttng-ust-dev"},
	}
	for i := range all {
		for _, w := range m.without {
			if all[i].Name == w {
				all[i].Ran, all[i].WhyNot = false, w+" is not there"
				if y, ok := why[w]; ok {
					all[i].WhyNot, all[i].NextStep = y[0], y[1]
				}
			}
		}
		if f, ok := m.change[all[i].Name]; ok {
			all[i].cost *= f
		}
	}
	return all
}

type modelWork struct {
	name      string
	parameter int64
	base      float64 // ns of a call without a trace point
	calls     int64
	feels     float64 // share of a trace point's cost that is felt
	noise     float64 // factor on the model's
}

func (m model) works() []modelWork {
	var ws []modelWork
	for _, w := range []int64{0, 1, 10, 100, 1000} {
		ws = append(ws, modelWork{"listing", w, 1.6 + 2.9*float64(w), 200_000, math.Max(0.6, 1-float64(w)/2000), 1})
	}
	for _, s := range []int64{16, 32, 64, 128, 256, 512, 1024, 2048} {
		base := 3.4
		if s > 64 {
			base = 4.2
		}
		if s > 256 {
			base = 9.5
		}
		ws = append(ws, modelWork{"matrix", s, base, 500_000, 0.2, 1.5})
	}
	ws = append(ws,
		modelWork{"startup", 0, 780, 310_000, 0.9, 2.5},
		modelWork{"schedule", 0, 5200, 20_000, 1, 3},
		modelWork{"io", 0, 91_000, 600, 1, 3})
	if m.loop {
		ws = append(ws, modelWork{"call", 0, 1.2, 200_000, 0.5, 1})
	}
	return ws
}

// study makes up all samples.
func (m model) study() *result.Study {
	rng := rand.New(rand.NewPCG(m.seed, 7))
	t := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	s := &result.Study{
		Schema: result.Schema, Version: "0.5.0", Started: t, Ended: t.Add(412 * time.Second), Complete: true,
		Machine: result.Machine{
			Name: m.name, Arch: m.arch, OS: "Debian GNU/Linux 12", Kernel: "6.12.9", Virtual: m.virtual, MemoryBytes: 16 << 30,
			Counter: "tsc", CounterHz: 2_100_000_000, CounterSteady: true, ClockSource: "tsc", Root: true, Clusters: slices.Clone(m.clusters),
		},
		Method: result.Method{Seed: m.seed, Seconds: 600, Margin: 0.03, Confidence: 0.95, StableShare: 0.05, Aligns: []int{0, 16, 32, 48},
			Width: 0.02, SampleNS: 5_000_000, Launches: m.rounds * len(m.clusters), WarmUps: 412, Unsteady: 3},
		Discards: []result.Discard{
			{Workload: "listing", Why: "time was stolen by the hypervisor", Samples: 46},
			{Arm: "perf", Workload: "startup", Why: "events were lost", Samples: 1},
		},
	}
	if m.virtual != "" {
		s.Warnings = append(s.Warnings, result.Warning{Code: "virtual-machine", Text: "This is a virtual machine (" + m.virtual +
			"): its hypervisor can take time and slow down traps, which probes cost most. Measure on the real device before you trust ratios to probes."})
	}
	if m.arch == "arm64" {
		s.Machine.Counter, s.Machine.CounterHz, s.Machine.ClockSource = "cntvct", 24_000_000, "arch_sys_counter"
	}
	for _, c := range m.clusters {
		s.Machine.CPUs += len(c.CPUs)
	}
	arms := m.arms()
	for _, a := range arms {
		s.Arms = append(s.Arms, a.Arm)
	}
	for _, w := range m.works() {
		for _, c := range m.clusters {
			for _, a := range arms {
				if a.Ran && fits(a, w.name) {
					s.Series = append(s.Series, m.series(rng, a, w, c))
				}
			}
		}
	}
	return s
}

// fits leaves out what takes too long, as the real study does.
func fits(a modelArm, workload string) bool {
	switch workload {
	case "listing", "call":
		return true
	case "matrix":
		return a.cost < 1000
	case "startup":
		return a.cost < 2000
	}
	return a.Group == result.GroupFloor && a.Name != "clock" || a.Group == result.GroupInline
}

func (m model) series(rng *rand.Rand, a modelArm, w modelWork, c result.Cluster) result.Series {
	sr := result.Series{Arm: a.Name, Workload: w.name, Parameter: w.parameter, Cluster: c.Name}
	factor := 1.0
	if f, ok := m.slower[c.Name]; ok {
		factor = f
	}
	aligns := []int{0, 16, 32, 48}
	if w.name != "listing" {
		aligns = []int{0}
	}
	feels := w.feels
	if w.name == "matrix" && w.parameter > 64 && w.parameter <= 256 {
		feels *= 1.4
	}
	cost := a.cost
	if a.Name == "stub-on-kernel" && w.name == "schedule" {
		cost = 90
	}
	rounds := m.rounds
	if w.name == "startup" {
		rounds *= 3
	}
	for r := range rounds {
		for _, al := range aligns {
			ns := (w.base + float64(al)*0.002 + a.Points*cost*feels) * factor
			ns *= 1 + m.noise*w.noise*rng.NormFloat64() + m.noise*w.noise*math.Max(0, rng.ExpFloat64()-1)
			cpu := int64(ns * float64(w.calls))
			n := uint64(float64(w.calls) * a.Points)
			s := result.Sample{Launch: r, Align: al, Calls: w.calls, WallNS: cpu + cpu/500, CPUNS: cpu, Expected: n, Recorded: n}
			if w.name == "matrix" {
				s.Bytes = uint64(w.calls) * 8
				if m.arch == "arm64" {
					s.CacheMisses = uint64(w.calls * w.parameter / 4096)
				}
			}
			if a.Group == result.GroupFloor || a.Name == "stub-off" {
				s.Expected, s.Recorded = 0, 0
			}
			sr.Expected, sr.Recorded = sr.Expected+s.Expected, sr.Recorded+s.Recorded
			sr.Samples = append(sr.Samples, s)
		}
	}
	return sr
}
