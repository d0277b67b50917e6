package doctor

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Capabilities (include/uapi/linux/capability.h, Linux 6.18).
const (
	capSysPtrace   = 19
	capSysAdmin    = 21
	capSysResource = 24
	capSyslog      = 34
	capPerfmon     = 38
	capBPF         = 39
)

const (
	lostKernel = "kernel events: thread states, wake-ups, I/O"
	doRoot     = "run braid with sudo, or give it capabilities: " +
		"setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep BRAID; or record methods alone with --kernel none"
)

// status returns a field of /proc/self/status.
func (s *System) status(field string) (string, error) {
	text, err := s.text("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("/proc/self/status has no %s", field)
}

// caps returns the effective capabilities.
func (s *System) caps() (uint64, error) {
	text, err := s.status("CapEff")
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/self/status: CapEff: %w", err)
	}
	return v, nil
}

func has(caps uint64, c uint) bool { return caps>>c&1 != 0 }

func privileges(s *System) Check {
	caps, err := s.caps()
	if err != nil {
		return unknown(err, lostKernel)
	}
	uids, err := s.status("Uid")
	if err != nil {
		return unknown(err, lostKernel)
	}
	user := "user 0 (root)"
	if f := strings.Fields(uids); len(f) < 2 {
		return unknown(fmt.Errorf("/proc/self/status: Uid is %q", uids), lostKernel)
	} else if f[1] != "0" {
		user = "user " + f[1]
	}
	switch {
	case has(caps, capSysAdmin):
		return Check{Status: OK, Found: user + " with CAP_SYS_ADMIN"}
	case has(caps, capBPF) && has(caps, capPerfmon) && has(caps, capSysPtrace):
		return Check{Status: OK, Found: user + " with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"}
	case has(caps, capBPF) && has(caps, capPerfmon):
		return Check{Status: Warn, Found: user + " with CAP_BPF and CAP_PERFMON", Lost: "tracing other users' processes with -p",
			Do: "add the capability: setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep BRAID"}
	}
	return Check{Status: Fail, Found: user + " without CAP_BPF and CAP_PERFMON", Lost: lostKernel, Do: doRoot}
}

// pidNamespace looks for a sign of another pid namespace than the initial one, in which the kernel's ids are not ours.
func pidNamespace(s *System) Check {
	const initial = "pid:[4026531836]" // PROC_PID_INIT_INO, include/linux/proc_ns.h, Linux 6.18
	lost := "kernel events of processes, whose ids the kernel reports as outside of the container"
	ns, err := fs.ReadLink(s.Root, "proc/self/ns/pid")
	if err != nil {
		return unknown(err, lost)
	}
	if ns != initial {
		return Check{Status: Warn, Found: "a namespace of its own: " + ns, Lost: lost,
			Do: "run braid outside of the container, or start the container with --pid=host"}
	}
	return Check{Status: OK, Found: "the initial one"}
}

func ptraceScope(s *System) Check {
	caps, err := s.caps()
	if err == nil && (has(caps, capSysPtrace) || has(caps, capSysAdmin)) {
		return Check{Status: OK, Found: "all, by capability"}
	}
	// Documentation/admin-guide/LSM/Yama.rst.
	level, err := s.text("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return Check{Status: OK, Found: "your own processes (no Yama)"}
	}
	do := "start the program with braid record -- PROGRAM, or run braid with sudo"
	switch level {
	case "0":
		return Check{Status: OK, Found: "your own processes (yama/ptrace_scope is 0)"}
	case "1":
		return Check{Status: Warn, Found: "processes that braid started (yama/ptrace_scope is 1)",
			Lost: "attaching to your running processes with -p", Do: do}
	}
	return Check{Status: Warn, Found: "none (yama/ptrace_scope is " + level + ")", Lost: "attaching to processes without root", Do: do}
}

func selinux(s *System) Check {
	enforcing, err := s.text("/sys/fs/selinux/enforce")
	if err != nil {
		return Check{Status: OK, Found: "not active"}
	}
	domain, err := s.text("/proc/self/attr/current")
	domain = strings.TrimRight(domain, "\x00\n")
	if err != nil || domain == "" {
		domain = "unknown domain"
	}
	if enforcing != "1" {
		return Check{Status: OK, Found: "permissive, " + domain}
	}
	for _, free := range []string{"unconfined_t", ":su:", ":magisk:"} {
		if strings.Contains(domain, free) {
			return Check{Status: OK, Found: "enforcing, but not for " + domain}
		}
	}
	return Check{Status: Warn, Found: "enforcing, " + domain, Lost: "whatever the policy denies this domain, such as bpf and /proc/PID",
		Do: "if something fails with \"permission denied\": setenforce 0 on a development device, or run braid in an unconfined domain"}
}

func lockdown(s *System) Check {
	text, err := s.text("/sys/kernel/security/lockdown")
	if err != nil {
		return Check{Status: OK, Found: "not active"}
	}
	_, mode, _ := strings.Cut(text, "[")
	mode, _, _ = strings.Cut(mode, "]")
	switch mode {
	case "none", "integrity":
		return Check{Status: OK, Found: mode}
	case "confidentiality":
		return Check{Status: Fail, Found: mode, Lost: lostKernel + " (BPF programs may not read kernel memory)",
			Do: "boot with lockdown=integrity, or without Secure Boot"}
	}
	return Check{Status: Unknown, Found: fmt.Sprintf("%.60q", text), Lost: lostKernel}
}

func unprivilegedBPF(s *System) Check {
	v, err := s.text("/proc/sys/kernel/unprivileged_bpf_disabled")
	if err != nil {
		return unknown(err, "nothing that braid uses")
	}
	// Documentation/admin-guide/sysctl/kernel.rst; braid's programs need CAP_PERFMON whatever is set here.
	meaning := map[string]string{"0": "allowed", "1": "refused until reboot", "2": "refused"}[v]
	if meaning == "" {
		meaning = "unknown setting"
	}
	return Check{Status: OK, Found: fmt.Sprintf("%s (unprivileged_bpf_disabled is %.20s); braid does not need it", meaning, v)}
}
