package timeline

import "braid/internal/cpus"

// MaxClusters is how many clusters are told apart. Weaker ones than that count to the last.
const MaxClusters = 4

// Machine is what a trace says of the processors that it was recorded on. It does not change.
type Machine struct {
	CPUs []cpus.CPU
	// Clusters are the kinds of processor, strongest first; one, if all are alike or nothing is known. A processor's
	// rank is its cluster's index.
	Clusters []cpus.Cluster

	rank     map[uint16]uint8
	stronger [MaxClusters]uint64 // by rank: a bit for each of the first 64 CPUs
}

// NewMachine describes the processors of a trace; none are a machine of which nothing is known.
func NewMachine(all []cpus.CPU) *Machine {
	m := &Machine{CPUs: all, Clusters: cpus.Clusters(all), rank: make(map[uint16]uint8)}
	for i, k := range m.Clusters {
		r := min(i, MaxClusters-1)
		for _, cpu := range k.CPUs {
			m.rank[uint16(cpu)] = uint8(r)
			for weaker := r + 1; weaker < MaxClusters && cpu < 64; weaker++ {
				m.stronger[weaker] |= 1 << cpu
			}
		}
	}
	return m
}

// Clustered says whether some processors are stronger than others.
func (m *Machine) Clustered() bool { return len(m.Clusters) > 1 }

// Ranks is how many ranks there are.
func (m *Machine) Ranks() int { return min(len(m.Clusters), MaxClusters) }

// Name is the name of a rank's cluster.
func (m *Machine) Name(rank int) string { return m.Clusters[rank].Name }

// Rank is a processor's rank; of one that is not known, the strongest's, so that nothing is held against it.
func (m *Machine) Rank(cpu uint16) int { return int(m.rank[cpu]) }
