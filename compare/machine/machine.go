// Package machine describes the machine that a study runs on, and watches it while it does: frequency, temperature, time that
// a hypervisor took.
//
// Everything is read from /proc and /sys below a root that tests replace. What can't be read is left empty: it is no error, as
// phones hide much of it.
package machine

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"braid/compare/result"
)

// System is where facts are read from.
type System struct {
	Root      fs.FS  // of /
	Arch      string // Go's name of what braid was built for
	CounterHz uint64 // as the processor states it, or 0
}

// Local is this machine.
func Local(arch string, counterHz uint64) *System {
	return &System{Root: os.DirFS("/"), Arch: arch, CounterHz: counterHz}
}

// text reads a small file without its last line end; "" if it can't be read.
func (s *System) text(name string) string {
	b, err := fs.ReadFile(s.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\n\x00")
}

func (s *System) number(name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(s.text(name)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Describe says what the machine is. Root and PMU are for the caller to fill in: they are about what the user may do.
func (s *System) Describe() result.Machine {
	info := s.text("proc/cpuinfo")
	m := result.Machine{
		Name:        s.name(info),
		Arch:        s.Arch,
		OS:          s.os(),
		Kernel:      s.text("proc/sys/kernel/osrelease"),
		Virtual:     s.virtual(info),
		MemoryBytes: s.memory(),
		CounterHz:   s.CounterHz,
		ClockSource: s.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Clusters:    s.Clusters(),
	}
	m.Emulated = s.emulated(info)
	if m.Emulated && m.Virtual == "" {
		m.Virtual = "qemu"
	}
	m.Counter, m.CounterSteady = s.counter(info)
	for _, c := range m.Clusters {
		m.CPUs += len(c.CPUs)
	}
	m.MitigationNote = s.mitigations()
	return m
}

func (s *System) name(info string) string {
	for _, n := range []string{
		strings.TrimSpace(s.text("sys/devices/virtual/dmi/id/sys_vendor") + " " + s.text("sys/devices/virtual/dmi/id/product_name")),
		s.text("proc/device-tree/model"),
		s.property("ro.product.manufacturer") + " " + s.property("ro.product.model"),
		field(info, "Hardware"),
		field(info, "model name"),
	} {
		if n = strings.TrimSpace(n); n != "" {
			return n
		}
	}
	return ""
}

// property reads a property of Android from the files that hold the vendor's.
func (s *System) property(name string) string {
	for _, f := range []string{"vendor/build.prop", "system/build.prop", "product/etc/build.prop"} {
		for line := range strings.Lines(s.text(f)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == name {
				return v
			}
		}
	}
	return ""
}

func (s *System) os() string {
	for line := range strings.Lines(s.text("etc/os-release")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"`)
		}
	}
	if v := s.property("ro.build.version.release"); v != "" {
		return "Android " + v
	}
	return "Linux"
}

func (s *System) memory() uint64 {
	kib, err := strconv.ParseUint(strings.TrimSuffix(field(s.text("proc/meminfo"), "MemTotal"), " kB"), 10, 54)
	if err != nil {
		return 0
	}
	return kib << 10
}

// counter names the counter that records carry, and says whether it runs at a constant rate, in idle too.
func (s *System) counter(info string) (name string, steady bool) {
	if s.Arch != "amd64" {
		return "cntvct", true // the generic timer's rate is fixed by the architecture
	}
	flags := strings.Fields(field(info, "flags"))
	return "tsc", slices.Contains(flags, "constant_tsc") && slices.Contains(flags, "nonstop_tsc")
}
