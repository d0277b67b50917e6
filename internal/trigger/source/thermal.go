package source

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"braid/internal/counter"
	"braid/internal/trigger"
)

// Levels watches conditions of kinds Thermal and CPUFrequency: it looks at zones and caps once in every, and reports for
// each condition the hottest zone, or the processor with the lowest cap. A condition for which the system has nothing
// to read is never reported; Missing tells.
func Levels(ctx context.Context, root Root, conditions []*trigger.Condition, every time.Duration, report func(trigger.Observation)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		now, err := counter.Boottime()
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if subject, value, ok := level(root, c); ok {
				report(trigger.Observation{Time: now, Kind: c.Kind, Condition: c.ID, Subject: subject, Value: value})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Missing returns those conditions for which the system has nothing to read.
func Missing(root Root, conditions []*trigger.Condition) (none []*trigger.Condition) {
	for _, c := range conditions {
		if _, _, ok := level(root, c); !ok {
			none = append(none, c)
		}
	}
	return none
}

func level(root Root, c *trigger.Condition) (subject string, value float64, ok bool) {
	if c.Kind == trigger.Thermal {
		return hottest(root, c.Zone)
	}
	return lowest(root)
}

// hottest finds the zone with the highest temperature, in °C, among those whose type or name fits a pattern.
func hottest(root Root, pattern string) (zone string, celsius float64, ok bool) {
	zones, err := filepath.Glob(root.path("sys/class/thermal/thermal_zone*"))
	if err != nil {
		return "", 0, false
	}
	for _, dir := range zones {
		kind := text(filepath.Join(dir, "type"))
		if !trigger.Match(pattern, kind) && !trigger.Match(pattern, filepath.Base(dir)) {
			continue
		}
		milli, err := strconv.ParseInt(text(filepath.Join(dir, "temp")), 10, 32)
		if err != nil {
			continue // a sensor that is asleep
		}
		if t := float64(milli) / 1000; !ok || t > celsius {
			zone, celsius, ok = kind, t, true
		}
	}
	return zone, celsius, ok
}

// lowest finds the processor that may run at the smallest part of its highest frequency, in percent.
func lowest(root Root) (cpu string, percent float64, ok bool) {
	dirs, err := filepath.Glob(root.path("sys/devices/system/cpu/cpu[0-9]*/cpufreq"))
	if err != nil {
		return "", 0, false
	}
	for _, dir := range dirs {
		limit, err1 := strconv.ParseUint(text(filepath.Join(dir, "scaling_max_freq")), 10, 40)
		highest, err2 := strconv.ParseUint(text(filepath.Join(dir, "cpuinfo_max_freq")), 10, 40)
		if err1 != nil || err2 != nil || highest == 0 {
			continue
		}
		if p := 100 * float64(limit) / float64(highest); !ok || p < percent {
			cpu, percent, ok = filepath.Base(filepath.Dir(dir)), p, true
		}
	}
	return cpu, percent, ok
}

func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
