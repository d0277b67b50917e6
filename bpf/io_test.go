package bpf

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"braid/internal/kevent"
)

func hasOwner(pid int) func(event) bool {
	return func(e event) bool { return kevent.DecodeRq(e.body).OwnerPid == uint32(pid) }
}

// checkRequests checks every issued request against its completion. A completion runs in an interrupt in a foreign
// context, of which compareFtrace tells why one may be missing.
func checkRequests(t *testing.T, events []event) {
	t.Helper()
	issued := map[uint64]event{}
	completed := map[uint64]uint32{}
	for _, e := range events {
		switch e.Kind {
		case kevent.KindRqIssue:
			rq := kevent.DecodeRq(e.body)
			if _, twice := issued[rq.ID]; twice {
				t.Errorf("issued twice: %v", e)
			}
			issued[rq.ID] = e
		case kevent.KindRqComplete:
			rq := kevent.DecodeRq(e.body)
			i, ok := issued[rq.ID]
			if !ok {
				t.Errorf("completed without being issued: %v", e)
				continue
			}
			is := kevent.DecodeRq(i.body)
			if is.Dev != rq.Dev || is.Op != rq.Op || rq.IssueNs != i.Time || e.Time < i.Time || rq.Error != 0 ||
				is.OwnerTid != rq.OwnerTid || e.Tid != i.Tid || e.Flags != i.Flags {
				t.Errorf("completion does not fit:\n%v\n%v", i, e)
			}
			completed[rq.ID] += rq.Bytes
		}
	}
	open := 0
	for id, e := range issued {
		bytes, ok := completed[id]
		if !ok {
			open++
			continue
		}
		if want := kevent.DecodeRq(e.body).Bytes; bytes != want {
			t.Errorf("%d of %d bytes completed: %v", bytes, want, e)
		}
	}
	if len(issued) == 0 || open > 1+len(issued)/50 {
		t.Errorf("%d of %d requests never completed", open, len(issued))
	}
	t.Logf("%d requests, %d without a completion", len(issued), open)
}

func TestWriteAndFsync(t *testing.T) {
	dir := blockDir(t)
	mib := 64
	if strings.HasPrefix(deviceOf(t, dir), "7:") {
		mib = 4 // a loop device has so small a share of dirty pages that the flusher would write most of it before the fsync
	}
	r := load(t, Options{})
	path := filepath.Join(dir, "file")
	tg := startTarget(t, "write", path, strconv.Itoa(mib))
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tg.run()
	spans, _ := tg.results()
	tg.finish()
	events := stopAndRead(t, r)

	s := spans[0]
	checkRequests(t, events)
	data := fileExtents(t, path)
	var own, indirect uint64
	for _, e := range events {
		if e.Kind != kevent.KindRqIssue {
			continue
		}
		rq := kevent.DecodeRq(e.body)
		switch {
		case e.Flags&kevent.FlagIndirect != 0:
			if rq.OwnerTid != 0 || rq.OwnerPid != 0 {
				t.Errorf("an indirect request has an owner: %v", e)
			}
			indirect += data.within(rq)
		case rq.OwnerPid != uint32(tg.pid()) || rq.OwnerTid != s.tid:
			t.Errorf("somebody else's request: %v", e)
		case rq.Op == kevent.OpWrite:
			own += data.within(rq)
		}
	}
	// The fsync writes the data itself; the rest, if any, is what the flusher thread took over meanwhile.
	if own+indirect != uint64(mib)<<20 || own == 0 {
		t.Errorf("%d bytes of the file written by the thread and %d indirectly, want %d together", own, indirect, mib<<20)
	}
	t.Logf("%d bytes of the file by the thread itself, %d indirectly", own, indirect)

	var calls []kevent.Fsync
	for _, e := range events {
		if e.Kind == kevent.KindFsync {
			f := kevent.DecodeFsync(e.body)
			calls = append(calls, f)
			if e.Tid != s.tid || f.Tgid != uint32(tg.pid()) || f.StartNs < s.start || f.StartNs > e.Time {
				t.Errorf("wrong call: %v", e)
			}
		}
	}
	if len(calls) != 2 || calls[0].Call != kevent.CallFsync || calls[0].Ret != 0 ||
		calls[1].Call != kevent.CallFdatasync || calls[1].Ret != -int64(syscall.EBADF) {
		t.Errorf("calls %+v, want an fsync and an fdatasync that failed with EBADF", calls)
	}
	if writeCache(t, dir) == "write back" {
		flushes := count(events, kevent.KindRqIssue, func(e event) bool { return kevent.DecodeRq(e.body).Op == kevent.OpFlush })
		if flushes == 0 {
			t.Error("fsync on a device with a write-back cache, and no flush recorded")
		}
	}
}

