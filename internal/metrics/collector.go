package metrics

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// other is the label's value for everything beyond a cap.
const other = "other"

// Options bound the number of series. Zero is the default.
type Options struct {
	MaxTargets int    // targets with series of their own; default 50
	MaxNames   int    // values of any other label; default 30
	Version    string // of braid
	Revision   string
}

// Collector makes metrics from a Source's snapshots. It is safe for concurrent use.
//
// The first MaxTargets targets get series of their own, and keep them while they live. Those beyond are summed up under
// "other", and those of them that have ended stay in that sum; otherwise it would go down, which Prometheus takes for a
// restart.
type Collector struct {
	src Source
	o   Options

	mu      sync.Mutex
	own     map[int]string         // the program of each target with its own series, by pid
	rest    map[int]Target         // those summed up, as last seen
	ended   Target                 // the sum of those that have ended
	names   map[string]*nameLimits // by label's meaning
	scrapes prometheus.Counter     // failed ones
}

// NewCollector makes a collector to be registered with a prometheus.Registerer.
func NewCollector(src Source, o Options) *Collector {
	if o.MaxTargets <= 0 {
		o.MaxTargets = 50
	}
	if o.MaxNames <= 0 {
		o.MaxNames = 30
	}
	return &Collector{src: src, o: o, own: map[int]string{}, rest: map[int]Target{}, names: map[string]*nameLimits{},
		scrapes: prometheus.NewCounter(prometheus.CounterOpts{Name: "braid_scrape_errors_total", Help: "Scrapes that could not read the daemon's counts."})}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d.desc
	}
	c.scrapes.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	snap, err := c.src.Metrics()
	if err != nil {
		c.scrapes.Inc()
	}
	c.scrapes.Collect(ch)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := emitter{ch, c}
	e.value(buildInfo, 1, c.o.Version, c.o.Revision)
	own, sum, n := c.divide(snap.Targets)
	e.value(targets, float64(len(snap.Targets)))
	for i := range own {
		e.target(&own[i], own[i].Program, strconv.Itoa(own[i].PID))
	}
	if n {
		e.target(&sum, other, "")
	}
	e.counts(lost, "lost", snap.Lost)
	fired, suppressed := map[string]uint64{}, map[string]uint64{}
	for name, t := range snap.Triggers {
		fired[name], suppressed[name] = t.Fired, t.Suppressed
	}
	e.counts(triggersFired, "trigger", fired)
	e.counts(triggersSuppressed, "trigger", suppressed)
	e.value(tracesKept, float64(snap.KeptTraces))
	e.value(tracesBytes, float64(snap.KeptBytes))
	e.counts(tracesRefused, "refused", snap.Refused)
	e.counts(tracesRemoved, "removed", snap.Removed)
	hooks := slices.Sorted(maps.Keys(snap.Hooks))
	for _, h := range hooks[:min(len(hooks), 4*c.o.MaxNames)] {
		e.value(hook, float64(b2i(snap.Hooks[h])), text(h))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// divide says which targets have series of their own; the sum of the others, and whether there ever was one.
func (c *Collector) divide(all []Target) (own []Target, sum Target, any bool) {
	live := map[int]bool{}
	for _, t := range all {
		live[t.PID] = true
	}
	for pid := range c.own {
		if !live[pid] {
			delete(c.own, pid)
		}
	}
	for pid, t := range c.rest {
		if !live[pid] {
			c.ended.add(&t)
			delete(c.rest, pid)
		}
	}
	seen := map[int]bool{} // a snapshot that names a target twice must not fail the scrape
	for _, t := range all {
		if seen[t.PID] {
			continue
		}
		seen[t.PID] = true
		_, summed := c.rest[t.PID]
		if name, ok := c.own[t.PID]; ok || !summed && len(c.own) < c.o.MaxTargets {
			// A target keeps the name that it was first seen by: after an exec it is still one series.
			if !ok {
				name = text(t.Program)
				c.own[t.PID] = name
			}
			t.Program = name
			own = append(own, t)
		} else {
			c.rest[t.PID] = t
		}
	}
	sum.add(&c.ended)
	sum.Threads, sum.ThreadsOn, sum.RingBytes = 0, 0, 0 // of those that live alone
	for _, t := range c.rest {
		sum.add(&t)
	}
	return own, sum, len(c.rest) > 0 || c.ended.Flushes != nil
}

// add adds another target's counts.
func (t *Target) add(u *Target) {
	t.Threads += u.Threads
	t.ThreadsOn += u.ThreadsOn
	t.Records += u.Records
	t.Wraps += u.Wraps
	t.Swaps += u.Swaps
	t.Starts += u.Starts
	t.Stops += u.Stops
	t.RingBytes += u.RingBytes
	t.MajorFaults += u.MajorFaults
	addCounts(&t.Flushes, u.Flushes)
	addCounts(&t.Lost, u.Lost)
	for _, p := range []struct{ to, from **Histogram }{{&t.RunQueue, &u.RunQueue}, {&t.Fsync, &u.Fsync}, {&t.Reclaim, &u.Reclaim}} {
		*p.to = (*p.to).plus(*p.from)
	}
	addHistograms(&t.OffCPU, u.OffCPU)
	addHistograms(&t.BlockIO, u.BlockIO)
}

func addCounts(to *map[string]uint64, from map[string]uint64) {
	if *to == nil {
		*to = map[string]uint64{}
	}
	for k, n := range from {
		(*to)[k] += n
	}
}

func addHistograms(to *map[string]*Histogram, from map[string]*Histogram) {
	if *to == nil {
		*to = map[string]*Histogram{}
	}
	for k, h := range from {
		(*to)[k] = (*to)[k].plus(h)
	}
}

// plus returns a sum; both stay as they were, and either may be nil.
func (h *Histogram) plus(g *Histogram) *Histogram {
	if g == nil {
		return h
	}
	sum := Histogram{Buckets: slices.Clone(g.Buckets), Sum: g.Sum, Count: g.Count}
	if h != nil {
		for len(sum.Buckets) < len(h.Buckets) {
			sum.Buckets = append(sum.Buckets, 0)
		}
		for i, n := range h.Buckets {
			sum.Buckets[i] += n
		}
		sum.Sum += h.Sum
		sum.Count += h.Count
	}
	return &sum
}

// nameLimits gives the first values of a label series of their own.
type nameLimits struct{ known map[string]bool }

// name returns a label's value: the name itself, or other once there are too many.
func (c *Collector) name(label, name string) string {
	l := c.names[label]
	if l == nil {
		l = &nameLimits{known: map[string]bool{}}
		c.names[label] = l
	}
	name = text(name)
	if !l.known[name] {
		if len(l.known) >= c.o.MaxNames {
			return other
		}
		l.known[name] = true
	}
	return name
}

// emitter sends metrics.
type emitter struct {
	ch chan<- prometheus.Metric
	c  *Collector
}

func (e emitter) value(d *desc, v float64, labels ...string) {
	e.ch <- prometheus.MustNewConstMetric(d.desc, d.kind, v, labels...)
}

// counts sends a value for each name, those beyond the cap summed up.
func (e emitter) counts(d *desc, label string, m map[string]uint64, labels ...string) {
	sums := map[string]uint64{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		sums[e.c.name(label, k)] += m[k]
	}
	for k, n := range sums {
		e.value(d, float64(n), append(slices.Clone(labels), k)...)
	}
}

func (e emitter) histogram(d *desc, h *Histogram, labels ...string) {
	if h == nil {
		return
	}
	buckets, count := h.cumulative()
	e.ch <- prometheus.MustNewConstHistogram(d.desc, count, float64(h.Sum)/1e9, buckets, labels...)
}

func (e emitter) histograms(d *desc, label string, m map[string]*Histogram, labels ...string) {
	sums := map[string]*Histogram{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := e.c.name(label, k)
		sums[name] = sums[name].plus(m[k])
	}
	for k, h := range sums {
		e.histogram(d, h, append(slices.Clone(labels), k)...)
	}
}

func (e emitter) target(t *Target, program, pid string) {
	for d, v := range map[*desc]float64{
		targetThreads: float64(t.Threads), targetThreadsOn: float64(t.ThreadsOn), targetRecords: float64(t.Records),
		targetWraps: float64(t.Wraps), targetSwaps: float64(t.Swaps), targetStarts: float64(t.Starts), targetStops: float64(t.Stops),
		ringBytes: float64(t.RingBytes), majorFaults: float64(t.MajorFaults),
	} {
		e.value(d, v, program, pid)
	}
	e.counts(targetFlushes, "trigger", t.Flushes, program, pid)
	e.counts(targetLost, "lost", t.Lost, program, pid)
	e.histogram(runQueue, t.RunQueue, program, pid)
	e.histograms(offCPU, "cause", t.OffCPU, program, pid)
	e.histograms(blockIO, "op", t.BlockIO, program, pid)
	e.histogram(fsync, t.Fsync, program, pid)
	e.histogram(reclaim, t.Reclaim, program, pid)
}

// Kernel buckets from 2^10 ns (1 us) to 2^35 ns (34 s) are served; what is shorter falls into the first, what is longer
// into +Inf. More would cost series and tell nothing.
const (
	firstBucket = 9  // values below 2^10 ns
	lastBucket  = 34 // values below 2^35 ns
)

// cumulative turns buckets of powers of two into Prometheus' buckets, by their upper bound in seconds. A bound belongs to its
// bucket there and not in the kernel's; a whole number of nanoseconds can not tell. The count is that of the buckets: read
// while the kernel counts, h.Count can differ, and a bucket above the count would be nonsense.
func (h *Histogram) cumulative() (buckets map[float64]uint64, count uint64) {
	buckets = make(map[float64]uint64, lastBucket-firstBucket+1)
	for i := range max(len(h.Buckets), lastBucket+1) {
		if i < len(h.Buckets) {
			count += h.Buckets[i]
		}
		if i >= firstBucket && i <= lastBucket {
			buckets[math.Ldexp(1, i+1)/1e9] = count
		}
	}
	return buckets, count
}
