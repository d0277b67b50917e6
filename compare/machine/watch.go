package machine

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Condition is what may disturb a measurement, at one moment.
type Condition struct {
	StolenNS  int64   // that the hypervisor took from the processor since boot, in steps of 10 ms
	KHz       uint64  // the processor's frequency; 0 where the kernel does not say it
	Celsius   float64 // of the hottest part of the processor; 0 where it can't be read
	Throttles uint64  // how often the processor slowed down because of heat, and how far it is capped now
}

// Watcher reads conditions. It is for one goroutine.
type Watcher struct {
	s        *System
	hot      []string // files with temperatures
	looked   time.Time
	celsius  float64
	throttle uint64
	now      func() time.Time
}

// Watch makes a watcher.
func (s *System) Watch() *Watcher {
	w := &Watcher{s: s, now: time.Now}
	zones, _ := fs.Glob(s.Root, "sys/class/thermal/thermal_zone*/type") // the pattern is right, so there is no error
	for _, z := range zones {
		kind := strings.ToLower(s.text(z))
		for _, sign := range []string{"cpu", "x86_pkg", "soc", "cluster", "tsens", "big", "little", "mid"} {
			if strings.Contains(kind, sign) {
				w.hot = append(w.hot, strings.TrimSuffix(z, "type")+"temp")
				break
			}
		}
	}
	return w
}

// slowly is how often what changes slowly is read: reading a phone's many zones may take milliseconds.
const slowly = 500 * time.Millisecond

// Read returns the condition of a processor. What can't be read is 0.
func (w *Watcher) Read(cpu int) Condition {
	if now := w.now(); w.looked.IsZero() || now.Sub(w.looked) >= slowly {
		w.looked = now
		w.celsius, w.throttle = w.temperature(), w.throttles(cpu)
	}
	return Condition{
		StolenNS:  w.s.stolen(cpu),
		KHz:       w.s.number(fmt.Sprintf("%s/cpu%d/cpufreq/scaling_cur_freq", cpuDir, cpu)),
		Celsius:   w.celsius,
		Throttles: w.throttle,
	}
}

// stolen reads /proc/stat, which counts in 100ths of a second (USER_HZ is 100 on every Linux that Go runs on).
func (s *System) stolen(cpu int) int64 {
	want := "cpu" + strconv.Itoa(cpu)
	for line := range strings.Lines(s.text("proc/stat")) {
		f := strings.Fields(line)
		if len(f) < 9 || f[0] != want {
			continue
		}
		n, err := strconv.ParseInt(f[8], 10, 48)
		if err != nil {
			return 0
		}
		return n * 10_000_000
	}
	return 0
}

func (w *Watcher) temperature() float64 {
	most := 0.0
	for _, f := range w.hot {
		milli, err := strconv.ParseInt(strings.TrimSpace(w.s.text(f)), 10, 32)
		if c := float64(milli) / 1000; err == nil && c > most && c < 200 {
			most = c
		}
	}
	return most
}

// throttles grows, or changes, when heat slows the processor down.
func (w *Watcher) throttles(cpu int) uint64 {
	dir := fmt.Sprintf("%s/cpu%d/", cpuDir, cpu)
	n := w.s.number(dir+"thermal_throttle/core_throttle_count") + w.s.number(dir+"thermal_throttle/package_throttle_count")
	most, now := w.s.number(dir+"cpufreq/cpuinfo_max_freq"), w.s.number(dir+"cpufreq/scaling_max_freq")
	if now > 0 && now < most {
		n += most - now
	}
	return n
}
