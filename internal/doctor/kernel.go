package doctor

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// version parses "6.18.3-arch1" into 6 and 18.
func version(release string) (major, minor int, ok bool) {
	n, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, err == nil && n == 2
}

func (s *System) kernel() (release string, major, minor int, err error) {
	release, err = s.text("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", 0, 0, err
	}
	major, minor, ok := version(release)
	if !ok {
		return "", 0, 0, fmt.Errorf("the kernel's release is %.60q", release)
	}
	return release, major, minor, nil
}

func atLeast(major, minor, wantMajor, wantMinor int) bool {
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

func kernelVersion(s *System) Check {
	release, major, minor, err := s.kernel()
	switch {
	case err != nil:
		return unknown(err, lostKernel)
	case !atLeast(major, minor, 5, 8): // bpf_ktime_get_boot_ns, ring buffer
		return Check{Status: Fail, Found: release, Lost: lostKernel, Do: "use Linux 5.8 or later (better 5.10), or record with --kernel none"}
	case !atLeast(major, minor, 5, 10):
		return Check{Status: Warn, Found: release, Lost: "certainty: braid is meant for Linux 5.10 and later", Do: "use Linux 5.10 or later"}
	}
	return Check{Status: OK, Found: release}
}

// wantedConfig is what braid's parts need of the kernel's configuration.
var wantedConfig = []string{
	"CONFIG_BPF_SYSCALL", "CONFIG_BPF_EVENTS", "CONFIG_DEBUG_INFO_BTF", "CONFIG_TRACEPOINTS", "CONFIG_SCHED_INFO", "CONFIG_MEMFD_CREATE",
	"CONFIG_PERF_EVENTS", "CONFIG_UPROBE_EVENTS", "CONFIG_KALLSYMS", "CONFIG_BPF_JIT", "CONFIG_CGROUPS",
}

// optionalConfig names what is lost without a setting that braid can do without.
var optionalConfig = map[string]string{
	"CONFIG_SCHED_INFO": "/proc/PID/schedstat to compare with", "CONFIG_PERF_EVENTS": "samples and the times of major faults",
	"CONFIG_UPROBE_EVENTS": "method probes of braid watch", "CONFIG_KALLSYMS": "names of the kernel's functions in samples",
	"CONFIG_BPF_JIT": "speed: eBPF programs are interpreted", "CONFIG_CGROUPS": "choosing processes by cgroup",
}

func kernelConfig(s *System) Check {
	lost := "a second opinion on the checks below"
	config, from, err := s.config()
	if err != nil {
		return Check{Status: Unknown, Found: "neither /proc/config.gz nor /boot/config-RELEASE can be read", Lost: lost,
			Do: "nothing, or modprobe configs"}
	}
	var missing, without []string
	fatal := false
	for _, name := range wantedConfig {
		if config[name] {
			continue
		}
		missing = append(missing, name)
		if l, optional := optionalConfig[name]; optional {
			without = append(without, l)
		} else {
			fatal = true
		}
	}
	switch {
	case len(missing) == 0:
		return Check{Status: OK, Found: from + " has all that braid uses"}
	case fatal:
		return Check{Status: Fail, Found: from + " lacks " + strings.Join(missing, ", "), Lost: lostKernel, Do: "use a kernel built with these"}
	}
	return Check{Status: Warn, Found: from + " lacks " + strings.Join(missing, ", "), Lost: strings.Join(without, ", "),
		Do: "use a kernel built with these, if you need it"}
}

// config returns the names that are set to y, and where they were found.
func (s *System) config() (map[string]bool, string, error) {
	from := "/proc/config.gz"
	f, err := s.Root.Open(from[1:])
	if err != nil {
		release, _, _, err := s.kernel()
		if err != nil {
			return nil, "", err
		}
		from = "/boot/config-" + release
		if f, err = s.Root.Open(from[1:]); err != nil {
			return nil, "", err
		}
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(from, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, "", err
		}
	}
	set := make(map[string]bool)
	sc := bufio.NewScanner(io.LimitReader(r, 4<<20))
	for sc.Scan() {
		if name, ok := strings.CutSuffix(sc.Text(), "=y"); ok && slices.Contains(wantedConfig, name) {
			set[name] = true
		}
	}
	return set, from, sc.Err()
}

func btf(s *System) Check {
	const path = "/sys/kernel/btf/vmlinux"
	if s.exists(path) {
		return Check{Status: OK, Found: path}
	}
	return Check{Status: Fail, Found: path + " does not exist", Lost: lostKernel + " (programs cannot adapt to this kernel)",
		Do: "give the types of exactly this kernel with --btf FILE, use a kernel with CONFIG_DEBUG_INFO_BTF=y, or record with --kernel none"}
}

// probe turns a feature probe into a check.
func probe(try func() error, ok, lost, do string) Check {
	if try == nil {
		return Check{Status: Unknown, Found: "not tried", Lost: lost}
	}
	if err := try(); err != nil {
		return Check{Status: Fail, Found: oneLine(err), Lost: lost, Do: do}
	}
	return Check{Status: OK, Found: ok}
}

// oneLine is an error's text without the verifier's log.
func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}

