package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

func clockSource(s *System) Check {
	lost := "accuracy: clock reads are slow, and the counter may not be what the kernel trusts"
	name, err := s.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return unknown(err, lost)
	}
	switch {
	case s.Arch == "amd64" && (name == "tsc" || name == "kvm-clock" || name == "hyperv_clocksource_tsc_page"):
		return Check{Status: OK, Found: name}
	case s.Arch != "amd64" && strings.HasPrefix(name, "arch_sys_counter"):
		return Check{Status: OK, Found: name}
	}
	return Check{Status: Warn, Found: name, Lost: lost,
		Do: "see why with: dmesg | grep -i -e tsc -e clocksource; the report shows the clock's residual error"}
}

// processorCounter checks the counter that records carry: constant rate, not stopping in idle states.
func processorCounter(s *System) Check {
	if s.Arch != "amd64" {
		// The generic timer's frequency is fixed by the architecture (CNTFRQ_EL0).
		return Check{Status: OK, Found: "generic timer (cntvct), constant by definition, frequency from cntfrq"}
	}
	lost := "correct times: the counter changes its rate with the processor's"
	text, err := s.text("/proc/cpuinfo")
	if err != nil {
		return unknown(err, lost)
	}
	var flags []string
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			flags = strings.Fields(value)
			break
		}
	}
	var missing []string
	for _, f := range []string{"constant_tsc", "nonstop_tsc"} {
		if !slices.Contains(flags, f) {
			missing = append(missing, f)
		}
	}
	source := "frequency measured"
	if slices.Contains(flags, "tsc_known_freq") {
		source = "frequency known to the kernel; braid measures it"
	}
	if len(missing) > 0 {
		return Check{Status: Warn, Found: "TSC without " + strings.Join(missing, ", "), Lost: lost,
			Do: "use another machine, or a virtual machine with an invariant TSC; the report shows the clock's residual error"}
	}
	return Check{Status: OK, Found: "invariant TSC, " + source}
}

// ringMemory checks that two full rings fit into memory.
func ringMemory(s *System) Check {
	const want = 128 << 20 // two rings of 32 MiB, their copies on the way out
	lost := "full rings: a program whose ring cannot be backed by memory is killed by the kernel"
	text, err := s.text("/proc/meminfo")
	if err != nil {
		return unknown(err, lost)
	}
	var free uint64
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err != nil {
				return unknown(err, lost)
			}
			free = kb << 10
		}
	}
	found := fmt.Sprintf("%d MiB available", free>>20)
	if s.Free != nil && s.exists("/dev/shm") {
		if n, err := s.Free("/dev/shm"); err == nil {
			found += fmt.Sprintf(", %d MiB free in /dev/shm", n>>20)
		}
	}
	if free < want {
		return Check{Status: Warn, Found: found, Lost: lost, Do: "record with smaller rings: --ring 4M"}
	}
	return Check{Status: OK, Found: found}
}

// processors lists clusters by cpu_capacity, where the kernel knows different ones (big.LITTLE).
func processors(s *System) Check {
	lost := "nothing; the report cannot tell big cores from little ones"
	dirs, err := fs.Glob(s.Root, "sys/devices/system/cpu/cpu[0-9]*")
	if err != nil || len(dirs) == 0 {
		return Check{Status: Unknown, Found: "/sys/devices/system/cpu lists none", Lost: lost}
	}
	count := make(map[int]int)
	for _, dir := range dirs {
		capacity := 1024 // SCHED_CAPACITY_SCALE
		if text, err := s.text(dir + "/cpu_capacity"); err == nil {
			if n, err := strconv.Atoi(text); err == nil {
				capacity = n
			}
		}
		count[capacity]++
	}
	if len(count) == 1 {
		return Check{Status: OK, Found: fmt.Sprintf("%d, all alike", len(dirs))}
	}
	var kinds []int
	for c := range count {
		kinds = append(kinds, c)
	}
	slices.Sort(kinds)
	var parts []string
	for _, c := range kinds {
		parts = append(parts, fmt.Sprintf("%d of capacity %d", count[c], c))
	}
	return Check{Status: OK, Found: fmt.Sprintf("%d: %s", len(dirs), strings.Join(parts, ", "))}
}

func targets(s *System) Check {
	do := "build a program with: braid cc gcc ..."
	if s.Traced == nil {
		return Check{Status: Unknown, Found: "not looked for", Lost: "a list of programs for -p", Do: do}
	}
	found, err := s.Traced()
	switch {
	case err != nil:
		return Check{Status: Unknown, Found: oneLine(err), Lost: "a list of programs for -p", Do: do}
	case len(found) == 0:
		return Check{Status: OK, Found: "none is running; " + do}
	}
	const most = 5
	text := strings.Join(found[:min(len(found), most)], "; ")
	if len(found) > most {
		text += fmt.Sprintf("; and %d more", len(found)-most)
	}
	return Check{Status: OK, Found: text}
}
