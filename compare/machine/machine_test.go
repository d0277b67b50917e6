package machine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func system(arch string, files map[string]string) *System {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &System{Root: m, Arch: arch}
}

const kvmInfo = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu tsc constant_tsc nonstop_tsc hypervisor\n\n" +
	"processor\t: 1\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu tsc constant_tsc nonstop_tsc hypervisor\n"

func guest() map[string]string {
	return map[string]string{
		"proc/cpuinfo":                       kvmInfo,
		"proc/meminfo":                       "MemTotal:       16384 kB\nMemFree: 1 kB\n",
		"proc/sys/kernel/osrelease":          "6.18.44\n",
		"proc/sys/kernel/arch":               "x86_64\n",
		"etc/os-release":                     "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n",
		"sys/devices/system/cpu/online":      "0-1\n",
		"proc/1/exe":                         "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00",
		cpuDir + "/cpu0/cpu_capacity":        "1024\n",
		cpuDir + "/cpu1/cpu_capacity":        "1024\n",
		cpuDir + "/vulnerabilities/retbleed": "Mitigation: untrained return thunk\n",
		cpuDir + "/vulnerabilities/mds":      "Not affected\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc kvm-clock acpi_pm \n",
	}
}

// phone has three kinds of processor and an idle one that is off.
func phone() map[string]string {
	f := map[string]string{
		"vendor/build.prop":    "# x\nro.product.manufacturer=Maker\nro.product.model=Phone 9\n",
		"system/build.prop":    "ro.build.version.release=15\n",
		"proc/sys/kernel/arch": "aarch64\n",
		cpuDir + "/online":     "0-5,7\n",
	}
	info := ""
	for cpu := range 8 {
		capacity, part := 325, "0xd05"
		switch {
		case cpu == 7:
			capacity, part = 1024, "0xd44"
		case cpu >= 4:
			capacity, part = 743, "0xd41"
		}
		f[fmt.Sprintf("%s/cpu%d/cpu_capacity", cpuDir, cpu)] = fmt.Sprintln(capacity)
		f[fmt.Sprintf("%s/cpu%d/cpufreq/cpuinfo_max_freq", cpuDir, cpu)] = fmt.Sprintln(capacity * 2800)
		info += fmt.Sprintf("processor\t: %d\nCPU implementer\t: 0x41\nCPU part\t: %s\n\n", cpu, part)
	}
	f["proc/cpuinfo"] = info + "Hardware\t: Board\n"
	return f
}

