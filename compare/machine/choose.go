package machine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"braid/compare/result"

	"golang.org/x/sys/unix"
)

// Choose returns the clusters to measure on, pinned to processors that this process may use. wanted are numbers of processors, or
// names of clusters; nothing means all clusters.
func Choose(all []result.Cluster, wanted []string) ([]result.Cluster, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("reading which processors may be used: %w", err)
	}
	return choose(all, wanted, allowed.IsSet)
}

func choose(all []result.Cluster, wanted []string, allowed func(cpu int) bool) ([]result.Cluster, error) {
	var out []result.Cluster
	for _, c := range all {
		usable := slices.DeleteFunc(slices.Clone(c.CPUs), func(cpu int) bool { return !allowed(cpu) })
		if len(wanted) == 0 || slices.Contains(wanted, c.Name) {
			if len(usable) > 0 {
				c.PinnedTo = usable[len(usable)-1]
				out = append(out, c)
			} else if len(wanted) > 0 {
				return nil, fmt.Errorf("this process may use no processor of %q", c.Name)
			}
		}
	}
	if len(wanted) == 0 {
		if len(out) == 0 {
			return nil, errors.New("this process may use no processor that is online")
		}
		return out, nil
	}
	for _, w := range wanted {
		if slices.ContainsFunc(all, func(c result.Cluster) bool { return c.Name == w }) {
			continue
		}
		cpu, err := strconv.Atoi(w)
		i := slices.IndexFunc(all, func(c result.Cluster) bool { return err == nil && slices.Contains(c.CPUs, cpu) })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no processor %q here, and no kind of that name", w)
		case !allowed(cpu):
			return nil, fmt.Errorf("this process may not use processor %d", cpu)
		case slices.ContainsFunc(out, func(c result.Cluster) bool { return c.Name == all[i].Name }):
			return nil, fmt.Errorf("processor %d is of the kind %q, of which there is one already", cpu, all[i].Name)
		}
		c := all[i]
		c.PinnedTo = cpu
		out = append(out, c)
	}
	return out, nil
}

// HasPMU says whether this user can count the processor's events.
func HasPMU() bool {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CACHE_MISSES, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