func bpfCall(s *System) Check {
	return probe(s.BPF, "usable", lostKernel, doRoot)
}

func ringBuffer(s *System) Check {
	c := probe(s.RingBuffer, "usable", lostKernel, "use Linux 5.8 or later, and the privileges above")
	if c.Status == Fail && s.BPF != nil && s.BPF() == nil {
		c.Status, c.Lost = Warn, "a little speed: kernel events come through perf's buffers, one a processor"
	}
	return c
}

func tracepoints(s *System) Check {
	c := probe(s.TpBTF, "tp_btf usable", lostKernel, "use Linux 5.5 or later with BTF, and the privileges above")
	if c.Status != Fail || s.RawTP == nil || s.RawTP() != nil {
		return c
	}
	return Check{Status: Warn, Found: "raw_tp usable, tp_btf not: " + c.Found, Lost: "a little speed", Do: "use a kernel with CONFIG_DEBUG_INFO_BTF=y"}
}

func memlock(s *System) Check {
	_, major, minor, err := s.kernel()
	lost := "BPF maps, which count as locked memory before Linux 5.11"
	if err != nil {
		return unknown(err, lost)
	}
	if atLeast(major, minor, 5, 11) {
		found := "not limited for BPF since Linux 5.11"
		if kib, err := s.text("/proc/sys/kernel/perf_event_mlock_kb"); err == nil {
			found += "; without root, buffers of samples up to " + kib + " KiB a processor (perf_event_mlock_kb)"
		}
		return Check{Status: OK, Found: found}
	}
	caps, err := s.caps()
	if err == nil && has(caps, capSysResource) {
		return Check{Status: OK, Found: "braid may raise its limit"}
	}
	limits, err := s.text("/proc/self/limits")
	if err != nil {
		return unknown(err, lost)
	}
	const want = 32 << 20
	for line := range strings.Lines(limits) {
		rest, ok := strings.CutPrefix(line, "Max locked memory")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		if f[1] == "unlimited" || err == nil && n >= want {
			return Check{Status: OK, Found: "limit " + f[1]}
		}
		return Check{Status: Fail, Found: "limit " + f[1] + " bytes", Lost: lost, Do: "ulimit -l unlimited, or run braid with sudo"}
	}
	return Check{Status: Unknown, Found: "/proc/self/limits does not say", Lost: lost}
}

func tracefs(s *System) Check {
	dir, err := s.tracing()
	if err != nil {
		return Check{Status: Warn, Found: err.Error(), Lost: "binder calls, and comparing with perf and bpftrace; nothing else needs it",
			Do: "mount -t tracefs tracefs /sys/kernel/tracing (as root)"}
	}
	return Check{Status: OK, Found: dir}
}

// tracing returns where tracefs is.
func (s *System) tracing() (string, error) {
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if s.exists(dir + "/events") {
			return dir, nil
		}
	}
	return "", errors.New("not mounted, or not readable")
}
