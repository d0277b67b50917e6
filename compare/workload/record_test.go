package workload

import (
	"testing"

	"braid/control"
	"braid/inline/runtime"
)

// TestStubsRecord: the program for each processor joins a session, and its stubs write one record for each entry and each
// return. The emulator for arm has no counter, and the runtime is never on there.
func TestStubsRecord(t *testing.T) {
	each(t, func(t *testing.T, s *Set, wrap []string) {
		session, err := control.NewSession(runtime.PolicyMain, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		p := start(t, s, Start{Workload: Listing, Variant: Stub, Wrap: wrap, Env: []string{session.Env()}})
		for _, align := range Aligns() {
			if _, err := p.Run(Request{Align: align, Calls: 1010}); err != nil {
				t.Fatal(err)
			}
		}
		areas, err := session.Areas()
		if err != nil {
			t.Fatal(err)
		}
		var bytes uint64
		for _, a := range areas {
			for _, thread := range a.Threads() {
				n, _ := thread.Position()
				bytes += n
			}
			a.Close()
		}
		want := uint64(4 * 1010 * 2 * 8)
		if len(wrap) > 0 && wrap[0] == "qemu-arm" {
			want = 0
		}
		if bytes != want {
			t.Errorf("%d bytes of records, want %d", bytes, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
