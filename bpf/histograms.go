package bpf

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"braid/internal/kevent"
)

// HistogramBuckets is how many buckets a Histogram has.
const HistogramBuckets = 28

// Histogram counts durations by their logarithm to the base 2.
type Histogram struct {
	Buckets [HistogramBuckets]uint64 // bucket i holds what is below BucketBound(i) and not below the last one's
	Sum     uint64                   // ns
	Count   uint64                   // of all buckets
}

// BucketBound returns the duration that everything in bucket i is below: 1.024 us, twice that, and so on to 68.7 s. The
// last bucket has no bound.
func BucketBound(i int) time.Duration {
	if i >= HistogramBuckets-1 {
		return math.MaxInt64
	}
	return 1024 << i
}

// HistogramSet is what was counted of one process since it was added. Sums and buckets are read while the kernel adds
// to them, so that one may be ahead of another by what is happening just now.
type HistogramSet struct {
	RunQueue  Histogram // runnable and without a CPU: after a wake-up, and after being preempted
	Sleeping  Histogram // from leaving the CPU to the wake-up
	Blocked   Histogram // the same, uninterruptible
	Preempted Histogram // from leaving the CPU to being back; all these are in RunQueue too

	Read, Write, Flush, OtherIO Histogram // block requests that the process owns, from issue to completion
	Fsync                       Histogram // calls of the fsync family
	Reclaim                     Histogram // direct reclaim

	Voluntary, Involuntary uint64 // context switches away from its threads
	MajorFaults            uint64

	// Fired counts limits that were told, Suppressed those that were exceeded within the cooldown.
	Fired, Suppressed [kevent.Limits]uint64
}

// Histograms returns what was counted, by process, of all that were added and not removed, also of those that ended. It
// needs Options.Watch; without unit sched or io the map is empty. Reading costs the kernel nothing.
func (r *Recorder) Histograms() (map[int]HistogramSet, error) {
	t := r.watch
	if t == nil {
		return nil, fmt.Errorf("read histograms: %w", ErrNoWatch)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("read histograms: %w", os.ErrClosed)
	}
	sets := make(map[int]HistogramSet, len(t.owners))
	if t.slots == nil {
		return sets, nil
	}
	for tgid, o := range t.owners {
		var w schedWatchWatched
		from, to := words(t.at(o.slot)), words(&w)
		for i := range from {
			to[i] = atomic.LoadUint64(&from[i])
		}
		sets[tgid] = histogramSet(&w)
	}
	return sets, nil
}

func histogramSet(w *schedWatchWatched) (s HistogramSet) {
	// In the order of enum measure, watch.h.
	for i, h := range []*Histogram{
		&s.RunQueue, &s.Sleeping, &s.Blocked, &s.Preempted, &s.Read, &s.Write, &s.Flush, &s.OtherIO, &s.Fsync, &s.Reclaim,
	} {
		h.Buckets = w.Hist[i].Bucket
		h.Sum = w.Hist[i].SumNs
		for _, n := range h.Buckets {
			h.Count += n
		}
	}
	s.Voluntary, s.Involuntary, s.MajorFaults = w.Voluntary, w.Involuntary, w.MajorFaults
	s.Fired, s.Suppressed = w.Fired, w.Suppressed
	return s
}