// writeCache returns what the disk below dir says of its cache.
func writeCache(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", deviceOf(t, dir), "queue/write_cache"))
	if os.IsNotExist(err) { // a partition
		text, err = os.ReadFile(filepath.Join("/sys/dev/block", deviceOf(t, dir), "../queue/write_cache"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:len(text)-1])
}

// preparedFile writes a file and its bytes to the disk. BRAID_TEST_DISK names a disk to write to instead, for guests
// without a file system on theirs; what it holds is lost.
func preparedFile(t *testing.T, size int) string {
	t.Helper()
	path := os.Getenv("BRAID_TEST_DISK")
	if path == "" {
		path = filepath.Join(blockDir(t), "file")
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i >> 9)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectReads(t *testing.T) {
	const reads, size = 211, 8192
	path := preparedFile(t, reads*size)
	r := load(t, Options{Units: []string{UnitIO}})
	tg := startTarget(t, "read", path, strconv.Itoa(reads), strconv.Itoa(size))
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tg.run()
	spans, _ := tg.results()
	events := stopAndRead(t, r)

	checkRequests(t, events)
	requests := count(events, kevent.KindRqIssue, func(e event) bool {
		rq := kevent.DecodeRq(e.body)
		return hasOwner(tg.pid())(e) && rq.OwnerTid == spans[0].tid && rq.Op == kevent.OpRead && rq.Bytes == size &&
			e.Time >= spans[0].start && e.Time <= spans[0].end
	})
	// A read that crosses from one extent of the file to another takes two smaller requests.
	if requests < reads-3 || requests > reads {
		t.Errorf("%d reads of %d bytes, want %d", requests, size, reads)
	}
	var bytes uint32
	for _, e := range events {
		if e.Kind == kevent.KindRqIssue && hasOwner(tg.pid())(e) && e.Time >= spans[0].start && e.Time <= spans[0].end {
			bytes += kevent.DecodeRq(e.body).Bytes
		}
	}
	if bytes != reads*size {
		t.Errorf("%d bytes read, want %d", bytes, reads*size)
	}
}

func TestMajorFaults(t *testing.T) {
	const pages = 101
	path := preparedFile(t, pages<<16)
	r := load(t, Options{Units: []string{UnitIO}})
	tg := startTarget(t, "fault", path, strconv.Itoa(pages))
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	tg.run()
	spans, values := tg.results()
	events := stopAndRead(t, r)

	s := spans[0]
	if s.major != pages {
		t.Fatalf("the kernel counted %d major faults, the story makes %d", s.major, pages)
	}
	n := 0
	for _, e := range events {
		if e.Kind != kevent.KindMajorFault || e.Time < s.start || e.Time > s.end {
			continue
		}
		f := kevent.DecodeMajorFault(e.body)
		if want := values["address"] + uint64(n)<<16; f.Address != want || e.Tid != s.tid || f.Tgid != uint32(tg.pid()) {
			t.Errorf("fault %d: %v, want address %#x", n, e, want)
		}
		if f.StartNs != 0 && (f.StartNs < s.start || f.StartNs > e.Time) {
			t.Errorf("fault %d began at %d, outside of the story: %v", n, f.StartNs, e)
		}
		if f.StartNs == 0 && hasStartOfFaults(r) {
			t.Errorf("fault %d has no start: %v", n, e)
		}
		n++
	}
	if n != pages {
		t.Errorf("%d major faults, want %d", n, pages)
	}
}

// hasStartOfFaults says whether this kernel has a tracepoint where faults begin: amd64 has.
func hasStartOfFaults(r *Recorder) bool {
	for _, h := range r.hooks {
		if h.name == "page_fault_user" {
			return true
		}
	}
	return false
}
