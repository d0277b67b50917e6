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

// objects are all that can be loaded.
var objects = map[string]func() (*ebpf.CollectionSpec, error){
	"process": loadProcess, "processRaw": loadProcessRaw, "sched": loadSched, "schedRaw": loadSchedRaw,
	"io": loadIo, "ioRaw": loadIoRaw, "watch": loadWatch, "watchRaw": loadWatchRaw, "schedWatch": loadSchedWatch,
	"schedWatchRaw": loadSchedWatchRaw, "ioWatch": loadIoWatch, "ioWatchRaw": loadIoWatchRaw, "wait": loadWait, "waitRaw": loadWaitRaw, "probe": loadProbe,
}

// TestOldInstructions checks that no program asks for what Linux 5.10 does not have: atomic operations other than plain
// adds of memory, which a compiler may make of an add, and later helpers. Nor for ids of another pid namespace.
func TestOldInstructions(t *testing.T) {
	const newest = asm.BuiltinFunc(155) // redirect_peer, include/uapi/linux/bpf.h, Linux 5.10
	calls := 0
	for name, open := range objects {
		spec, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range spec.Programs {
			for _, ins := range p.Instructions {
				if ins.OpCode.Class() == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode && ins.OpCode.AtomicOp() != asm.AddAtomic {
					t.Errorf("%s: %s: %v", name, p.Name, ins)
				}
				if !ins.IsBuiltinCall() {
					continue
				}
				calls++
				if f := asm.BuiltinFunc(ins.Constant); f > newest || f == asm.FnGetNsCurrentPidTgid {
					t.Errorf("%s: %s calls %v", name, p.Name, f)
				}
			}
		}
	}
	if calls == 0 {
		t.Error("no calls of helpers were found")
	}
}
