package machine

import (
	"slices"

	"braid/compare/result"
	"braid/internal/cpus"
)

const cpuDir = cpus.Dir

var field = cpus.Field

// Clusters groups the processors that are online by their capacity, sorted from the strongest to the weakest; where the
// kernel does not say it, by their highest frequency; else they are one. PinnedTo is the last of each: interrupts and
// housekeeping tend to the first.
func (s *System) Clusters() []result.Cluster {
	online := cpus.Online(cpus.Read(s.Root))
	var out []result.Cluster
	for _, k := range cpus.Clusters(online) {
		first := online[slices.IndexFunc(online, func(c cpus.CPU) bool { return c.ID == k.CPUs[0] })]
		out = append(out, result.Cluster{Name: k.Name, CPUs: k.CPUs, Capacity: k.Capacity, Model: first.Model, MaxKHz: first.MaxKHz,
			PinnedTo: k.CPUs[len(k.CPUs)-1]})
	}
	return out
}
