package doctor

import (
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Local is the machine that this process runs on. Traced is left to the caller.
func Local() System {
	return System{
		Root: os.DirFS("/"),
		Arch: runtime.GOARCH,
		BPF:  func() error { return features.HaveMapType(ebpf.Array) },
		RingBuffer: func() error {
			return features.HaveMapType(ebpf.RingBuf)
		},
		TpBTF: loadTpBTF,
		RawTP: func() error { return features.HaveProgramType(ebpf.RawTracepoint) },
		Free: func(path string) (uint64, error) {
			var st unix.Statfs_t
			if err := unix.Statfs(path, &st); err != nil {
				return 0, err
			}
			return st.Bavail * uint64(st.Bsize), nil
		},
	}
}

// loadTpBTF loads, but does not attach, a program for sched_switch that does nothing: the verifier then finds the
// tracepoint in the kernel's BTF.
func loadTpBTF() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "braid_doctor",
		Type:         ebpf.Tracing,
		AttachType:   ebpf.AttachTraceRawTp,
		AttachTo:     "sched_switch",
		License:      "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("load a tp_btf program: %w", err)
	}
	return prog.Close()
}
