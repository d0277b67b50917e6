// Package metrics serves the counts of `braid watch` to Prometheus.
//
// A Collector reads a Snapshot at each scrape, so between scrapes it costs nothing. Durations of watched methods are
// observed as they are seen (Methods). The number of series is bounded: programs, triggers and methods come from outside,
// so each label has a cap, and what is beyond it is summed up under "other". docs/metrics.md names every metric.
package metrics
