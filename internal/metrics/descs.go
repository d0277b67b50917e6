package metrics

import (
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// desc is a metric and whether it only grows.
type desc struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	name string
}

// descs are all metrics of the collector.
var descs []*desc

func define(kind prometheus.ValueType, name, help string, labels ...string) *desc {
	d := &desc{prometheus.NewDesc(name, help, labels, nil), kind, name}
	descs = append(descs, d)
	return d
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var (
	buildInfo = define(gauge, "braid_build_info", "Always 1; its labels say which braid runs.", "version", "revision")
	targets   = define(gauge, "braid_targets", "Programs that are being traced.")

	targetThreads   = define(gauge, "braid_target_threads", "Threads that have reached a trace point.", "program", "pid")
	targetThreadsOn = define(gauge, "braid_target_threads_recording", "Threads that record now.", "program", "pid")
	targetRecords   = define(counter, "braid_target_records_total", "Records written into rings.", "program", "pid")
	targetWraps     = define(counter, "braid_target_ring_wraps_total", "Times that a full ring began anew.", "program", "pid")
	targetSwaps     = define(counter, "braid_target_ring_swaps_total", "Times that a ring was exchanged for a flush.", "program", "pid")
	targetStarts    = define(counter, "braid_target_starts_total", "Times that a thread was asked to record.", "program", "pid")
	targetStops     = define(counter, "braid_target_stops_total", "Times that a thread was asked to stop.", "program", "pid")
	targetFlushes   = define(counter, "braid_target_flushes_total", "Times that rings were flushed, by trigger.", "program", "pid", "trigger")
	targetLost      = define(counter, "braid_target_lost_total", "What is missing of a target, by the loss's name.", "program", "pid", "name")
	ringBytes       = define(gauge, "braid_ring_bytes", "Memory of a target's rings.", "program", "pid")

	runQueue    = define(0, "braid_run_queue_latency_seconds", "Time from runnable to running.", "program", "pid")
	offCPU      = define(0, "braid_off_cpu_seconds", "Time off the CPU, by cause.", "program", "pid", "cause")
	blockIO     = define(0, "braid_block_io_seconds", "Time from a block request's issue to its completion, by operation.", "program", "pid", "op")
	fsync       = define(0, "braid_fsync_seconds", "Time in calls of the fsync family.", "program", "pid")
	reclaim     = define(0, "braid_direct_reclaim_seconds", "Time that a thread had to free memory before it got some.", "program", "pid")
	majorFaults = define(counter, "braid_major_faults_total", "Page faults that had to read from a disk.", "program", "pid")

	lost               = define(counter, "braid_lost_total", "What is missing and belongs to no target, by the loss's name.", "name")
	triggersFired      = define(counter, "braid_triggers_fired_total", "Times that a trigger fired.", "trigger")
	triggersSuppressed = define(counter, "braid_triggers_suppressed_total", "Times that a trigger's condition was met too soon after the last time.", "trigger")
	tracesKept         = define(gauge, "braid_traces_kept", "Traces in the folder.")
	tracesBytes        = define(gauge, "braid_traces_kept_bytes", "Size of the traces in the folder.")
	tracesRefused      = define(counter, "braid_traces_refused_total", "Traces that were not kept, by reason.", "reason")
	tracesRemoved      = define(counter, "braid_traces_removed_total", "Traces that were removed, by reason.", "reason")
	hook               = define(gauge, "braid_kernel_hook_present", "Whether this kernel has a hook: 1 or 0.", "hook")
)

// text makes a foreign name a label's value: valid UTF-8 of bounded length.
func text(s string) string {
	s = strings.ToValidUTF8(s, "?")
	const most = 128
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}
