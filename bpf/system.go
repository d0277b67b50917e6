package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// What Load can fail for, apart from faults of its own.
var (
	ErrPermission   = errors.New("not allowed to record kernel events")
	ErrNoBTF        = errors.New("this kernel does not describe its types (BTF)")
	ErrKernelTooOld = errors.New("this kernel is too old to record kernel events")
	ErrPidNamespace = errors.New("kernel events need the initial pid namespace")
)

// initPidInode is the inode of the initial pid namespace: PROC_PID_INIT_INO, include/linux/proc_ns.h, Linux 6.12.
const initPidInode = 0xEFFFFFFC

// checkSystem finds what is certain to fail later, while the reason is still known.
func checkSystem() error {
	if err := checkCapabilities(); err != nil {
		return err
	}
	if info, err := os.Stat("/proc/self/ns/pid"); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Ino != initPidInode {
			return fmt.Errorf("%w: run braid outside of the container, or start that with --pid=host (braid doctor: pidns)", ErrPidNamespace)
		}
	}
	if err := features.HaveMapType(ebpf.Array); err != nil {
		return explain(fmt.Errorf("try the bpf system call: %w", err))
	}
	// Without this, nothing else is of use; the ring buffer, which came with it, is not needed.
	if err := features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnKtimeGetBootNs); errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: programs can ask for CLOCK_BOOTTIME since Linux 5.8, or 4.14 of Android (braid doctor: kernel)", ErrKernelTooOld)
	}
	return nil
}

// checkCapabilities wants CAP_BPF and CAP_PERFMON (Linux 5.8), or CAP_SYS_ADMIN, which includes both.
func checkCapabilities() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("read this process's capabilities: %w", err)
	}
	var effective uint64
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			if effective, err = strconv.ParseUint(strings.TrimSpace(hex), 16, 64); err != nil {
				return fmt.Errorf("read this process's capabilities: %w", err)
			}
		}
	}
	missing := missingCapabilities(effective)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s missing: run as root (braid doctor: privileges)", ErrPermission, strings.Join(missing, " and "))
}

func missingCapabilities(effective uint64) (names []string) {
	if effective&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return nil
	}
	if effective&(1<<unix.CAP_BPF) == 0 {
		names = append(names, "CAP_BPF")
	}
	if effective&(1<<unix.CAP_PERFMON) == 0 {
		names = append(names, "CAP_PERFMON")
	}
	return names
}

// loadTypes reads the kernel's BTF, its own or that of a file.
func loadTypes(path string, taken []string) (kernelTypes, error) {
	if path != "" {
		spec, err := btf.LoadSpec(path)
		if err != nil {
			return kernelTypes{}, fmt.Errorf("read BTF file %s: %w", path, err)
		}
		types := kernelTypes{spec: spec, external: true}
		if !types.hasHook("sched_process_fork") {
			return kernelTypes{}, fmt.Errorf("read BTF file %s: it has no prototypes of tracepoints: give all of the kernel's types, or "+
				"what braid's own minbtf has made of them (braid doctor: btf)", path)
		}
		return types, nil
	}
	const own = "/sys/kernel/btf/vmlinux"
	if _, err := os.Stat(own); errors.Is(err, os.ErrNotExist) || slices.Contains(taken, withoutBTF) {
		return kernelTypes{}, fmt.Errorf("%w: %s does not exist: give a BTF file of exactly this kernel with --btf FILE, or use a kernel "+
			"built with CONFIG_DEBUG_INFO_BTF=y (braid doctor: btf)", ErrNoBTF, own)
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return kernelTypes{}, fmt.Errorf("%w: read %s: %w", ErrNoBTF, own, err)
	}
	return kernelTypes{spec: spec}, nil
}

// explain adds the next step to an error of the kernel.
func explain(err error) error {
	lockdown, _ := os.ReadFile("/sys/kernel/security/lockdown") // not there: none
	return explainUnder(string(lockdown), err)
}

// explainUnder is explain with what the kernel says of its lockdown, such as "none integrity [confidentiality]". A kernel
// that keeps its memory to itself has no helpers that read it: the verifier then calls their use invalid.
func explainUnder(lockdown string, err error) error {
	refused := errors.Is(err, os.ErrPermission)
	if strings.Contains(lockdown, "[confidentiality]") && (refused || errors.Is(err, unix.EINVAL)) {
		return fmt.Errorf("%w: the kernel is locked down (confidentiality): boot without lockdown=confidentiality (braid doctor: lockdown): %w", ErrPermission, err)
	}
	if !refused {
		return err
	}
	return fmt.Errorf("%w: the kernel refused although this process has the capabilities; look for SELinux, AppArmor or "+
		"seccomp denials in the kernel log (braid doctor: selinux, seccomp): %w", ErrPermission, err)
}
