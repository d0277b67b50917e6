package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"braid/internal/cpus"
)

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

// processors lists clusters, where some processors are stronger than others (big.LITTLE).
func processors(s *System) Check {
	all := cpus.Read(s.Root)
	if !s.exists(cpus.Dir) {
		return Check{Status: Unknown, Found: "/" + cpus.Dir + " does not exist", Lost: "telling big cores from little ones"}
	}
	off := ""
	if n := len(all) - len(cpus.Online(all)); n > 0 {
		off = fmt.Sprintf(", %d of them off", n)
	}
	var parts []string
	for _, k := range cpus.Clusters(all) {
		part := fmt.Sprintf("%s %s (%d of 1024", k.Name, cpus.Format(k.CPUs), k.Capacity)
		for _, c := range all {
			if c.ID != k.CPUs[0] {
				continue
			}
			if c.Model != "" {
				part += ", " + c.Model
			}
			if c.Estimated {
				part += ", by frequency"
			}
		}
		parts = append(parts, part+")")
	}
	if len(parts) < 2 {
		return Check{Status: OK, Found: fmt.Sprintf("%d%s, all alike", len(all), off)}
	}
	return Check{Status: OK, Found: fmt.Sprintf("%d%s: %s", len(all), off, strings.Join(parts, ", "))}
}

// frequencies says whether the kernel tells how fast processors run, which it does where it sets that itself.
func frequencies(s *System) Check {
	for _, c := range cpus.Read(s.Root) {
		if c.KHz == 0 {
			continue
		}
		found := fmt.Sprintf("told: processor %d runs at %d MHz", c.ID, c.KHz/1000)
		if c.MinKHz != 0 && c.MaxKHz != 0 {
			found += fmt.Sprintf(", of %d to %d", c.MinKHz/1000, c.MaxKHz/1000)
		}
		return Check{Status: OK, Found: found}
	}
	return Check{Status: Warn, Found: "not told (no cpufreq), as is usual in virtual machines", Lost: "the frequency at which threads ran",
		Do: "nothing in a virtual machine; else a kernel with CONFIG_CPU_FREQ=y and the processor's driver"}
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
