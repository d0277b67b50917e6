package bpf

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"braid/internal/kevent"
)

// ErrNotAdded says that a process has no limits, because it was not added, or was removed.
var ErrNotAdded = errors.New("the process was not added")

// defaultCooldown is Thresholds.Cooldown where that is 0.
const defaultCooldown = time.Second

// Thresholds are the limits of one process; 0 means that there is none. The kernel decides, when a wait, call or request
// ends, and tells with a KindFired event if it took longer than its limit. What never ends fires nothing. Times include
// those in which the machine was suspended.
type Thresholds struct {
	RunQueue time.Duration // a thread that could run got no CPU
	// OffCPU stands for Sleeping and Blocked where these are 0.
	OffCPU   time.Duration
	Sleeping time.Duration // a thread slept: waited for others, for a lock, for a timer
	Blocked  time.Duration // a thread was blocked (uninterruptible): waited for a disk, mostly
	BlockIO  time.Duration // a block request of the process, from its issue to its completion
	Fsync    time.Duration // a call of the fsync family
	Reclaim  time.Duration // direct reclaim

	// MajorFaultsPerSecond is how many major faults all threads together may have within a second. Seconds are counted
	// from a fault on, and the next begins with the first fault after the last's end: a burst may be cut in two.
	MajorFaultsPerSecond uint32

	// Cooldown is for how long after a limit of the process fired the same limit does not fire again; until then it is
	// counted as suppressed. 0 means one second.
	Cooldown time.Duration
}

// SetThresholds sets all limits of a process that was added, from now on; waits that are under way count as well. It
// needs Options.Watch. Fails with ErrNotAdded or ErrNoWatch.
func (r *Recorder) SetThresholds(tgid int, th Thresholds) error {
	if r.watch == nil || r.watch.slots == nil {
		return fmt.Errorf("set limits of process %d: %w", tgid, ErrNoWatch)
	}
	if th.Sleeping == 0 {
		th.Sleeping = th.OffCPU
	}
	if th.Blocked == 0 {
		th.Blocked = th.OffCPU
	}
	if th.Cooldown == 0 {
		th.Cooldown = defaultCooldown
	}
	limits := [kevent.Limits]uint64{kevent.LimitMajorFaults: uint64(th.MajorFaultsPerSecond)}
	for what, d := range map[kevent.Limit]time.Duration{
		kevent.LimitRunQueue: th.RunQueue, kevent.LimitSleeping: th.Sleeping, kevent.LimitBlocked: th.Blocked,
		kevent.LimitBlockIO: th.BlockIO, kevent.LimitFsync: th.Fsync, kevent.LimitReclaim: th.Reclaim,
	} {
		if d < 0 {
			return fmt.Errorf("set limits of process %d: %s is %v", tgid, what, d)
		}
		limits[what] = uint64(d)
	}
	if th.Cooldown < 0 {
		return fmt.Errorf("set limits of process %d: the cooldown is %v", tgid, th.Cooldown)
	}

	t := r.watch
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.owners[tgid]
	if !ok || t.closed {
		return fmt.Errorf("set limits of process %d: %w", tgid, ErrNotAdded)
	}
	w := t.at(o.slot)
	atomic.StoreUint64(&w.CooldownNs, uint64(th.Cooldown))
	for i, limit := range limits {
		atomic.StoreUint64(&w.Limit[i], limit)
	}
	return nil
}
