package bpf

import (
	"runtime"
	"strings"
	"testing"
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
