package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const allCaps = "Name:\tbraid\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n"

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

// healthy is a desktop on which everything works.
func healthy() map[string]string {
	return map[string]string{
		"proc/self/status":                          allCaps,
		"proc/self/limits":                          "Max locked memory         8388608              8388608              bytes\n",
		"proc/self/ns/pid":                          "-> pid:[4026531836]",
		"proc/sys/kernel/osrelease":                 "6.18.3-1-amd64\n",
		"proc/sys/kernel/unprivileged_bpf_disabled": "2\n",
		"proc/sys/kernel/perf_event_paranoid":       "3\n",
		"proc/sys/kernel/yama/ptrace_scope":         "1\n",
		"proc/config.gz":                            gzipped(strings.Join(wantedConfig, "=y\n") + "=y\n"),
		"proc/meminfo":                              "MemTotal: 4000000 kB\nMemAvailable:    2000000 kB\n",
		"proc/cpuinfo":                              "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc tsc_known_freq\n",
		"sys/kernel/btf/vmlinux":                    "BTF",
		"sys/kernel/security/lockdown":              "none [integrity] confidentiality\n",
		"sys/kernel/tracing/events/enable":          "0",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/devices/system/cpu/cpu0/online":                              "1",
		"sys/devices/system/cpu/cpu1/online":                              "1",
		"sys/devices/system/cpu/online":                                   "0-1\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":            "1800000\n",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq":            "800000\n",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":            "3600000\n",
		"sys/bus/event_source/devices/uprobe/type":                        "9\n",
		"sys/power/state":                     "freeze mem disk\n",
		"sys/power/mem_sleep":                 "[s2idle] deep\n",
		"proc/sys/kernel/kptr_restrict":       "1\n",
		"proc/sys/kernel/perf_event_mlock_kb": "516\n",
		"proc/kallsyms":                       "0000000000000000 T _text\n",
		"proc/filesystems":                    "nodev\tproc\n\text4\n",
		"proc/mounts":                         "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
	}
}

// system makes a System of files. "-> x" is a symbolic link to x; "-" removes the file.
func system(files map[string]string) System {
	root := fstest.MapFS{}
	for path, text := range files {
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			root[path] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		} else if text != "-" {
			root[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
		}
	}
	works := func() error { return nil }
	return System{Root: root, Arch: "amd64", BPF: works, RingBuffer: works, TpBTF: works, RawTP: works,
		PMU: works, UprobeMulti: works, UprobeSession: works, CounterHz: 2_400_000_000,
		Clocks: func() (Clocks, error) { return Clocks{Counter: 9e12, Monotonic: time.Hour, Boot: time.Hour}, nil },
		Free:   func(string) (uint64, error) { return 1 << 30, nil },
		Traced: func() ([]string, error) { return nil, nil }}
}

