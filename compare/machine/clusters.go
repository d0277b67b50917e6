package machine

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"braid/compare/result"
)

// Clusters groups the processors that are online by cpu_capacity; where the kernel does not say it, by their highest frequency;
// else they are one. Clusters are sorted from the strongest to the weakest. PinnedTo is the last of each: interrupts and
// housekeeping tend to the first.
func (s *System) Clusters() []result.Cluster {
	online := s.online()
	kinds := s.kinds(online, func(cpu int) uint64 { return s.number(fmt.Sprintf("%s/cpu%d/cpu_capacity", cpuDir, cpu)) })
	if kinds == nil {
		kinds = s.kinds(online, func(cpu int) uint64 {
			return s.number(fmt.Sprintf("%s/cpu%d/cpufreq/cpuinfo_max_freq", cpuDir, cpu))
		})
		for i := range kinds { // shares of the fastest stand in for the capacity
			kinds[i].Capacity = int(uint64(kinds[i].Capacity) * 1024 / max(1, s.fastest(online)))
		}
	}
	if kinds == nil {
		kinds = []result.Cluster{{CPUs: online, Capacity: 1024}}
	}
	slices.SortFunc(kinds, func(a, b result.Cluster) int { return cmp.Compare(b.Capacity, a.Capacity) })
	for i := range kinds {
		k := &kinds[i]
		k.Name = clusterName(i, len(kinds))
		k.Model = s.model(k.CPUs[0])
		k.MaxKHz = s.number(fmt.Sprintf("%s/cpu%d/cpufreq/cpuinfo_max_freq", cpuDir, k.CPUs[0]))
		k.PinnedTo = k.CPUs[len(k.CPUs)-1]
	}
	return kinds
}

const cpuDir = "sys/devices/system/cpu"

func clusterName(i, n int) string {
	switch {
	case n == 1:
		return "all"
	case i == 0:
		return "big"
	case i == n-1:
		return "little"
	case n == 3:
		return "middle"
	}
	return "middle" + strconv.Itoa(i)
}

// kinds groups processors by a number, or returns nil if it is not known of all.
func (s *System) kinds(online []int, of func(int) uint64) []result.Cluster {
	groups := map[uint64][]int{}
	for _, cpu := range online {
		v := of(cpu)
		if v == 0 {
			return nil
		}
		groups[v] = append(groups[v], cpu)
	}
	var out []result.Cluster
	for _, v := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, result.Cluster{CPUs: groups[v], Capacity: int(v)})
	}
	return out
}

func (s *System) fastest(online []int) uint64 {
	var most uint64
	for _, cpu := range online {
		most = max(most, s.number(fmt.Sprintf("%s/cpu%d/cpufreq/cpuinfo_max_freq", cpuDir, cpu)))
	}
	return most
}

// online lists the processors that are online; processor 0 where nothing says it.
func (s *System) online() []int {
	if list, err := ParseCPUs(s.text(cpuDir + "/online")); err == nil && len(list) > 0 {
		return list
	}
	dirs, err := fs.Glob(s.Root, cpuDir+"/cpu[0-9]*")
	if err != nil || len(dirs) == 0 {
		return []int{0}
	}
	var out []int
	for _, d := range dirs {
		if n, err := strconv.Atoi(strings.TrimPrefix(path.Base(d), "cpu")); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// ParseCPUs reads a list as the kernel writes it: "0-3,6".
func ParseCPUs(list string) ([]int, error) {
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

// model names a processor: its name, or on Arm its maker's and part's numbers.
func (s *System) model(cpu int) string {
	for block := range strings.SplitSeq(s.text("proc/cpuinfo"), "\n\n") {
		if field(block, "processor") != strconv.Itoa(cpu) {
			continue
		}
		if n := field(block, "model name"); n != "" {
			return n
		}
		maker, part := field(block, "CPU implementer"), field(block, "CPU part")
		if maker == "" {
			return ""
		}
		if n := armParts[maker+" "+part]; n != "" {
			return n
		}
		return strings.TrimSpace("implementer " + maker + " part " + part)
	}
	return ""
}

// armParts names processors by MIDR_EL1's implementer and part number, from Linux' arch/arm64/include/asm/cputype.h.
var armParts = map[string]string{
	"0x41 0xd03": "Cortex-A53", "0x41 0xd04": "Cortex-A35", "0x41 0xd05": "Cortex-A55", "0x41 0xd07": "Cortex-A57",
	"0x41 0xd08": "Cortex-A72", "0x41 0xd09": "Cortex-A73", "0x41 0xd0a": "Cortex-A75", "0x41 0xd0b": "Cortex-A76",
	"0x41 0xd0c": "Neoverse-N1", "0x41 0xd0d": "Cortex-A77", "0x41 0xd40": "Neoverse-V1", "0x41 0xd41": "Cortex-A78",
	"0x41 0xd44": "Cortex-X1", "0x41 0xd46": "Cortex-A510", "0x41 0xd47": "Cortex-A710", "0x41 0xd48": "Cortex-X2",
	"0x41 0xd49": "Neoverse-N2", "0x41 0xd4d": "Cortex-A715", "0x41 0xd4e": "Cortex-X3", "0x41 0xd4f": "Neoverse-V2",
	"0x41 0xd80": "Cortex-A520", "0x41 0xd81": "Cortex-A720", "0x41 0xd82": "Cortex-X4", "0x41 0xd85": "Cortex-X925",
	"0x41 0xd87": "Cortex-A725",
}
