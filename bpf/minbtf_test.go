package bpf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// TestMinimizeBTF records with no more of the kernel's types than the programs need.
func TestMinimizeBTF(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	small, err := MinimizeBTF(kernel)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "small.btf")
	if err := os.WriteFile(path, small, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(small))
	if len(small) > 32<<10 {
		t.Errorf("%d bytes is not minimal", len(small))
	}
	full := load(t, Options{BTFPath: "/sys/kernel/btf/vmlinux"})
	r := load(t, Options{BTFPath: path})
	if len(r.Missing()) != len(full.Missing()) || len(r.hooks) != len(full.hooks) {
		t.Errorf("%d hooks, missing %q; with all types %d, missing %q", len(r.hooks), r.Missing(), len(full.hooks), full.Missing())
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	tg := startTarget(t, "sleep", "101")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tg.run()
	spans, _ := tg.results()
	tg.finish()
	checkSwitches(t, stopAndRead(t, r), spans[0])
}
