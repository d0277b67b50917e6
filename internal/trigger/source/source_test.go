package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"braid/internal/trigger"
)

func write(t *testing.T, root, path, content string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLevels(t *testing.T) {
	root := t.TempDir()
	for i, z := range []string{"cpu-0 41000", "cpu-1 52500", "battery 99000"} {
		var kind, temp string
		fmt.Sscan(z, &kind, &temp)
		write(t, root, fmt.Sprintf("sys/class/thermal/thermal_zone%d/type", i), kind+"\n")
		write(t, root, fmt.Sprintf("sys/class/thermal/thermal_zone%d/temp", i), temp+"\n")
	}
	write(t, root, "sys/class/thermal/thermal_zone3/type", "cpu-asleep\n")
	for i, limit := range []string{"2000000", "1500000"} {
		write(t, root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_max_freq", i), limit+"\n")
		write(t, root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", i), "2000000\n")
	}
	hot := &trigger.Condition{ID: 1, Kind: trigger.Thermal, Zone: "cpu*"}
	slow := &trigger.Condition{ID: 2, Kind: trigger.CPUFrequency}
	none := &trigger.Condition{ID: 3, Kind: trigger.Thermal, Zone: "gpu"}
	all := []*trigger.Condition{hot, slow, none}
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	err := Levels(ctx, Root(root), all, time.Hour, func(o trigger.Observation) {
		got = append(got, fmt.Sprint(o.Condition, o.Subject, o.Value, o.Time > 0))
		if len(got) == 2 {
			cancel()
		}
	})
	if want := "[1cpu-152.5 true 2cpu175 true]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("reported %v (%v), want %s", got, err, want)
	}
	if m := Missing(Root(root), all); len(m) != 1 || m[0] != none {
		t.Errorf("missing %v, want the gpu's zone", m)
	}
}

// TestPressureOfFiles has no kernel that could tell: totals are compared.
func TestPressureOfFiles(t *testing.T) {
	root := t.TempDir()
	line := func(us int) {
		write(t, root, "proc/pressure/io", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", us))
	}
	line(1000)
	c := &trigger.Condition{ID: 5, Kind: trigger.Pressure, Resource: "io", Stall: 50 * time.Millisecond, Window: 100 * time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	total, seen := 1000, 0
	go func() {
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			total += 60000
			f, err := os.OpenFile(filepath.Join(root, "proc/pressure/io"), os.O_WRONLY, 0)
			if err == nil {
				fmt.Fprintf(f, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", total)
				f.Close()
			}
		}
	}()
	err := Pressure(ctx, Root(root), c, func(o trigger.Observation) {
		if seen++; o.Value < 50e6 || o.Condition != 5 || o.Subject != "io" {
			t.Errorf("observation %+v", o)
		}
		cancel()
	})
	if err != nil || seen == 0 {
		t.Errorf("%d observations, %v", seen, err)
	}
	if err := Pressure(t.Context(), Root(t.TempDir()), c, nil); !errors.Is(err, ErrNoPressure) {
		t.Errorf("without the file: %v", err)
	}
}

// TestPressureOfKernel uses more processors than there are until the kernel says so.
func TestPressureOfKernel(t *testing.T) {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		t.Fatal(err)
	}
	c := &trigger.Condition{ID: 6, Kind: trigger.Pressure, Resource: "cpu", Stall: 5 * time.Millisecond, Window: 500 * time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 64 {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(10 * time.Microsecond)
			}
		}()
	}
	for range 8 {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
	seen := 0
	err := Pressure(ctx, "", c, func(trigger.Observation) { seen++; cancel() })
	if err != nil || seen == 0 {
		t.Errorf("%d observations, %v", seen, err)
	}
}
