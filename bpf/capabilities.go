package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// What a kernel may lack, and braid can do without, as WithoutEnv names it.
const (
	withoutRing  = "ringbuf" // the BPF ring buffer: Linux 5.8
	withoutTpBTF = "tp_btf"  // programs on tracepoints with the kernel's own types: Linux 5.5
	withoutBTF   = "btf"     // the kernel's own types: CONFIG_DEBUG_INFO_BTF
)

// WithoutEnv is an environment variable for tests: a comma-separated list of what Load must do without although the
// kernel has it (ringbuf, tp_btf, btf).
const WithoutEnv = "BRAID_TEST_WITHOUT"

// capabilities are what the loader uses of the kernel.
type capabilities struct {
	ring  bool
	tpBTF bool
}

// findCapabilities tries them. Its errors are the kernel's.
func findCapabilities(without []string) (c capabilities, err error) {
	if !slices.Contains(without, withoutRing) {
		switch err := features.HaveMapType(ebpf.RingBuf); {
		case err == nil:
			c.ring = true
		case !errors.Is(err, ebpf.ErrNotSupported):
			return c, fmt.Errorf("try the BPF ring buffer: %w", err)
		}
	}
	if !slices.Contains(without, withoutTpBTF) {
		c.tpBTF = tryTpBTF() == nil
	}
	return c, nil
}

// tryTpBTF loads a program that does nothing: the verifier then finds the tracepoint in the kernel's own types.
func tryTpBTF() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_switch", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return prog.Close()
}

// without is what tests take away.
func without() ([]string, error) {
	text := os.Getenv(WithoutEnv)
	if text == "" {
		return nil, nil
	}
	list := strings.Split(text, ",")
	for _, name := range list {
		if !slices.Contains([]string{withoutRing, withoutTpBTF, withoutBTF}, name) {
			return nil, fmt.Errorf("%s=%s: there are %s, %s and %s", WithoutEnv, text, withoutRing, withoutTpBTF, withoutBTF)
		}
	}
	return list, nil
}
