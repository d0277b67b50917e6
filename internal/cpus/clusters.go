package cpus

import (
	"cmp"
	"slices"
	"strconv"
)

// Cluster is a group of processors that are equally strong.
type Cluster struct {
	Name     string // "all" if there is one, else "big", "little", and between them "middle", or "middle1" and on
	CPUs     []int  // in ascending order
	Capacity int    // of the strongest in it, of FullCapacity
}

// alike is how far capacities of one cluster may be apart: one in this many. The cores of a desktop processor that may
// run some percent faster than the others are no cluster of their own.
const alike = 20

// Clusters groups processors by their capacity, strongest first. Where capacities are unknown, all are one cluster of
// FullCapacity; a processor of unknown capacity among others is left out.
func Clusters(all []CPU) []Cluster {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b CPU) int { return cmp.Or(cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.ID, b.ID)) })
	if len(order) > 0 && order[0].Capacity == 0 {
		for i := range order {
			order[i].Capacity = FullCapacity
		}
	}
	var out []Cluster
	last := 0
	for _, c := range order {
		if c.Capacity == 0 {
			continue
		}
		if len(out) == 0 || last-c.Capacity > last/alike {
			out = append(out, Cluster{Capacity: c.Capacity})
		}
		last = c.Capacity
		k := &out[len(out)-1]
		k.CPUs = append(k.CPUs, c.ID)
	}
	for i := range out {
		slices.Sort(out[i].CPUs)
		out[i].Name = clusterName(i, len(out))
	}
	return out
}

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

// name fills in the cluster of each processor.
func name(all []CPU) {
	for _, k := range Clusters(all) {
		for i := range all {
			if slices.Contains(k.CPUs, all[i].ID) {
				all[i].Cluster = k.Name
			}
		}
	}
}

// Online are the processors that are online.
func Online(all []CPU) []CPU {
	return slices.DeleteFunc(slices.Clone(all), func(c CPU) bool { return !c.Online })
}
