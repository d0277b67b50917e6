package control

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"
	"unsafe"

	"braid/inline/runtime"

	"golang.org/x/sys/unix"
)

const fakeBase = 0x7f00_0000_0000

// fake makes an area in memory of this process's own: three threads that are on, in rings of 4096 bytes. It is the second
// of three places for areas; the words beside it must never change.
func fake(t testing.TB, bytes uint64) *Area {
	t.Helper()
	fd, err := unix.MemfdCreate("braid", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "fake")
	if err := f.Truncate(3 * runtime.NarrowStride); err != nil {
		t.Fatal(err)
	}
	if err := seal(f); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{runtime.NarrowStride - 8, 2 * runtime.NarrowStride} {
		if _, err := f.WriteAt([]byte("sentinel"), at); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := unix.Mmap(fd, runtime.NarrowStride, runtime.RingsOff, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(meta)
	h := (*runtime.Header)(unsafe.Pointer(&meta[0]))
	*h = runtime.Header{Magic: runtime.ArenaMagic, Version: runtime.Version, Pid: uint32(os.Getpid()), Base: fakeBase, Bytes: bytes,
		RingBytes: 4096, Armed: 1, BlockUsed: 3, ModuleUsed: 2, RingNext: runtime.RingsOff + 3*8192, Started: 1}
	for i := range uint64(3) {
		off := runtime.RingsOff + 8192*i
		*(*runtime.Block)(unsafe.Pointer(&meta[runtime.BlocksOff+256*i])) = runtime.Block{Cursor: fakeBase + off + 80 | runtime.CursorOn,
			Done: fakeBase + off + 72 | runtime.CursorOn, Mask: ^uint64(4096), RingAddr: fakeBase + off, RingBytes: 4096, RingOff: off,
			Start: 2, Tid: uint32(os.Getpid()), State: runtime.StateReady, Want: 1, Uses: 1}
	}
	a, err := mapArea((&memory{f: f}), runtime.NarrowStride)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// everything calls all that there is to be called on an area, in an order of its own.
func everything(t testing.TB, a *Area, next func(n int) int) {
	var buf [512]uint64
	check := func(s Segment, err error) {
		if err == nil && (len(s.Slots) > maxRing/8 || s.End < s.Begin || s.Dropped < 0 || s.DroppedNewest < 0) {
			t.Fatalf("a segment of %d slots, %d to %d", len(s.Slots), s.Begin, s.End)
		}
		for _, x := range s.Anchors {
			if err == nil && x.Slot > uint64(len(s.Slots)) {
				t.Fatalf("an anchor at %d of %d slots", x.Slot, len(s.Slots))
			}
		}
	}
	threads := a.Threads()
	if len(threads) > runtime.BlockMax || len(a.Modules()) > runtime.ModuleMax {
		t.Fatalf("%d threads", len(threads))
	}
	for _, m := range a.Modules() {
		if len(m.Path) > 432 || len(m.BuildID) > 32 {
			t.Fatalf("a module with a path of %d bytes and a build id of %d", len(m.Path), len(m.BuildID))
		}
	}
	if _, why, _, _, _ := a.Trigger(); len(why) > 63*3 {
		t.Fatalf("a trigger of %d bytes", len(why))
	}
	a.Lost()
	for range 12 {
		if len(threads) == 0 {
			break
		}
		th := threads[next(min(len(threads), 5))]
		switch next(16) {
		case 0:
			th.Start()
		case 1:
			th.RequestStop()
			th.Stopped()
		case 2, 3, 4:
			if err := th.RequestSwap(); err != nil && !errors.Is(err, ErrNoRoom) && !errors.Is(err, ErrNotRecording) {
				t.Fatal(err)
			}
		case 5:
			th.Swapped()
		case 6, 7:
			check(th.CollectOld(buf[:]))
		case 8:
			th.ReleaseOld()
		case 9, 10:
			check(th.Collect(buf[:]))
		case 11:
			check(th.Snapshot(buf[:]))
		case 12:
			if slots, _, _, err := th.Tail(100, buf[:]); err == nil && len(slots) > 100 {
				t.Fatalf("a tail of %d slots", len(slots))
			}
			th.Position()
		case 13:
			th.Note()
		case 14:
			th.Release()
		case 15:
			if v := th.Asked(); v < 0 || v > 2 || len(th.Name()) > 64 {
				t.Fatalf("asked %d, name %q", v, th.Name())
			}
			th.Gone()
			th.Exiting()
			th.Recorded()
		}
		if len(th.rings) > maxRings+1 || len(th.cur.anchors) > maxAnchors {
			t.Fatalf("%d rings are remembered", len(th.rings))
		}
	}
}

// scribble writes 8 bytes where something is likely to read them.
func scribble(a *Area, region, index int, value uint64) {
	at := 0
	switch region % 4 {
	case 0:
		at = 8 * (index % 128)
	case 1:
		at = runtime.BlocksOff + 256*(index>>8%4) + 8*(index%32)
	case 2:
		at = runtime.ModulesOff + 8*(index%128)
	case 3:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], value)
		a.mem.f.WriteAt(b[:], a.off+runtime.RingsOff+8*int64(index%8192))
		return
	}
	binary.LittleEndian.PutUint64(a.meta[at:], value)
}

// likely turns a number into one that could be meant.
func likely(kind int, v uint64) uint64 {
	switch kind % 8 {
	case 0, 1:
		return fakeBase + runtime.RingsOff + v&0xfff8 + [4]uint64{0, 3, 7, 5}[v>>60&3]
	case 2:
		return runtime.RingsOff + v&0xf000
	case 3:
		return 4096 << (v & 63)
	case 4:
		return ^uint64(4096) &^ [4]uint64{0, 4, 7, 3}[v&3]
	case 5:
		return v & 0x3_0000_0003
	case 6:
		return [4]uint64{0, ^uint64(0), 1 << 63, runtime.NarrowStride}[v&3]
	}
	return v
}

func attacked(t testing.TB, data []byte) {
	a := fake(t, runtime.NarrowStride)
	i := 0
	next := func(n int) int {
		if i >= len(data) {
			return 0
		}
		i++
		return int(data[i-1]) % n
	}
	for i < len(data) {
		for range 1 + next(4) {
			region, kind, index := next(4), next(8), next(256)<<8|next(256)
			var v uint64
			for range 8 {
				v = v<<8 | uint64(next(256))
			}
			scribble(a, region, index, likely(kind, v))
		}
		everything(t, a, next)
	}
	for _, at := range []int64{runtime.NarrowStride - 8, 2 * runtime.NarrowStride} {
		var b [8]byte
		if _, err := a.mem.f.ReadAt(b[:], at); err != nil || string(b[:]) != "sentinel" {
			t.Fatalf("what lies beside the area was written: %q, %v", b, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(a.mem.f.Fd()), &st); err != nil || st.Size != 3*runtime.NarrowStride {
		t.Fatalf("the memory has %d bytes: %v", st.Size, err)
	}
	a.Discard()
}

func patient(t testing.TB) {
	before := settling
	settling = 100 * time.Microsecond
	t.Cleanup(func() { settling = before })
}

// FuzzHostileArea has a program write anything anywhere between any two calls of this package.
func FuzzHostileArea(f *testing.F) {
	patient(f)
	f.Add([]byte{})
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, data []byte) { attacked(t, data[:min(len(data), 2000)]) })
}

// TestHostileArea is the same with numbers at random.
func TestHostileArea(t *testing.T) {
	patient(t)
	for seed := range uint64(repeats(t, 300)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		attacked(t, data)
	}
}

// TestHostileProgram watches a program that writes garbage into its own arena all the time.
func TestHostileProgram(t *testing.T) {
	patient(t)
	p := start(t, build(t, "hostile"), "")
	areas, err := Attach(p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	a := areas[0]
	defer a.Close()
	if _, err := p.in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range repeats(t, 3000) {
		everything(t, a, rng.IntN)
	}
	var status unix.WaitStatus
	if pid, err := unix.Wait4(p.Process.Pid, &status, unix.WNOHANG, nil); err != nil || pid != 0 {
		t.Errorf("the program has ended: %#x, %v", status, err)
	}
}

// TestLengthThatIsNotThere maps areas whose programs lie about how long they are.
func TestLengthThatIsNotThere(t *testing.T) {
	for _, bytes := range []uint64{0, 4096, runtime.NarrowStride + 4096, runtime.AreaStride, 1 << 63, ^uint64(0)} {
		a := fake(t, runtime.NarrowStride)
		a.hdr.Bytes = bytes
		if b, err := mapArea(a.mem, a.off); !errors.Is(err, ErrArena) {
			t.Errorf("an area of %d bytes: %+v, %v", bytes, b, err)
		}
		a.Close()
	}
}

// TestNoRoomForASecondRing fills an area to its end.
func TestNoRoomForASecondRing(t *testing.T) {
	a := fake(t, runtime.RingsOff+5*8192)
	defer a.Close()
	for i, th := range a.Threads() {
		err := th.RequestSwap()
		if i < 2 && err != nil || i == 2 && !errors.Is(err, ErrNoRoom) {
			t.Errorf("thread %d: %v", i, err)
		}
		if i < 2 && (th.block.NextAddr%8192 != 0 || th.block.NextOff != runtime.RingsOff+8192*uint64(3+i) || th.block.Mask&7 != 3) {
			t.Errorf("thread %d: next ring at %#x (%#x), mask %#x", i, th.block.NextAddr, th.block.NextOff, th.block.Mask)
		}
		if i == 2 && (th.block.NextAddr != 0 || th.block.Mask&7 != 7) {
			t.Error("a thread without a second ring was asked to take it")
		}
	}
}
