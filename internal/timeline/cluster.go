package timeline

// Place says where, and how well placed, a thread ran or waited for a time.
type Place struct {
	Start, End int64  // CLOCK_BOOTTIME ns
	KHz        uint32 // of the processor; 0: unknown
	CPU        uint16
	Rank       uint8 // of the processor's cluster in Machine
	Flags      PlaceFlags
}

// PlaceFlags say more about a Place.
type PlaceFlags uint8

// The flags of a place.
const (
	// Waits: the thread did not run, but waited behind others for the processor.
	Waits PlaceFlags = 1 << iota
	// BetterIdle: a stronger processor was idle; if Waits, any other one.
	BetterIdle
	// BetterAllowed: the thread could have used one of those. Only with BetterIdle.
	BetterAllowed
	// Moved: it begins to run here, and ran last on another processor. MovedCluster: that is in another cluster.
	Moved
	MovedCluster
)

// Placed sums places. Times are ns.
type Placed struct {
	// Ns is the time that the thread ran, by rank. Weak is the part of it in which a stronger processor was idle, and
	// Free the part of that in which it could have used it.
	Ns, Weak, Free [MaxClusters]int64
	// WaitNs is the time that it waited behind others while another processor was idle, WaitFreeNs the part of it in
	// which it could have used it.
	WaitNs, WaitFreeNs int64
	// KnownNs is the time that it ran at a known frequency, Cycles how many cycles that were.
	KnownNs int64
	Cycles  int64
	// Moves is how often it began to run on another processor than before, ClusterMoves those of another cluster.
	Moves, ClusterMoves uint64
}

// RunningNs is the time that the thread ran.
func (p *Placed) RunningNs() int64 { return sum(&p.Ns) }

// WeakNs is the time that it ran while a stronger processor was idle, FreeNs the part in which it could have used it.
func (p *Placed) WeakNs() int64 { return sum(&p.Weak) }

// FreeNs: see WeakNs.
func (p *Placed) FreeNs() int64 { return sum(&p.Free) }

// MeanKHz is the mean frequency over the time at which it is known; 0: never.
func (p *Placed) MeanKHz() int64 {
	if p.KnownNs == 0 {
		return 0
	}
	return int64(float64(p.Cycles) * 1e6 / float64(p.KnownNs))
}

func sum(v *[MaxClusters]int64) (s int64) {
	for _, n := range v {
		s += n
	}
	return s
}

// Add adds o to p.
func (p *Placed) Add(o *Placed) {
	for i := range p.Ns {
		p.Ns[i] += o.Ns[i]
		p.Weak[i] += o.Weak[i]
		p.Free[i] += o.Free[i]
	}
	p.WaitNs += o.WaitNs
	p.WaitFreeNs += o.WaitFreeNs
	p.KnownNs += o.KnownNs
	p.Cycles += o.Cycles
	p.Moves += o.Moves
	p.ClusterMoves += o.ClusterMoves
}

// add adds the part of a place from one time to another. Its move counts where it begins.
func (p *Placed) add(at *Place, from, to int64) {
	if from <= at.Start && at.Start < to && at.Flags&(Moved|MovedCluster) != 0 {
		p.Moves++
		if at.Flags&MovedCluster != 0 {
			p.ClusterMoves++
		}
	}
	ns := min(to, at.End) - max(from, at.Start)
	if ns <= 0 {
		return
	}
	better, free := at.Flags&BetterIdle != 0, at.Flags&BetterAllowed != 0
	if at.Flags&Waits != 0 {
		if better {
			p.WaitNs += ns
		}
		if free {
			p.WaitFreeNs += ns
		}
		return
	}
	p.Ns[at.Rank] += ns
	if better {
		p.Weak[at.Rank] += ns
	}
	if free {
		p.Free[at.Rank] += ns
	}
	if at.KHz != 0 {
		p.KnownNs += ns
		p.Cycles += int64(float64(ns) * float64(at.KHz) / 1e6)
	}
}

// PlacedIn sums the thread's places from one time to another, as far as they are kept.
func (a *Activity) PlacedIn(from, to int64) (p Placed) {
	for i := range a.Places {
		if at := &a.Places[i]; at.Start < to && at.End > from {
			p.add(at, from, to)
		}
	}
	return p
}
