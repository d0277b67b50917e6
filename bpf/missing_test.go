package bpf

import (
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestMissing checks that of a kernel's hooks only those are missing that may be: arm64 has no tracepoints for page
// faults.
func TestMissing(t *testing.T) {
	r := load(t, Options{})
	for _, m := range r.Missing() {
		hook, reason, ok := strings.Cut(m, ": ")
		if !ok || reason == "" {
			t.Errorf("%q gives no reason", m)
		}
		if fault := strings.HasPrefix(hook, "io/page_fault_"); !fault || runtime.GOARCH != "arm64" {
			t.Errorf("missing: %s", m)
		}
	}
	t.Logf("%d hooks attached, missing: %q", len(r.hooks), r.Missing())
}

// TestOldAtomics checks that no program has atomic operations other than plain adds of memory: Linux 5.10 has no others,
// and a compiler may make one of an add.
func TestOldAtomics(t *testing.T) {
	for name, open := range map[string]func() (*ebpf.CollectionSpec, error){
		"process": loadProcess, "processRaw": loadProcessRaw, "sched": loadSched, "schedRaw": loadSchedRaw,
		"io": loadIo, "ioRaw": loadIoRaw, "watch": loadWatch, "watchRaw": loadWatchRaw, "schedWatch": loadSchedWatch,
		"schedWatchRaw": loadSchedWatchRaw, "ioWatch": loadIoWatch, "ioWatchRaw": loadIoWatchRaw, "wait": loadWait, "waitRaw": loadWaitRaw, "probe": loadProbe,
	} {
		spec, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range spec.Programs {
			for _, ins := range p.Instructions {
				if ins.OpCode.Class() == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode && ins.OpCode.AtomicOp() != asm.AddAtomic {
					t.Errorf("%s: %s: %v", name, p.Name, ins)
				}
			}
		}
	}
}
