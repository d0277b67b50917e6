package tracefile

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"braid/inline"
)

// TestDumpRing renders each form of record, of a 32-bit program on ARM whose method pointers may have bit 0.
func TestDumpRing(t *testing.T) {
	var s []uint64
	s = inline.AppendEntryFramed(s, 0x10, 0x1_0401, 0xfffe_f000)
	s = inline.AppendEntryWide(s, 0x20, 0x1_0501)
	s = append(s, 0)
	s = inline.AppendResumedFramed(s, 0x30, 0x1_0401, 0xfffe_efc0)
	s = inline.AppendResumed(s, 0x40, 0x1_0400)
	s = inline.AppendEntry(s, 0x50, 0x1_0501)
	s = inline.AppendExit(s, 0x60)
	s = append(s, inline.Pack(0x70, 9))
	path := filepath.Join(t.TempDir(), "ring.braid")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.WriteMeta(&Meta{Arch: "arm"}),
		w.WriteSymbols([]Symbol{{Addr: 0x1_0400, Name: "catcher", Module: NoModule}, {Addr: 0x1_0500, Name: "thrower", Module: NoModule}}),
		w.WriteRing(&Ring{Slots: s}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if err := Dump(&out, r, DumpOptions{Kinds: []Kind{KindRing}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 2 && len(f[1]) == 16 {
			got = append(got, strings.Join(f[2:], " "))
		}
	}
	want := []string{
		"sp fffef000 pointer catcher", "00000010 entry catcher", "pointer thrower", "00000020 entry thrower", "unwritten",
		"sp fffeefc0 pointer catcher", "00000030 resumed catcher", "pointer catcher", "00000040 resumed catcher",
		"00000050 entry thrower", "00000060 exit", "00000070 reserved 9",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
