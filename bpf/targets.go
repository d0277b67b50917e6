package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// What record.h keeps of a process, and how many ids share one array element.
const (
	stateNone    = 0
	stateTarget  = 1
	statePending = 2
	stateWatched = 3
	pageIDs      = 4096
)

// ErrNoProcess says that there is no process of the given id.
var ErrNoProcess = errors.New("no such process")

// targetTable is the kernel's table of which process is what: one byte an id, shared with the programs, which set bytes
// of their own at any time. Single bytes are stored, so that neither side undoes the other's work.
type targetTable struct {
	processes *ebpf.Map

	mu     sync.Mutex
	states []byte // the mapping; nil after close
}

func newTargetTable(targets, processes *ebpf.Map) (*targetTable, error) {
	size := int(targets.MaxEntries()) * pageIDs
	states, err := unix.Mmap(targets.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the table of targets: %w", err)
	}
	return &targetTable{processes: processes, states: states}, nil
}

func (t *targetTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states != nil {
		_ = unix.Munmap(t.states) // fails only for a bad address
		t.states = nil
	}
}

// set changes one byte. When the process turns out not to exist, the byte is taken back, since its next owner is
// somebody else.
func (t *targetTable) set(tgid int, state byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states == nil {
		return os.ErrClosed
	}
	if tgid <= 0 || tgid >= len(t.states) {
		return fmt.Errorf("process %d: %w (ids go to %d)", tgid, ErrNoProcess, len(t.states)-1)
	}
	if err := checkProcess(tgid); err != nil {
		return err
	}
	if state == statePending && t.states[tgid] == stateTarget {
		return nil
	}
	t.states[tgid] = state
	if err := checkProcess(tgid); err != nil {
		t.states[tgid] = stateNone
		return err
	}
	return nil
}

// clear takes one byte back.
func (t *targetTable) clear(tgid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tgid > 0 && tgid < len(t.states) {
		t.states[tgid] = stateNone
	}
}

// checkProcess tells a process from a thread and from nothing.
func checkProcess(tgid int) error {
	f, err := os.Open("/proc/" + strconv.Itoa(tgid) + "/status")
	if err != nil {
		return fmt.Errorf("process %d: %w", tgid, ErrNoProcess)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		value, ok := strings.CutPrefix(s.Text(), "Tgid:")
		if !ok {
			continue
		}
		if value = strings.TrimSpace(value); value != strconv.Itoa(tgid) {
			return fmt.Errorf("%d is a thread of process %s: give the process", tgid, value)
		}
		return nil
	}
	return fmt.Errorf("process %d: %w: it ended just now", tgid, ErrNoProcess)
}

// AddTarget records a running process from now on, with all its threads and the children that it creates from now on;
// children that it has already are processes of their own. It emits no event: what each thread is doing at this moment
// is in /proc/PID/task/TID/stat. Adding a process twice does nothing. With Options.Watch it also has limits and
// histograms of its own, which its children do not: they are announced, for the caller to add. Fails with ErrNoProcess,
// and with ErrTooMany where there is no room for histograms.
func (r *Recorder) AddTarget(tgid int) error {
	if err := r.add(tgid, stateTarget); err != nil {
		return fmt.Errorf("record process: %w", err)
	}
	now, err := bootTime()
	if err != nil {
		return err
	}
	err = r.targets.processes.Update(uint32(tgid), now, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("record process %d: note it: %w", tgid, err)
	}
	return nil
}

// AddPending records a process from the moment at which it executes a program; its first event is that KindExec. A
// launcher registers its child so, and nothing of before is recorded. Fails as AddTarget does.
func (r *Recorder) AddPending(tgid int) error {
	if err := r.add(tgid, statePending); err != nil {
		return fmt.Errorf("record process from its exec on: %w", err)
	}
	return nil
}

// AddWatched gives a process limits and histograms, and records no other events of it or of its children; its children
// are announced. A target that is added so is no longer recorded but keeps what it has counted, and AddTarget goes the
// other way. Needs Options.Watch. Fails as AddTarget does.
func (r *Recorder) AddWatched(tgid int) error {
	if r.watch == nil {
		return fmt.Errorf("watch process %d: %w", tgid, ErrNoWatch)
	}
	if err := r.add(tgid, stateWatched); err != nil {
		return fmt.Errorf("watch process: %w", err)
	}
	return nil
}

// add first makes what a process needs, so that the programs find it from the first event on.
func (r *Recorder) add(tgid int, state byte) error {
	if r.watch == nil {
		return r.targets.set(tgid, state)
	}
	fresh, err := r.watch.add(tgid)
	if err != nil {
		return err
	}
	err = r.targets.set(tgid, state)
	if err != nil && fresh {
		err = errors.Join(err, r.watch.remove(tgid))
	}
	return err
}

// RemoveTarget forgets a process, whether it still runs or not: its events, limits and histograms end, and Targets no
// longer lists it. Its children that are targets stay what they are. Events that are in the ring already are still read,
// and a call or request that is under way may bring one more. With Options.Watch, a process that goes on running is
// announced again when it matches anew. Removing a process that was never added does nothing.
func (r *Recorder) RemoveTarget(tgid int) error {
	r.targets.clear(tgid)
	err := r.targets.processes.Delete(uint32(tgid))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if r.watch != nil {
		err = errors.Join(err, r.watch.remove(tgid))
	}
	if err != nil {
		return fmt.Errorf("forget process %d: %w", tgid, err)
	}
	return nil
}

// bootTime returns CLOCK_BOOTTIME in ns.
func bootTime() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return uint64(now.Nano()), nil
}

// Targets returns the ids of all processes that were recorded, also of those that ended, in ascending order. An id that
// was used twice is there once.
func (r *Recorder) Targets() ([]int, error) {
	var tgids []int
	var tgid uint32
	var since uint64
	it := r.targets.processes.Iterate()
	for it.Next(&tgid, &since) {
		tgids = append(tgids, int(tgid))
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("list recorded processes: %w", err)
	}
	slices.Sort(tgids)
	return slices.Compact(tgids), nil
}
