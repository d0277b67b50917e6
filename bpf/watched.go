package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrTooMany says that WatchOptions.Processes processes are watched already.
var ErrTooMany = errors.New("too many processes are watched")

// watchTable is user space's side of the watched processes: it gives out slots. See watch.h for who writes what.
type watchTable struct {
	announced *ebpf.Map
	slots     *ebpf.Map // nil if neither unit sched nor io is loaded, as the two below
	threads   *ebpf.Map // nil without unit sched

	mu      sync.Mutex
	closed  bool
	mapping []byte
	owners  map[int]owner // by process
	free    []uint32      // the one that was free longest first
}

// owner is a process that has a slot. A process id comes again; with the start time it does not.
type owner struct {
	slot  uint32
	start uint64 // clock ticks after boot, /proc/PID/stat
}

func newWatchTable(maps map[string]*ebpf.Map) (*watchTable, error) {
	t := &watchTable{
		announced: maps["announced"], slots: maps["slots"], threads: maps["threads"],
		owners: map[int]owner{},
	}
	watched := maps["watched"]
	if watched == nil {
		return t, nil
	}
	page := os.Getpagesize()
	size := (int(watched.MaxEntries())*int(unsafe.Sizeof(schedWatchWatched{})) + page - 1) / page * page
	var err error
	if t.mapping, err = unix.Mmap(watched.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the watched processes: %w", err)
	}
	for i := range watched.MaxEntries() {
		t.free = append(t.free, i)
	}
	return t, nil
}

func (t *watchTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.mapping != nil {
		_ = unix.Munmap(t.mapping) // fails only for a bad address
		t.mapping = nil
	}
}

// at returns a slot, whose words the programs change at any time: use atomic loads and stores. t.mu is held.
func (t *watchTable) at(slot uint32) *schedWatchWatched {
	return (*schedWatchWatched)(unsafe.Pointer(&t.mapping[int(slot)*int(unsafe.Sizeof(schedWatchWatched{}))]))
}

// watchedWords is struct watched as what it is: words.
type watchedWords [unsafe.Sizeof(schedWatchWatched{}) / 8]uint64

func words(w *schedWatchWatched) *watchedWords { return (*watchedWords)(unsafe.Pointer(w)) }

// add makes a process known and gives it a slot, and says whether it had none. A slot of a process of the same id that
// ended is taken from that.
func (t *watchTable) add(tgid int) (fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false, os.ErrClosed
	}
	start, err := startTime(tgid)
	if err != nil {
		return false, err
	}
	if o, ok := t.owners[tgid]; ok {
		if o.start == start {
			return false, nil
		}
		if err := t.removeLocked(tgid); err != nil {
			return false, err
		}
	}
	// One that is there may have ended already: see watch.bpf.c.
	err = t.announced.Update(uint32(tgid), uint8(1), ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return false, fmt.Errorf("process %d: note that it is known: %w", tgid, err)
	}
	o := owner{start: start}
	if t.slots != nil {
		if o.slot, err = t.takeSlot(tgid); err != nil {
			return false, errors.Join(err, forget(t.announced, tgid))
		}
	}
	t.owners[tgid] = o
	return true, nil
}

func (t *watchTable) takeSlot(tgid int) (uint32, error) {
	if len(t.free) == 0 {
		return 0, fmt.Errorf("process %d: %w: %d", tgid, ErrTooMany, len(t.owners))
	}
	now, err := bootTime()
	if err != nil {
		return 0, err
	}
	slot := t.free[0]
	w := t.at(slot)
	for i := range words(w) {
		atomic.StoreUint64(&words(w)[i], 0)
	}
	atomic.StoreUint64(&w.AddedNs, now)
	if err := t.slots.Put(uint32(tgid), slot); err != nil {
		return 0, fmt.Errorf("process %d: give it a slot: %w", tgid, err)
	}
	t.free = t.free[1:]
	return slot, nil
}

// remove forgets a process that has a slot; another one it leaves alone.
func (t *watchTable) remove(tgid int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return os.ErrClosed
	}
	return t.removeLocked(tgid)
}

func (t *watchTable) removeLocked(tgid int) error {
	o, ok := t.owners[tgid]
	if !ok {
		return forget(t.announced, tgid)
	}
	delete(t.owners, tgid)
	err := forget(t.announced, tgid)
	if t.slots == nil {
		return err
	}
	err = errors.Join(err, forget(t.slots, tgid))
	t.free = append(t.free, o.slot)
	if t.threads == nil {
		return err
	}
	// Threads that run on would keep their entries until they end. If the process is gone, so are they.
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(tgid) + "/task")
	for _, task := range tasks {
		if tid, convErr := strconv.Atoi(task.Name()); convErr == nil {
			err = errors.Join(err, forget(t.threads, tid))
		}
	}
	return err
}

// forget deletes an id from a map, if it is there.
func forget(m *ebpf.Map, id int) error {
	err := m.Delete(uint32(id))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// startTime tells a process from another that has the same id at another time.
func startTime(tgid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tgid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", tgid, ErrNoProcess)
	}
	// The name, in parentheses, may hold anything. What follows it begins with field 3; the start time is field 22.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("process %d: read its start time: /proc has %q", tgid, text)
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("process %d: read its start time: %w", tgid, err)
	}
	return start, nil
}
