// Package cpus describes the machine's processors: which there are, how strong each one is, how fast it runs, and which
// clusters they form (big.LITTLE).
//
// Everything is read from /proc and /sys below a root that tests replace. What can't be read is left empty: it is no
// error, as phones hide much of it. Sources: Documentation/ABI/testing/sysfs-devices-system-cpu and
// drivers/base/arch_topology.c, Linux 6.12.
package cpus

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Dir is where the kernel lists its processors, below the root.
const Dir = "sys/devices/system/cpu"

// FullCapacity is the capacity of the strongest processor: SCHED_CAPACITY_SCALE.
const FullCapacity = 1024

// CPU is one processor, as it was when it was read. Its JSON form is part of the trace file.
type CPU struct {
	ID     int  `json:"cpu"`
	Online bool `json:"online,omitempty"`
	// Capacity is what it can do in a time, of FullCapacity for the strongest: cpu_capacity, or where Estimated is set
	// its share of the highest frequency. 0: unknown.
	Capacity  int    `json:"capacity,omitempty"`
	Estimated bool   `json:"estimated,omitempty"`
	Cluster   string `json:"cluster,omitempty"` // the name of its Cluster; "" if its capacity is unknown
	Model     string `json:"model,omitempty"`
	MinKHz    uint64 `json:"min_khz,omitempty"` // of the hardware: cpuinfo_min_freq
	MaxKHz    uint64 `json:"max_khz,omitempty"` // cpuinfo_max_freq
	KHz       uint64 `json:"khz,omitempty"`     // now: scaling_cur_freq
	// Siblings are the processors of the same core, itself included, in ascending order; nil if it has the core alone.
	Siblings []int `json:"siblings,omitempty"`
}

// Read describes all processors that are present, in the order of their numbers; at least one.
func Read(root fs.FS) []CPU {
	f := files{root}
	all := f.present()
	online := f.online(all)
	names := models(f.text("proc/cpuinfo"))
	out := make([]CPU, 0, len(all))
	for _, id := range all {
		dir := fmt.Sprintf("%s/cpu%d/", Dir, id)
		c := CPU{
			ID: id, Online: slices.Contains(online, id), Capacity: int(min(f.number(dir+"cpu_capacity"), 1<<20)), Model: names[id],
			MinKHz: f.number(dir + "cpufreq/cpuinfo_min_freq"), MaxKHz: f.number(dir + "cpufreq/cpuinfo_max_freq"),
			KHz: f.number(dir + "cpufreq/scaling_cur_freq"),
		}
		if s, err := Parse(f.text(dir + "topology/thread_siblings_list")); err == nil && len(s) > 1 {
			c.Siblings = s
		}
		out = append(out, c)
	}
	estimate(out)
	name(out)
	return out
}

// estimate takes shares of the highest frequency for capacities, if the kernel does not tell the capacity of every
// processor that is online. Without frequencies all capacities stay unknown.
func estimate(all []CPU) {
	told, known, most := true, true, uint64(0)
	for i := range all {
		if all[i].Online {
			told = told && all[i].Capacity != 0
			known = known && all[i].MaxKHz != 0
		}
		most = max(most, all[i].MaxKHz)
	}
	if told {
		return
	}
	for i := range all {
		c := &all[i]
		c.Capacity, c.Estimated = 0, false
		if known && c.MaxKHz != 0 {
			c.Capacity, c.Estimated = int(c.MaxKHz*FullCapacity/most), true
		}
	}
}

// files reads small files below a root.
type files struct{ root fs.FS }

func (f files) text(name string) string {
	b, err := fs.ReadFile(f.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (f files) number(name string) uint64 {
	n, err := strconv.ParseUint(f.text(name), 10, 48)
	if err != nil {
		return 0
	}
	return n
}

// present lists the processors with a directory; those that are online, or number 0, where there is none.
func (f files) present() []int {
	dirs, err := fs.Glob(f.root, Dir+"/cpu[0-9]*")
	var out []int
	if err == nil {
		for _, d := range dirs {
			if n, err := strconv.Atoi(strings.TrimPrefix(path.Base(d), "cpu")); err == nil {
				out = append(out, n)
			}
		}
	}
	if len(out) == 0 {
		if out, err = Parse(f.text(Dir + "/online")); err != nil {
			return []int{0}
		}
	}
	slices.Sort(out)
	return out
}

// online lists the processors that are online; all, where nothing says it.
func (f files) online(all []int) []int {
	if list, err := Parse(f.text(Dir + "/online")); err == nil {
		return list
	}
	return all
}

// Parse reads a list as the kernel writes it: "0-3,6". It is sorted, without duplicates, and not empty.
func Parse(list string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(low)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(high)
		}
		if err != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("%q is no list of processors, like 0-3,6", list)
		}
		for cpu := a; cpu <= b; cpu++ {
			out = append(out, cpu)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Format writes a list as the kernel does.
func Format(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}
