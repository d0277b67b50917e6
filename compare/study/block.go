package study

import (
	"math"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/stats"
)

// block is a workload on a cluster.
type block struct {
	load     *Load
	cluster  *result.Cluster
	members  []*member
	launches int
	spent    time.Duration
	longest  time.Duration // of its launches
	done     bool
	khz      []uint64 // the last frequencies that were seen
	busy     float64  // share of the last samples in which other programs took the processor
}

// member is an arm in a block.
type member struct {
	arm   *arm.Arm
	info  *result.Arm // shared by all blocks
	cells []*cell     // by the number of the parameter
	out   bool        // takes no part any more: it failed

	fastest       time.Duration // a measurement with everything around it
	settled, slow bool          // see settle
}

// cell is an arm in a block with a parameter.
type cell struct {
	parameter int64
	series    result.Series
	calls     int64         // for a sample; 0 before calibration
	perCall   float64       // ns, roughly
	slow      time.Duration // what a sample takes with everything around it
	narrow    bool
}

func newMember(a *arm.Arm, info *result.Arm, l *Load) *member {
	m := &member{arm: a, info: info}
	for _, p := range l.Parameters {
		m.cells = append(m.cells, &cell{parameter: p, series: result.Series{Arm: a.Name, Workload: l.Name, Parameter: p}})
	}
	return m
}

// turn is how much of its share of the time a block has had. Before shares count, each has one launch, and then as many as an
// interval needs, in the order of the plan.
func (b *block) turn() float64 {
	switch {
	case b.launches == 0:
		return -2
	case b.launches < stats.MinUnits:
		return -1
	}
	return b.spent.Seconds() / b.load.Weight
}

func (b *block) member(name string) *member {
	for _, m := range b.members {
		if m.arm.Name == name {
			return m
		}
	}
	return nil
}

// baseline is the member that another one is compared with, or nil.
func (b *block) baseline(m *member) *member {
	if m.arm.Baseline != "" {
		return b.member(m.arm.Baseline)
	}
	return b.member(estimate.Baseline)
}

// fail ends an arm in the block, with all its parameters.
func (m *member) fail(why string) {
	m.out = true
	for _, c := range m.cells {
		if c.series.Failure == "" {
			c.series.Failure = why
		}
	}
}

// going says whether samples of the arm are still wanted for itself.
func (m *member) going() bool {
	for _, c := range m.cells {
		if !m.out && !c.narrow && c.series.Failure == "" {
			return true
		}
	}
	return false
}

// wanted returns who takes part in the next launch: who has no narrow interval yet, who they are compared with, and the cheap
// arms, which others are shown as multiples of.
func (b *block) wanted() []*member {
	var out []*member
	with := map[*member]bool{}
	for _, m := range b.members {
		if m.going() {
			with[m] = true
			with[b.baseline(m)] = true
		}
	}
	for _, m := range b.members {
		if !m.out && (with[m] || !m.dear() && len(with) > 0) {
			out = append(out, m)
		}
	}
	return out
}

// settle decides once, after the first warm-up, whether the arm is slow: a measurement takes much longer than what is measured in it,
// because probes come and go, or a tool writes files.
func (m *member) settle() {
	if !m.settled && m.fastest > 0 {
		m.settled, m.slow = true, m.dear() && m.fastest > slowRun
	}
}

// skip says whether a cell needs no sample in a round of the next launch, at one of its alignments: the arm itself may still take
// part. Slow arms are in the first round only, at one alignment in turn, and have every other of the further parameters in turn:
// what they cost hangs little on all of that, and is better known from more launches.
func (b *block) skip(m *member, n, round, align int) bool {
	c := m.cells[n]
	if c.series.Failure != "" {
		return true
	}
	if m.slow {
		turn := b.load.Aligns[b.launches%len(b.load.Aligns)]
		if round > 0 || n == 0 && align != turn || n > 0 && (n+b.launches)%2 == 0 {
			return true
		}
	}
	return m.dear() && c.narrow
}

// dear says that an arm costs too much time to be measured for the sake of others.
func (m *member) dear() bool {
	return m.arm.Group == result.GroupProbe || m.arm.Group == result.GroupExternal
}

// judge marks what has a narrow interval, and ends the block when everything has.
func (c *conductor) judge(b *block) {
	b.done = true
	for _, m := range b.members {
		base := b.baseline(m)
		if m.out || base == nil || base.out {
			continue
		}
		for n, x := range m.cells {
			if x.series.Failure == "" && base.cells[n].series.Failure == "" && !x.narrow {
				x.narrow = c.narrow(b, m, x, base.cells[n])
				b.done = b.done && x.narrow
			}
		}
	}
}

// A measurement that takes this long is dear.
const (
	dearSample = 250 * time.Millisecond
	dearest    = 2 * time.Second
)

// narrow says whether a figure is good enough. What is compared with nothing has to be as good as everything that is compared
// with it, which is for these to say.
func (c *conductor) narrow(b *block, m *member, x, base *cell) bool {
	if x == base {
		return true
	}
	least, width := c.MinLaunches, c.Width
	// What takes long is known well enough earlier.
	switch {
	case x.slow > dearest:
		least, width = stats.MinUnits, math.Inf(1) // more of them would leave others without
	case x.slow > dearSample:
		least, width = max(stats.MinUnits, c.MinLaunches/2), 5*c.Width
	case x.slow > slowRun:
		least, width = max(stats.MinUnits, c.MinLaunches/2), 2*c.Width
	}
	w := estimate.WidthOf(&x.series, &base.series, b.load.wall(), c.Confidence)
	if w.Launches < least {
		return false
	}
	// A difference that is lost in the workload's own time is good enough when it is known as a share of that.
	return w.Half <= width*max(w.Added, w.Base)
}
