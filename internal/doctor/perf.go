package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

func perfParanoid(s *System) Check {
	v, err := s.text("/proc/sys/kernel/perf_event_paranoid")
	lost := "sampling and probes without root"
	if err != nil {
		return unknown(err, lost)
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return unknown(err, lost)
	}
	found := fmt.Sprintf("perf_event_paranoid is %d", n)
	if caps, err := s.caps(); err == nil && (has(caps, capPerfmon) || has(caps, capSysAdmin)) {
		return Check{Status: OK, Found: found + ", which does not apply to you"}
	}
	const do = "sysctl kernel.perf_event_paranoid=1, or run braid with sudo"
	switch {
	case n > 2:
		return Check{Status: Warn, Found: found, Lost: lost, Do: do}
	case n > 1:
		return Check{Status: Warn, Found: found, Lost: "the kernel's part of samples, without root", Do: do}
	}
	return Check{Status: OK, Found: found}
}

// pmu says what the event of samples is.
func pmu(s *System) Check {
	lost := "samples by the processor's cycles: they are taken by time on a processor (cpu-clock), and not where interrupts are off"
	switch c := probe(s.PMU, "counts cycles", lost, ""); c.Status {
	case Fail:
		c.Status, c.Do = Warn, "nothing, cpu-clock serves; on a virtual machine, have it pass the PMU through"
		return c
	default:
		return c
	}
}

// uprobes are what braid watch times methods with, and what braid compare compares stubs with.
func uprobes(s *System) Check {
	const dir = "/sys/bus/event_source/devices/uprobe"
	lost := "times of methods without a recording (method probes of braid watch)"
	if !s.exists(dir + "/type") {
		if !s.exists("/sys/bus/event_source/devices") {
			return Check{Status: Unknown, Found: "/sys/bus/event_source/devices can not be read", Lost: lost}
		}
		return Check{Status: Fail, Found: dir + " does not exist", Lost: lost, Do: "use a kernel with CONFIG_UPROBE_EVENTS=y"}
	}
	found := []string{"single"}
	for _, k := range []struct {
		name, since string
		try         func() error
	}{{"uprobe_multi", "6.6", s.UprobeMulti}, {"sessions", "6.13", s.UprobeSession}} {
		switch {
		case k.try == nil:
			found = append(found, k.name+" not tried")
		case k.try() == nil:
			found = append(found, k.name)
		default:
			found = append(found, "no "+k.name+" (since Linux "+k.since+"; only braid compare uses them)")
		}
	}
	return Check{Status: OK, Found: strings.Join(found, ", ")}
}

// kernelSymbols says whether the kernel's functions have names.
func kernelSymbols(s *System) Check {
	lost := "names of the kernel's functions in samples"
	v, err := s.text("/proc/sys/kernel/kptr_restrict")
	if err != nil {
		return unknown(err, lost)
	}
	if !s.exists("/proc/kallsyms") {
		return Check{Status: Warn, Found: "/proc/kallsyms does not exist", Lost: lost, Do: "use a kernel with CONFIG_KALLSYMS=y"}
	}
	caps, err := s.caps()
	if err != nil {
		return unknown(err, lost)
	}
	found := "kptr_restrict is " + v
	switch {
	case v == "2":
		return Check{Status: Warn, Found: found, Lost: lost, Do: "sysctl kernel.kptr_restrict=1"}
	case v == "0" || has(caps, capSyslog):
		return Check{Status: OK, Found: found + "; /proc/kallsyms tells addresses"}
	}
	return Check{Status: Warn, Found: found + ", and this user lacks CAP_SYSLOG", Lost: lost, Do: "run braid with sudo, or sysctl kernel.kptr_restrict=0"}
}

// seccomp looks for a filter of system calls, such as containers have.
func seccomp(s *System) Check {
	lost := "whatever the filter refuses, such as bpf and perf_event_open"
	mode, err := s.status("Seccomp")
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return unknown(err, lost)
	case err != nil:
		return Check{Status: OK, Found: "this kernel has none"}
	case mode == "0":
		return Check{Status: OK, Found: "no filter"}
	case s.BPF != nil && s.BPF() == nil:
		return Check{Status: OK, Found: "a filter, which lets bpf through"}
	}
	return Check{Status: Warn, Found: "a filter of system calls is in force (Seccomp is " + mode + ")", Lost: lost,
		Do: "run braid outside of the container, or start that with --security-opt seccomp=unconfined"}
}
