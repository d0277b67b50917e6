package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"braid/internal/cpus"
)

// Clocks are three readings of the same moment.
type Clocks struct {
	Counter         uint64 // the processor's, ticks
	Monotonic, Boot time.Duration
}

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

// slowTick is the longest tick at which records still tell most calls apart.
const slowTick = 200 * time.Nanosecond

// processorCounter checks the counter that records carry: constant rate, not stopping in idle states, fine enough.
func processorCounter(s *System) Check {
	tick := ""
	if s.CounterHz > 0 {
		tick = fmt.Sprintf(" at %.3f MHz: a tick, the finest time that a record can tell, is %.3g ns", float64(s.CounterHz)/1e6, 1e9/float64(s.CounterHz))
	}
	if s.Arch != "amd64" {
		// The generic timer's rate is fixed by the architecture; its frequency is CNTFRQ_EL0, which the firmware sets.
		c := Check{Status: OK, Found: "generic timer (cntvct), constant by definition" + tick}
		switch {
		case s.CounterHz == 0:
			c.Status, c.Found, c.Lost = Warn, c.Found+"; cntfrq is 0", "the frequency, if a recording is shorter than a second"
			c.Do = "record for longer: braid then measures it"
		case time.Second/time.Duration(s.CounterHz) > slowTick:
			c.Status, c.Lost, c.Do = Warn, "the time of short calls: many take less than a tick", "nothing; sums over many calls are right all the same"
		}
		return c
	}
	lost := "correct times: the counter changes its rate with the processor's"
	text, err := s.text("/proc/cpuinfo")
	if err != nil {
		return unknown(err, lost)
	}
	flags := strings.Fields(cpus.Field(text, "flags"))
	var missing []string
	for _, f := range []string{"constant_tsc", "nonstop_tsc"} {
		if !slices.Contains(flags, f) {
			missing = append(missing, f)
		}
	}
	source := ", measured"
	if slices.Contains(flags, "tsc_known_freq") {
		source = ", known to the kernel and measured"
	}
	if len(missing) > 0 {
		return Check{Status: Warn, Found: "TSC without " + strings.Join(missing, ", "), Lost: lost,
			Do: "use another machine, or a virtual machine with an invariant TSC; the report shows the clock's residual error"}
	}
	return Check{Status: OK, Found: "invariant TSC" + tick + source}
}

// suspend says whether the counter goes on while the machine is suspended, as CLOCK_BOOTTIME does.
func suspend(s *System) Check {
	lost := "the place in time of records just before and after the machine was suspended"
	do := "keep the machine awake while recording: a wake lock, or systemd-inhibit"
	var slept time.Duration
	found := "the machine was not suspended since it started"
	var now Clocks
	if s.Clocks != nil {
		var err error
		if now, err = s.Clocks(); err != nil {
			return unknown(err, lost)
		}
		if slept = now.Boot - now.Monotonic; slept >= time.Second {
			found = fmt.Sprintf("suspended for %s since it started", slept.Round(time.Second))
		}
	}
	states, err := s.text("/sys/power/state")
	if err != nil || !slices.Contains(strings.Fields(states), "mem") && !slices.Contains(strings.Fields(states), "freeze") {
		return Check{Status: OK, Found: "this machine is not suspended (no mem or freeze in /sys/power/state)"}
	}
	if s.Arch == "amd64" {
		info, err := s.text("/proc/cpuinfo")
		if err != nil {
			return unknown(err, lost)
		}
		mode, _ := s.text("/sys/power/mem_sleep")
		deep := strings.Contains(mode, "[deep]") || mode == "" && slices.Contains(strings.Fields(states), "mem")
		if deep && !slices.Contains(strings.Fields(cpus.Field(info, "flags")), "nonstop_tsc_s3") {
			return Check{Status: Warn, Found: "the TSC begins anew when the machine wakes up (suspend to memory); " + found, Lost: lost, Do: do}
		}
		return Check{Status: OK, Found: "the TSC goes on while suspended; " + found}
	}
	// Documentation/devicetree/bindings/timer/arm,arch_timer.yaml.
	if s.exists("/proc/device-tree/timer/arm,no-tick-in-suspend") {
		return Check{Status: Warn, Found: "the generic timer stops while suspended (arm,no-tick-in-suspend); " + found, Lost: lost, Do: do}
	}
	// The counter began when the machine was switched on, so it tells which of the clocks it went with.
	if slept >= time.Minute && s.CounterHz > 0 {
		byCounter := time.Duration(float64(now.Counter) / float64(s.CounterHz) * 1e9)
		if byCounter < now.Boot-slept/2 {
			return Check{Status: Warn, Found: "the generic timer stood still; " + found, Lost: lost, Do: do}
		}
		return Check{Status: OK, Found: "the generic timer went on; " + found}
	}
	return Check{Status: OK, Found: "the generic timer goes on while suspended, as the device tree says nothing else; " + found}
}