// Only what is paid for at entries and exits is a toll, also where it helps only in part.
func TestToll(t *testing.T) {
	s := system("amd64", map[string]string{
		cpuDir + "/vulnerabilities/meltdown":             "Mitigation: PTI\n",
		cpuDir + "/vulnerabilities/retbleed":             "Vulnerable\n",
		cpuDir + "/vulnerabilities/spec_rstack_overflow": "Vulnerable: Safe RET, no microcode\n",
		cpuDir + "/vulnerabilities/spectre_v1":           "Mitigation: usercopy/swapgs barriers and __user pointer sanitization\n",
		cpuDir + "/vulnerabilities/spectre_v2":           "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling\n",
		cpuDir + "/vulnerabilities/mds":                  "Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable\n",
		cpuDir + "/vulnerabilities/vmscape":              "Mitigation: IBPB before exit to userspace\n",
	})
	note := s.Describe().MitigationNote
	if note != "meltdown (PTI), spec_rstack_overflow (Safe RET, no microcode), spectre_v1 (usercopy/swapgs barriers and __user pointer sanitization), "+
		"spectre_v2 (Enhanced / Automatic IBRS), vmscape (IBPB before exit to userspace)" {
		t.Errorf("%q", note)
	}
	want := []string{"meltdown (PTI): each entry and exit changes page tables",
		"spec_rstack_overflow (Safe RET, no microcode): each function in the kernel returns by a detour"}
	if got := Toll(note); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := Toll(""); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// A system call takes some time, on the processor that was named and on no other.
func TestSyscallNS(t *testing.T) {
	ns, err := SyscallNS(0)
	if err != nil || ns <= 0 {
		t.Errorf("%g ns, %v", ns, err)
	}
	if _, err := SyscallNS(1023); err == nil {
		t.Error("there is no processor 1023")
	}
}

func TestDescribe(t *testing.T) {
	m := system("amd64", guest()).Describe()
	if m.Name != "AMD EPYC" || m.OS != "Debian GNU/Linux 13" || m.Kernel != "6.18.44" || m.Virtual != "kvm" || m.CPUs != 2 || m.MemoryBytes != 16<<20 ||
		m.Counter != "tsc" || !m.CounterSteady || m.ClockSource != "tsc" || m.MitigationNote != "retbleed (untrained return thunk)" || m.Emulated {
		t.Errorf("%+v", m)
	}
	if len(m.Clusters) != 1 || m.Clusters[0].Name != "all" || m.Clusters[0].PinnedTo != 1 || m.Clusters[0].Model != "AMD EPYC" {
		t.Errorf("%+v", m.Clusters)
	}
	m = system("arm64", phone()).Describe()
	if m.Name != "Maker Phone 9" || m.OS != "Android 15" || m.Virtual != "" || m.CPUs != 7 || m.Counter != "cntvct" || !m.CounterSteady || m.Emulated {
		t.Errorf("%+v", m)
	}
	if m = system("amd64", nil).Describe(); m.CPUs != 1 || m.CounterSteady || m.Emulated || m.Virtual != "" {
		t.Errorf("of nothing: %+v", m)
	}
}

func TestClusters(t *testing.T) {
	check := func(what string, files map[string]string, want string) {
		t.Helper()
		got := ""
		for _, c := range system("arm64", files).Clusters() {
			got += fmt.Sprintf("%s %v %d %s pinned to %d; ", c.Name, c.CPUs, c.Capacity, c.Model, c.PinnedTo)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("capacity", phone(), "big [7] 1024 Cortex-X1 pinned to 7; middle [4 5] 743 Cortex-A78 pinned to 5; little [0 1 2 3] 325 Cortex-A55 pinned to 3; ")
	f := phone()
	maps.DeleteFunc(f, func(k, _ string) bool { return k == cpuDir+"/cpu2/cpu_capacity" })
	check("frequency", f, "big [7] 1024 Cortex-X1 pinned to 7; middle [4 5] 743 Cortex-A78 pinned to 5; little [0 1 2 3] 325 Cortex-A55 pinned to 3; ")
	delete(f, cpuDir+"/cpu0/cpufreq/cpuinfo_max_freq")
	check("neither", f, "all [0 1 2 3 4 5 7] 1024 Cortex-A55 pinned to 7; ")
	check("nothing", nil, "all [0] 1024  pinned to 0; ")
}

func TestEmulated(t *testing.T) {
	with := func(f map[string]string, changes map[string]string) map[string]string {
		f = maps.Clone(f)
		maps.Copy(f, changes)
		return f
	}
	for name, c := range map[string]struct {
		arch string
		f    map[string]string
		hz   uint64
		want bool
	}{
		"guest":                        {"amd64", guest(), 0, false},
		"phone":                        {"arm64", phone(), 19_200_000, false},
		"32 bits on a 64-bit phone":    {"arm", phone(), 0, false},
		"one program, newer kernel":    {"arm64", map[string]string{"proc/sys/kernel/arch": "x86_64\n"}, 0, true},
		"one program, x86's cpuinfo":   {"arm", map[string]string{"proc/cpuinfo": kvmInfo}, 0, true},
		"one program, init of the x86": {"arm64", map[string]string{"proc/1/exe": guest()["proc/1/exe"]}, 0, true},
		"a machine's timer":            {"arm64", with(phone(), map[string]string{"proc/device-tree/compatible": "linux,dummy-virt\x00"}), 62_500_000, true},
		"a real guest's timer":         {"arm64", with(phone(), map[string]string{"proc/device-tree/compatible": "linux,dummy-virt\x00"}), 25_000_000, false},
		"a machine's processor":        {"arm64", map[string]string{"proc/cpuinfo": "processor : 0\nCPU implementer : 0x00\n"}, 0, true},
		"x86 of TCG":                   {"amd64", with(guest(), map[string]string{"proc/cpuinfo": "model name : QEMU TCG CPU version 2.5+\n"}), 0, true},
	} {
		s := system(c.arch, c.f)
		s.CounterHz = c.hz
		if m := s.Describe(); m.Emulated != c.want || m.Emulated && m.Virtual == "" {
			t.Errorf("%s: emulated %v, virtual %q", name, m.Emulated, m.Virtual)
		}
	}
}

func TestWatch(t *testing.T) {
	f := phone()
	f["proc/stat"] = "cpu  1 2 3 4 5 6 7 99 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 12 9 10\n"
	f[cpuDir+"/cpu1/cpufreq/scaling_cur_freq"] = "900000\n"
	f[cpuDir+"/cpu1/cpufreq/scaling_max_freq"] = "900000\n"
	f["sys/class/thermal/thermal_zone0/type"], f["sys/class/thermal/thermal_zone0/temp"] = "cpu-0-0\n", "61500\n"
	f["sys/class/thermal/thermal_zone1/type"], f["sys/class/thermal/thermal_zone1/temp"] = "battery\n", "70000\n"
	f["sys/class/thermal/thermal_zone2/type"], f["sys/class/thermal/thermal_zone2/temp"] = "soc_max\n", "-273000\n"
	s := system("arm64", f)
	w := s.Watch()
	now := time.Unix(1, 0)
	w.now = func() time.Time { return now }
	if c := w.Read(1); c != (Condition{StolenNS: 120_000_000, KHz: 900000, Celsius: 61.5, Throttles: 10000}) {
		t.Errorf("%+v", c)
	}
	s.Root.(fstest.MapFS)["sys/class/thermal/thermal_zone0/temp"].Data = []byte("80000\n")
	if c := w.Read(1); c.Celsius != 61.5 {
		t.Errorf("zones are read all the time: %+v", c)
	}
	now = now.Add(time.Second)
	if c := w.Read(1); c.Celsius != 80 {
		t.Errorf("zones are not read again: %+v", c)
	}
	if c := system("amd64", nil).Watch().Read(0); c != (Condition{}) {
		t.Errorf("of nothing: %+v", c)
	}
}

func TestChoose(t *testing.T) {
	all := system("arm64", phone()).Clusters()
	for _, c := range []struct {
		wanted  []string
		without int
		want    string
	}{
		{nil, -1, "big 7; middle 5; little 3; "},
		{nil, 3, "big 7; middle 5; little 2; "},
		{nil, 7, "middle 5; little 3; "},
		{[]string{"little"}, -1, "little 3; "},
		{[]string{"1", "big"}, -1, "big 7; little 1; "},
		{[]string{"9"}, -1, "there is no processor \"9\" here, and no kind of that name"},
		{[]string{"huge"}, -1, "there is no processor \"huge\" here, and no kind of that name"},
		{[]string{"1", "2"}, -1, "processor 2 is of the kind \"little\", of which there is one already"},
		{[]string{"2"}, 2, "this process may not use processor 2"},
		{[]string{"big"}, 7, "this process may use no processor of \"big\""},
	} {
		got, err := choose(all, c.wanted, func(cpu int) bool { return cpu != c.without })
		text := ""
		for _, k := range got {
			text += fmt.Sprintf("%s %d; ", k.Name, k.PinnedTo)
		}
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%v without %d: %s, want %s", c.wanted, c.without, text, c.want)
		}
	}
}