func find(t *testing.T, checks []Check, id string) Check {
	t.Helper()
	for _, c := range checks {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no check %q", id)
	return Check{}
}

func TestHealthy(t *testing.T) {
	for _, c := range Run(system(healthy())) {
		if c.Status != OK || c.Found == "" || c.Lost != "" || c.Do != "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestEachSituation(t *testing.T) {
	const user = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"
	const filtered = user + "Seccomp:\t2\n"
	const uprobe, tracing = "sys/bus/event_source/devices/uprobe/type", "sys/kernel/tracing/events/binder/"
	refuse := func() error { return errors.New("operation not permitted") }
	// slept is a machine that was suspended; its counter says less or more of the time since it started.
	slept := func(counter, asleep time.Duration) func(*System) {
		return func(s *System) {
			if counter != 0 {
				s.Arch, s.CounterHz = "arm64", 1e9
			}
			s.Clocks = func() (Clocks, error) {
				return Clocks{Counter: uint64(counter), Monotonic: time.Hour, Boot: time.Hour + asleep}, nil
			}
		}
	}
	for _, c := range []struct {
		id     string
		status Status
		found  string            // part of Check.Found
		files  map[string]string // changed from healthy
		change func(*System)
	}{
		{"privileges", Fail, "user 1000 without CAP_BPF", map[string]string{"proc/self/status": user}, nil},
		{"privileges", OK, "CAP_SYS_PTRACE", map[string]string{"proc/self/status": "Uid:\t7\t7\t7\t7\nCapEff:\t000000c000080000\n"}, nil},
		{"privileges", Warn, "user 7 with CAP_BPF and CAP_PERFMON",
			map[string]string{"proc/self/status": "Uid:\t7\t7\t7\t7\nCapEff:\t000000c000000000\n"}, nil},
		{"privileges", Unknown, "has no CapEff", map[string]string{"proc/self/status": "Uid:\t7\n"}, nil},
		{"privileges", Unknown, "not exist", map[string]string{"proc/self/status": "-"}, nil},
		{"pidns", Warn, "pid:[4026532177]", map[string]string{"proc/self/ns/pid": "-> pid:[4026532177]"}, nil},
		{"ptrace", Warn, "processes that braid started", map[string]string{"proc/self/status": user}, nil},
		{"ptrace", Warn, "none (yama/ptrace_scope is 3)", map[string]string{"proc/self/status": user, "proc/sys/kernel/yama/ptrace_scope": "3"}, nil},
		{"ptrace", OK, "no Yama", map[string]string{"proc/self/status": user, "proc/sys/kernel/yama/ptrace_scope": "-"}, nil},
		{"lockdown", Fail, "confidentiality", map[string]string{"sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}, nil},
		{"lockdown", Unknown, "what", map[string]string{"sys/kernel/security/lockdown": "what"}, nil},
		{"selinux", Warn, "enforcing, u:r:shell:s0", map[string]string{"sys/fs/selinux/enforce": "1", "proc/self/attr/current": "u:r:shell:s0\x00"}, nil},
		{"selinux", OK, "not for u:r:su:s0", map[string]string{"sys/fs/selinux/enforce": "1", "proc/self/attr/current": "u:r:su:s0\x00"}, nil},
		{"selinux", OK, "permissive", map[string]string{"sys/fs/selinux/enforce": "0"}, nil},
		{"kernel", Fail, "4.19.1", map[string]string{"proc/sys/kernel/osrelease": "4.19.1-android"}, nil},
		{"kernel", Warn, "5.8.0", map[string]string{"proc/sys/kernel/osrelease": "5.8.0"}, nil},
		{"kernel", OK, "5.10", map[string]string{"proc/sys/kernel/osrelease": "5.10"}, nil},
		{"kernel", Unknown, "odd", map[string]string{"proc/sys/kernel/osrelease": "odd"}, nil},
		{"config", Unknown, "neither", map[string]string{"proc/config.gz": "-"}, nil},
		{"config", Unknown, "neither", map[string]string{"proc/config.gz": "no gzip"}, nil},
		{"config", Fail, "lacks CONFIG_BPF_EVENTS, CONFIG_DEBUG_INFO_BTF", map[string]string{"proc/config.gz": "-",
			"boot/config-6.18.3-1-amd64": "CONFIG_BPF_SYSCALL=y\nCONFIG_TRACEPOINTS=y\nCONFIG_SCHED_INFO=y\nCONFIG_MEMFD_CREATE=y\n"}, nil},
		{"config", Warn, "lacks CONFIG_SCHED_INFO", map[string]string{"proc/config.gz": gzipped("CONFIG_BPF_SYSCALL=y\nCONFIG_TRACEPOINTS=y\n" +
			"CONFIG_DEBUG_INFO_BTF=y\nCONFIG_BPF_EVENTS=y\nCONFIG_MEMFD_CREATE=y\n# CONFIG_SCHED_INFO is not set\n")}, nil},
		{"btf", Fail, "does not exist", map[string]string{"sys/kernel/btf/vmlinux": "-"}, nil},
		{"bpf", Fail, "operation not permitted", nil, func(s *System) { s.BPF = refuse }},
		{"bpf", Unknown, "not tried", nil, func(s *System) { s.BPF = nil }},
		{"ringbuf", Warn, "operation not permitted", nil, func(s *System) { s.RingBuffer = refuse }},
		{"ringbuf", Fail, "operation not permitted", nil, func(s *System) { s.RingBuffer, s.BPF = refuse, refuse }},
		{"uprobes", Fail, "uprobe does not exist", map[string]string{uprobe: "-", "sys/bus/event_source/devices/software/type": "1"}, nil},
		{"uprobes", Unknown, "can not be read", map[string]string{uprobe: "-"}, nil},
		{"uprobes", OK, "single, no uprobe_multi (since Linux 6.6; only braid compare uses them), sessions not tried", nil,
			func(s *System) { s.UprobeMulti, s.UprobeSession = refuse, nil }},
		{"pmu", Warn, "not permitted", nil, func(s *System) { s.PMU = refuse }},
		{"pmu", Unknown, "not tried", nil, func(s *System) { s.PMU = nil }},
		{"kallsyms", Warn, "kptr_restrict is 2", map[string]string{"proc/sys/kernel/kptr_restrict": "2"}, nil},
		{"kallsyms", Warn, "lacks CAP_SYSLOG", map[string]string{"proc/self/status": user}, nil},
		{"kallsyms", OK, "kptr_restrict is 0", map[string]string{"proc/self/status": user, "proc/sys/kernel/kptr_restrict": "0"}, nil},
		{"kallsyms", Warn, "does not exist", map[string]string{"proc/kallsyms": "-"}, nil},
		{"seccomp", Warn, "Seccomp is 2", map[string]string{"proc/self/status": filtered}, func(s *System) { s.BPF = refuse }},
		{"seccomp", OK, "lets bpf through", map[string]string{"proc/self/status": filtered}, nil},
		{"seccomp", OK, "has none", map[string]string{"proc/self/status": user}, nil},
		{"seccomp", Unknown, "not exist", map[string]string{"proc/self/status": "-"}, nil},
		{"binder", OK, "none, as is usual", nil, nil},
		{"binder", Warn, "though this is Android", map[string]string{"system/build.prop": ""}, nil},
		{"binder", Warn, "no tracepoint binder_transaction_received, binder_wait_for_work", map[string]string{"dev/binder": "", tracing + "binder_transaction/id": "1"}, nil},
		{"binder", OK, "/dev/binderfs/binder, with its tracepoints", map[string]string{"dev/binderfs/binder": "", tracing + "binder_transaction/id": "1",
			tracing + "binder_transaction_received/id": "2", tracing + "binder_wait_for_work/id": "3"}, nil},
		{"binder", Unknown, "the kernel has it; its tracepoints can not", map[string]string{"proc/filesystems": "nodev\tbinder\n",
			"sys/kernel/tracing/events/enable": "-"}, nil},
		{"cgroup", Warn, "version 1 only", map[string]string{"proc/mounts": "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n"}, nil},
		{"cgroup", OK, "version 2 at /u, beside version 1", map[string]string{"proc/mounts": "cg /c cgroup rw 0 0\ncg /u cgroup2 rw 0 0\n"}, nil},
		{"cgroup", Warn, "none is mounted", map[string]string{"proc/mounts": "\n"}, nil},
		{"suspend", OK, "not suspended (no mem", map[string]string{"sys/power/state": "disk"}, nil},
		{"suspend", Warn, "begins anew", map[string]string{"sys/power/mem_sleep": "s2idle [deep]"}, nil},
		{"suspend", OK, "the TSC goes on while suspended; suspended for 2h0m0s", map[string]string{"proc/cpuinfo": "flags : nonstop_tsc_s3\n",
			"sys/power/mem_sleep": "s2idle [deep]"}, slept(0, 2*time.Hour)},
		{"suspend", OK, "goes on while suspended, as the device tree", nil, func(s *System) { s.Arch = "arm64" }},
		{"suspend", Warn, "arm,no-tick-in-suspend", map[string]string{"proc/device-tree/timer/arm,no-tick-in-suspend": ""}, func(s *System) { s.Arch = "arm64" }},
		{"suspend", OK, "went on; suspended for 2h0m0s", nil, slept(3*time.Hour+5*time.Second, 2*time.Hour)},
		{"suspend", Warn, "stood still; suspended for 2h0m0s", nil, slept(time.Hour+5*time.Second, 2*time.Hour)},
		{"counter", OK, "19.200 MHz: a tick, the finest time that a record can tell, is 52.1 ns", nil, func(s *System) { s.Arch, s.CounterHz = "arm64", 19_200_000 }},
		{"counter", Warn, "1.000 MHz", nil, func(s *System) { s.Arch, s.CounterHz = "arm64", 1_000_000 }},
		{"counter", Warn, "cntfrq is 0", nil, func(s *System) { s.Arch, s.CounterHz = "arm64", 0 }},
		{"cpufreq", OK, "processor 0 runs at 1800 MHz, of 800 to 3600", nil, nil},
		{"cpufreq", Warn, "not told", map[string]string{"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "-"}, nil},
		{"perf_paranoid", Warn, "perf_event_paranoid is 2", map[string]string{"proc/self/status": user, "proc/sys/kernel/perf_event_paranoid": "2"}, nil},
		{"tracepoints", Warn, "raw_tp usable", nil, func(s *System) { s.TpBTF = refuse }},
		{"tracepoints", Fail, "not permitted", nil, func(s *System) { s.TpBTF, s.RawTP = refuse, refuse }},
		{"unprivileged_bpf", OK, "allowed", map[string]string{"proc/sys/kernel/unprivileged_bpf_disabled": "0"}, nil},
		{"perf_paranoid", Warn, "perf_event_paranoid is 3", map[string]string{"proc/self/status": user}, nil},
		{"perf_paranoid", OK, "perf_event_paranoid is 1", map[string]string{"proc/self/status": user, "proc/sys/kernel/perf_event_paranoid": "1"}, nil},
		{"memlock", Fail, "limit 65536 bytes", map[string]string{"proc/self/status": user, "proc/sys/kernel/osrelease": "5.10.1",
			"proc/self/limits": "Limit Soft Hard Units\nMax locked memory         65536    65536     bytes\n"}, nil},
		{"memlock", OK, "limit unlimited", map[string]string{"proc/self/status": user, "proc/sys/kernel/osrelease": "5.10.1",
			"proc/self/limits": "Max locked memory         unlimited    unlimited     bytes\n"}, nil},
		{"memlock", OK, "may raise", map[string]string{"proc/sys/kernel/osrelease": "5.10.1"}, nil},
		{"tracefs", Warn, "not mounted", map[string]string{"sys/kernel/tracing/events/enable": "-"}, nil},
		{"tracefs", OK, "debug", map[string]string{"sys/kernel/tracing/events/enable": "-", "sys/kernel/debug/tracing/events/enable": "0"}, nil},
		{"clocksource", Warn, "hpet", map[string]string{"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, nil},
		{"clocksource", OK, "arch_sys_counter", map[string]string{
			"sys/devices/system/clocksource/clocksource0/current_clocksource": "arch_sys_counter"}, func(s *System) { s.Arch = "arm64" }},
		{"counter", Warn, "TSC without nonstop_tsc", map[string]string{"proc/cpuinfo": "flags : tsc constant_tsc\n"}, nil},
		{"counter", OK, "cntvct", nil, func(s *System) { s.Arch = "arm64" }},
		{"memory", Warn, "58 MiB available", map[string]string{"proc/meminfo": "MemAvailable: 60000 kB\n"}, nil},
		{"cpus", OK, "2, all alike", nil, nil},
		{"cpus", OK, "2, 1 of them off: big 1 (1024 of 1024), little 0 (400 of 1024, Cortex-A55)", map[string]string{
			"sys/devices/system/cpu/online": "0", "proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd05\n",
			"sys/devices/system/cpu/cpu0/cpu_capacity": "400\n", "sys/devices/system/cpu/cpu1/cpu_capacity": "1024\n"}, nil},
		{"cpus", OK, "2: big 1 (1024 of 1024), little 0 (400 of 1024)", map[string]string{
			"sys/devices/system/cpu/cpu0/cpu_capacity": "400\n", "sys/devices/system/cpu/cpu1/cpu_capacity": "1024\n"}, nil},
		{"targets", OK, "a 1; b 2", nil, func(s *System) { s.Traced = func() ([]string, error) { return []string{"a 1", "b 2"}, nil } }},
		{"targets", OK, "e; and 2 more", nil, func(s *System) { s.Traced = func() ([]string, error) { return strings.Fields("a b c d e f g"), nil } }},
		{"targets", Unknown, "not permitted", nil, func(s *System) { s.Traced = func() ([]string, error) { return nil, refuse() } }},
	} {
		files := healthy()
		for path, text := range c.files {
			files[path] = text
		}
		s := system(files)
		if c.change != nil {
			c.change(&s)
		}
		got := find(t, Run(s), c.id)
		if got.Status != c.status || !strings.Contains(got.Found, c.found) {
			t.Errorf("%s: got %s %q, want %s %q", c.id, got.Status, got.Found, c.status, c.found)
		}
		if got.Status != OK && got.Lost == "" || got.Status == Fail && got.Do == "" {
			t.Errorf("%s: no consequence or next step: %+v", c.id, got)
		}
	}
}

// TestEmptyRoot has nothing at all, as in a chroot without /proc.
func TestEmptyRoot(t *testing.T) {
	checks := Run(System{Root: fstest.MapFS{}, Arch: "amd64"})
	if got := find(t, checks, "bpf"); got.Status != Unknown {
		t.Errorf("%+v", got)
	}
	checkLayout(t, checks)
}

// checkLayout renders in both forms.
func checkLayout(t *testing.T, checks []Check) string {
	t.Helper()
	var text, js bytes.Buffer
	if err := WriteText(&text, checks); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if err := WriteJSON(&js, checks); err != nil {
		t.Fatal(err)
	}
	var back struct{ Checks []Check }
	if err := json.Unmarshal(js.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(checks, back.Checks); diff != "" {
		t.Errorf("JSON changes checks: %s", diff)
	}
	return text.String()
}

func TestText(t *testing.T) {
	got := checkLayout(t, []Check{
		{ID: "a", Title: "Short", Status: OK, Found: "fine"},
		{ID: "b", Title: "Kernel types (BTF)", Status: Fail, Found: "evil \x1b[31m " + strings.Repeat("word ", 12),
			Lost: "things", Do: "open /" + strings.Repeat("long/", 20)},
	})
	want := `ok      Short                     fine
fail    Kernel types (BTF)        evil ?[31m word word word word word word word
                                  word word word word word
        lost  things
        do    open
              /long/long/long/long/long/long/long/long/long/long/long/long/long/
              long/long/long/long/long/long/long/

2 checks: 1 ok, 0 warn, 1 fail, 0 unknown
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestThisMachine tries the real probes. What they find depends on the machine, but must not contradict the rest.
func TestThisMachine(t *testing.T) {
	checks := Run(Local())
	t.Log("\n" + checkLayout(t, checks))
	causes := OK
	for _, id := range []string{"privileges", "lockdown", "kernel", "btf"} {
		if find(t, checks, id).Status != OK {
			causes = Fail
		}
	}
	for _, id := range []string{"bpf", "ringbuf", "tracepoints"} {
		if c := find(t, checks, id); causes == OK && c.Status != OK {
			t.Errorf("nothing explains %+v", c)
		}
	}
}
