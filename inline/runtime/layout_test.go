package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// TestLayout compiles arena.h for each processor and compares what the C compilers say of it with the Go mirror.
func TestLayout(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	src := `#include "` + dir + `/src/arena.h"
#include <stdio.h>
#include <stddef.h>
#define P(v) printf("%llu\n", (unsigned long long)(v))
int main(void) {
P(BRAID_ARENA_MAGIC); P(BRAID_SESSION_MAGIC); P(BRAID_VERSION); P(BRAID_BLOCKS_OFF); P(BRAID_BLOCK_MAX);
P(BRAID_MODULES_OFF); P(BRAID_MODULE_MAX); P(BRAID_RINGS_OFF); P(BRAID_AREA_STRIDE); P(BRAID_AREA_MAX);
P(sizeof(struct braid_block)); P(offsetof(struct braid_block, tid)); P(offsetof(struct braid_block, uses));
P(offsetof(struct braid_block, comm)); P(sizeof(struct braid_module)); P(offsetof(struct braid_module, build_id));
P(offsetof(struct braid_module, path)); P(sizeof(struct braid_header)); P(offsetof(struct braid_header, armed));
P(offsetof(struct braid_header, lost_rings)); P(offsetof(struct braid_header, parent)); P(offsetof(struct braid_header, dummy));
P(sizeof(struct braid_session)); P(offsetof(struct braid_session, policy)); P(offsetof(struct braid_session, armed));
P(BRAID_AREA_FIRST); P(BRAID_NARROW_STRIDE); P(BRAID_NARROW_MAX); P(sizeof(struct braid_session)); P(offsetof(struct braid_header, parked));
P(BRAID_ON); P(BRAID_ATTEND); P(BRAID_TAG); P(BRAID_API_OFF); P(offsetof(struct braid_block, next_addr));
P(offsetof(struct braid_block, prev_addr)); P(offsetof(struct braid_block, prev_cursor)); P(offsetof(struct braid_block, prev_start));
P(offsetof(struct braid_block, prev_end)); P(offsetof(struct braid_block, swaps)); P(offsetof(struct braid_block, api)); P(offsetof(struct braid_block, opened));
P(offsetof(struct braid_header, trigger_seq)); P(offsetof(struct braid_header, trigger_lock)); P(offsetof(struct braid_header, trigger_tid));
P(offsetof(struct braid_header, trigger_at)); P(offsetof(struct braid_header, trigger_lost)); P(offsetof(struct braid_header, trigger_why));
P(offsetof(struct braid_session, narrow_next)); P(offsetof(struct braid_session, area_first)); P(offsetof(struct braid_session, narrow_max));
return 0; }
`
	var b Block
	var m Module
	var h Header
	var s Session
	want := []uint64{ArenaMagic, SessionMagic, uint64(Version), BlocksOff, BlockMax, ModulesOff, ModuleMax, RingsOff, AreaStride, AreaMax,
		uint64(unsafe.Sizeof(b)), uint64(unsafe.Offsetof(b.Tid)), uint64(unsafe.Offsetof(b.Uses)), uint64(unsafe.Offsetof(b.Comm)),
		uint64(unsafe.Sizeof(m)), uint64(unsafe.Offsetof(m.BuildID)), uint64(unsafe.Offsetof(m.Path)),
		uint64(unsafe.Sizeof(h)), uint64(unsafe.Offsetof(h.Armed)), uint64(unsafe.Offsetof(h.LostRings)), uint64(unsafe.Offsetof(h.Parent)),
		uint64(unsafe.Offsetof(h.Dummy)), uint64(unsafe.Sizeof(s)), uint64(unsafe.Offsetof(s.Policy)), uint64(unsafe.Offsetof(s.Armed)),
		AreaFirst, NarrowStride, NarrowMax, uint64(unsafe.Sizeof(s)), uint64(unsafe.Offsetof(h.Parked)),
		CursorOn, CursorAttend, CursorTag, uint64(APIOff), uint64(unsafe.Offsetof(b.NextAddr)),
		uint64(unsafe.Offsetof(b.PrevAddr)), uint64(unsafe.Offsetof(b.PrevCursor)), uint64(unsafe.Offsetof(b.PrevStart)),
		uint64(unsafe.Offsetof(b.PrevEnd)), uint64(unsafe.Offsetof(b.Swaps)), uint64(unsafe.Offsetof(b.API)), uint64(unsafe.Offsetof(b.Opened)),
		uint64(unsafe.Offsetof(h.TriggerSeq)), uint64(unsafe.Offsetof(h.TriggerLock)), uint64(unsafe.Offsetof(h.TriggerTid)),
		uint64(unsafe.Offsetof(h.TriggerAt)), uint64(unsafe.Offsetof(h.TriggerLost)), uint64(unsafe.Offsetof(h.TriggerWhy)),
		uint64(unsafe.Offsetof(s.NarrowNext)), uint64(unsafe.Offsetof(s.AreaFirst)), uint64(unsafe.Offsetof(s.NarrowMax))}
	tmp := t.TempDir()
	c := filepath.Join(tmp, "layout.c")
	if err := os.WriteFile(c, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(tmp, "layout")
	for _, on := range [][]string{{"gcc"}, {"aarch64-linux-gnu-gcc", "qemu-aarch64"}, {"arm-linux-gnueabihf-gcc", "qemu-arm"}} {
		run(t, on[0], "-static", "-o", bin, c)
		got := strings.Fields(run(t, append(on[1:], bin)...))
		for i, l := range got[:min(len(got), len(want))] {
			if l != fmt.Sprint(want[i]) {
				t.Errorf("%s: value %d: C says %s, Go %d", on[0], i, l, want[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d values from C, want %d", on[0], len(got), len(want))
		}
	}
}
