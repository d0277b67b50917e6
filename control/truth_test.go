package control

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"braid/inline"

	"golang.org/x/sys/unix"
)

// truth mirrors struct truth of testdata/race.c: what a thread says of itself. Record 2n is the entry of its call n, 2n+1
// the exit.
type truth struct {
	tid, serial  uint32
	starts, offs uint32
	ended, _     uint32
	at           uint64
	first, last  uint64
	_            [2]uint64
}

// truths is the file in which a program's threads do so.
type truths struct {
	used, _ uint32
	hits    [64]uint64  // of __braid_point
	trapped [448]uint64 // addresses behind traps
	truth   [1 << 14]truth
}

// newTruths makes the file.
func newTruths(t *testing.T) (*truths, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "truths")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int(unsafe.Sizeof(truths{}))
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return (*truths)(unsafe.Pointer(&b[0])), path
}

// of returns what a thread says, or nil if it has not begun. The kernel may give a thread's id to another one.
func (s *truths) of(tid int) *truth {
	used := int(atomic.LoadUint32(&s.used))
	for n := used - 1; n >= 0 && n >= used-len(s.truth); n-- {
		if u := &s.truth[n%len(s.truth)]; int(atomic.LoadUint32(&u.tid)) == tid {
			return u
		}
	}
	return nil
}

// calls are the addresses' low halves of the functions that a thread of race.c calls.
type calls map[uint32]uint8

func callsOf(t *testing.T, bin string) calls {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	all := calls{}
	for _, s := range syms {
		if n := strings.TrimPrefix(s.Name, "f"); elf.ST_TYPE(s.Info) == elf.STT_FUNC && len(s.Name) == 2 && n >= "0" && n <= "8" {
			v := uint32(s.Value)
			if f.Machine == elf.EM_ARM {
				v &^= 1 // says that it is T32 code
			}
			all[v] = n[0] - '0'
		}
	}
	if len(all) != 9 {
		t.Fatalf("functions in %s: %v", bin, all)
	}
	return all
}

const exit = 9 // what parse makes of one

// parse returns what a segment's records are, oldest first: a function's number, or exit. half says that the oldest slot is
// the second half of a record.
func (c calls) parse(slots []uint64) (kinds []uint8, half bool, err error) {
	for i := len(slots) - 1; i >= 0; i-- {
		w := uint32(slots[i])
		switch {
		case slots[i] == 0:
			return nil, false, fmt.Errorf("slot %d of %d is not written", i, len(slots))
		case w == inline.WordExit:
			kinds = append(kinds, exit)
			continue
		case inline.Double(w):
			if i--; i < 0 {
				half = true
				continue
			}
			w = uint32(slots[i])
		}
		k, ok := c[w]
		if !ok {
			return nil, false, fmt.Errorf("slot %d of %d names %#x, which is no function", i, len(slots), w)
		}
		kinds = append(kinds, k)
	}
	slices.Reverse(kinds)
	return kinds, half, nil
}

// kind is what a thread's record number n must be.
func kind(n uint64) uint8 {
	if n%2 != 0 {
		return exit
	}
	return uint8(uint32(n/2) * 2654435761 >> 16 % 9)
}

// piece is what was copied of one filling of a ring.
type piece struct {
	kinds    []uint8
	half     bool
	complete bool
	slots    []uint64
}

// endsAt checks that the newest records of some pieces, which follow each other, are those up to number last, and returns
// which the oldest one is. Behind a piece that is not complete there is a gap: there it ends.
func endsAt(pieces []piece, last uint64) (first uint64, err error) {
	next := last + 1
	for i := len(pieces) - 1; i >= 0; i-- {
		p := &pieces[i]
		for k := len(p.kinds) - 1; k >= 0; k-- {
			if next == 0 {
				return 0, fmt.Errorf("piece %d of %d has %d records too many", i, len(pieces), k+1)
			}
			next--
			if p.kinds[k] != kind(next) {
				return 0, fmt.Errorf("record %d of %d in piece %d of %d is %d, but record %d is %d; the last one must be %d", k, len(p.kinds), i,
					len(pieces), p.kinds[k], next, kind(next), last)
			}
		}
		if !p.complete {
			break
		}
		if p.half {
			return 0, fmt.Errorf("half a record at the beginning of a piece that is complete")
		}
	}
	return next, nil
}

// within checks that slots that were copied while the thread ran are those that were copied in the end. What the thread has
// overwritten since is not there any more.
func within(slots []uint64, pieces []piece) error {
	if len(slots) == 0 {
		return nil
	}
	for i := len(pieces) - 1; i >= 0; i-- {
		all := pieces[i].slots
		for k := len(all) - 1; k >= 0; k-- {
			if all[k] != slots[len(slots)-1] {
				continue
			}
			n := min(len(slots), k+1)
			for j := range n {
				if all[k-j] != slots[len(slots)-1-j] {
					return fmt.Errorf("slot %d of %d is %#x, but was copied as %#x", k-j, len(all), all[k-j], slots[len(slots)-1-j])
				}
			}
			if n < len(slots) && pieces[i].complete {
				return fmt.Errorf("%d slots lie before the first one of a ring that has not wrapped", len(slots)-n)
			}
			return nil
		}
	}
	for _, p := range pieces {
		if !p.complete {
			return nil
		}
	}
	return fmt.Errorf("the newest of %d slots is nowhere, and nothing was overwritten", len(slots))
}
