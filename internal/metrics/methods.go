package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Methods is how long watched methods took, as native histograms: their buckets follow the values, whatever the scale, to
// within 10 %. A server that does not know native histograms gets classic buckets. It is safe for concurrent use.
type Methods struct {
	vec *prometheus.HistogramVec
	max int

	mu    sync.Mutex
	known map[[2]string]prometheus.Observer
	rest  prometheus.Observer
}

// NewMethods makes a collector to be registered. At most max pairs of program and method, 100 if that is 0, have series of their
// own; the others share one, program and method "other".
func NewMethods(max int) *Methods {
	if max <= 0 {
		max = 100
	}
	m := &Methods{max: max, known: map[[2]string]prometheus.Observer{}}
	m.vec = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                           "braid_method_duration_seconds",
		Help:                           "How long calls of watched methods took.",
		Buckets:                        prometheus.ExponentialBuckets(1e-6, 4, 13), // 1 us to 17 s
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}, []string{"program", "method"})
	return m
}

// Observe counts one call.
func (m *Methods) Observe(program, method string, d time.Duration) {
	m.observer(text(program), text(method)).Observe(max(d, 0).Seconds())
}

func (m *Methods) observer(program, method string) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{program, method}
	o := m.known[key]
	switch {
	case o != nil:
	case len(m.known) < m.max:
		o = m.vec.WithLabelValues(program, method)
		m.known[key] = o
	default:
		if m.rest == nil {
			m.rest = m.vec.WithLabelValues(other, other)
		}
		o = m.rest
	}
	return o
}

// Describe implements prometheus.Collector.
func (m *Methods) Describe(ch chan<- *prometheus.Desc) { m.vec.Describe(ch) }

// Collect implements prometheus.Collector.
func (m *Methods) Collect(ch chan<- prometheus.Metric) { m.vec.Collect(ch) }
