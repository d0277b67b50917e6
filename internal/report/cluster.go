package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"braid/inline"
	"braid/internal/analysis"
	"braid/internal/cpus"
	"braid/internal/timeline"
	"braid/internal/wording"
)

// Processors says where the time on processors was spent, and what of it could have been spent better.
type Processors struct {
	// Clusters are the kinds of processor, strongest first. On a machine whose processors are alike there is one, and
	// only threads that waited while another processor was idle are listed.
	Clusters []Cluster       `json:"clusters"`
	Threads  []ThreadPlacing `json:"threads"`
	Methods  []MethodPlacing `json:"methods,omitempty"`
	Findings []string        `json:"findings,omitempty"` // sentences
	machine  *timeline.Machine
}

// Cluster is one kind of processor.
type Cluster struct {
	Name      string `json:"name"`
	CPUs      []int  `json:"cpus"`
	Capacity  int    `json:"capacity"` // of 1024
	Estimated bool   `json:"estimated,omitempty"`
	Model     string `json:"model,omitempty"`
	MinKHz    uint64 `json:"min_khz,omitempty"`
	MaxKHz    uint64 `json:"max_khz,omitempty"`
}

// Placing sums where something ran. Times are ns.
type Placing struct {
	RunningNs map[string]int64 `json:"running_ns,omitempty"` // by cluster; nil where processors are alike
	// StrongerIdleNs is the part of running in which a stronger processor was idle, StrongerAllowedNs the part of that
	// in which the thread could have used it.
	StrongerIdleNs    int64 `json:"stronger_idle_ns"`
	StrongerAllowedNs int64 `json:"stronger_allowed_ns"`
	// WaitOtherIdleNs is the time waited behind others while another processor was idle, and WaitOtherAllowedNs the part
	// of that in which the thread could have used it.
	WaitOtherIdleNs    int64  `json:"wait_other_idle_ns"`
	WaitOtherAllowedNs int64  `json:"wait_other_allowed_ns"`
	MeanKHz            int64  `json:"mean_khz,omitempty"` // while running, as far as it is known
	Migrations         uint64 `json:"migrations"`
	ClusterMigrations  uint64 `json:"cluster_migrations"` // those between clusters

	placed timeline.Placed
}

// ThreadPlacing is one thread's.
type ThreadPlacing struct {
	Pid  uint32 `json:"pid"`
	Tid  uint32 `json:"tid"`
	Name string `json:"name"`
	Placing
	runnable int64
}

// MethodPlacing is one method's own, over all threads shown: what it called is not in it.
type MethodPlacing struct {
	Name   string `json:"name"`
	Module string `json:"module"`
	Placing
}

func (p *Processors) placing(sum *timeline.Placed) Placing {
	out := Placing{
		StrongerIdleNs: sum.WeakNs(), StrongerAllowedNs: sum.FreeNs(),
		WaitOtherIdleNs: sum.WaitNs, WaitOtherAllowedNs: sum.WaitFreeNs, MeanKHz: sum.MeanKHz(),
		Migrations: sum.Moves, ClusterMigrations: sum.ClusterMoves, placed: *sum,
	}
	if p.machine.Clustered() {
		out.RunningNs = make(map[string]int64)
		for rank := range p.machine.Ranks() {
			out.RunningNs[p.machine.Name(rank)] = sum.Ns[rank]
		}
	}
	return out
}

// processors fills in r.Processors, unless there is nothing to say.
func (r *Report) processors(t *timeline.Trace, o Options) error {
	p := &Processors{machine: t.Kernel.Machine(), Threads: []ThreadPlacing{}}
	for i := range r.Threads {
		th := &r.Threads[i]
		a := t.Kernel.Thread(th.Tid)
		if a == nil || a.Tgid != th.Pid || a.Placed.RunningNs() == 0 && a.Placed.WaitNs == 0 ||
			!p.machine.Clustered() && a.Placed.WaitNs == 0 {
			continue
		}
		p.Threads = append(p.Threads, ThreadPlacing{th.Pid, th.Tid, th.Name, p.placing(&a.Placed), a.States[timeline.Runnable]})
	}
	if len(p.Threads) == 0 {
		return nil
	}
	r.Processors = p
	for _, k := range p.machine.Clusters {
		c := Cluster{Name: k.Name, CPUs: k.CPUs, Capacity: k.Capacity}
		if i := slices.IndexFunc(p.machine.CPUs, func(c cpus.CPU) bool { return c.ID == k.CPUs[0] }); i >= 0 {
			first := &p.machine.CPUs[i]
			c.Estimated, c.Model, c.MinKHz, c.MaxKHz = first.Estimated, first.Model, first.MinKHz, first.MaxKHz
		}
		p.Clusters = append(p.Clusters, c)
	}
	if p.machine.Clustered() {
		if err := p.methods(t, o); err != nil {
			return err
		}
	}
	p.find()
	return nil
}

// methods goes over the records of the chosen threads once more.
func (p *Processors) methods(t *timeline.Trace, o Options) error {
	lost := maps.Clone(t.Lost) // what is lost was counted the first time
	defer func() { t.Lost = lost }()
	tables := make(map[*timeline.Space]*timeline.PlaceTable)
	byName := make(map[[2]string]*timeline.Placed)
	for _, th := range t.Threads {
		if !o.shows(th.Pid, th.Tid, th.Name) {
			continue
		}
		if tables[th.Space] == nil {
			tables[th.Space] = new(timeline.PlaceTable)
		}
		if err := t.Joiner(th).SumPlaces(t.Segments(th), t.Activity(th), tables[th.Space]); err != nil {
			return fmt.Errorf("sum up where thread %d ran: %w", th.Tid, err)
		}
	}
	for space, table := range tables {
		for i := range table.Rows {
			self := &table.Rows[i].Self
			if self.RunningNs() == 0 && self.WaitNs == 0 || uint32(i) == inline.Unknown {
				continue
			}
			name := space.Name(uint32(i))
			k := [2]string{name.Name, name.Module}
			if byName[k] == nil {
				byName[k] = new(timeline.Placed)
			}
			byName[k].Add(self)
		}
	}
	for k, sum := range byName {
		p.Methods = append(p.Methods, MethodPlacing{k[0], k[1], p.placing(sum)})
	}
	slices.SortFunc(p.Methods, func(a, b MethodPlacing) int {
		return cmp.Or(cmp.Compare(b.StrongerIdleNs, a.StrongerIdleNs), cmp.Compare(b.placed.RunningNs(), a.placed.RunningNs()),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
	return nil
}

const (
	findMethods = 3  // that sentences are about
	textMethods = 10 // in the text's table
)

// find says in sentences what could have been better.
func (p *Processors) find() {
	for i := range p.Threads {
		th := &p.Threads[i]
		who := fmt.Sprintf("%s (%d)", wording.Printable(th.Name), th.Tid)
		if text := analysis.SayPlaced(p.machine, &th.placed); text != "" {
			p.Findings = append(p.Findings, who+" "+text)
		}
		for _, text := range analysis.SayQueued(&th.placed, th.runnable) {
			p.Findings = append(p.Findings, who+" "+text)
		}
	}
	for i := range p.Methods[:min(findMethods, len(p.Methods))] {
		if text := analysis.SayPlaced(p.machine, &p.Methods[i].placed); text != "" {
			p.Findings = append(p.Findings, wording.Shorten(wording.Printable(p.Methods[i].Name), Width/2)+" itself "+text)
		}
	}
}

// textProcessors writes a table of threads and one of methods, if some processors are stronger than others, and what was
// found.
func (r *Report) textProcessors(w io.Writer) {
	p := r.Processors
	if p == nil || len(p.Findings) == 0 && !p.machine.Clustered() {
		return
	}
	fmt.Fprintln(w)
	if p.machine.Clustered() {
		var kinds []string
		for _, c := range p.Clusters {
			kinds = append(kinds, fmt.Sprintf("%s %s (%d)", c.Name, cpus.Format(c.CPUs), c.Capacity))
		}
		wording.Wrap(w, "processors (capacity): "+strings.Join(kinds, ", "), Width)
		p.textTables(w, r.top)
	}
	for _, f := range p.Findings {
		wording.Wrap(w, f, Width)
	}
}

func (p *Processors) textTables(w io.Writer, top int) {
	columns := func(s *Placing) {
		for rank := range p.machine.Ranks() {
			fmt.Fprintf(w, " %7s", wording.Duration(s.placed.Ns[rank]))
		}
		mhz := "-"
		if s.MeanKHz > 0 {
			mhz = fmt.Sprint((s.MeanKHz + 500) / 1000)
		}
		fmt.Fprintf(w, " %5s %6s %3d", mhz, wording.Duration(s.StrongerIdleNs), wording.Percent(s.StrongerIdleNs, s.placed.RunningNs()))
	}
	titles := func() {
		for rank := range p.machine.Ranks() {
			fmt.Fprintf(w, " %7s", strings.ToUpper(p.machine.Name(rank)))
		}
		fmt.Fprintf(w, " %5s %10s", "MHZ", "BIG IDLE %")
	}
	fmt.Fprintf(w, "%7s %-13s", "TID", "THREAD")
	titles()
	fmt.Fprintf(w, " %s\n", "MOVED")
	limit := func(n int) int {
		if top > 0 {
			return min(n, top)
		}
		return n
	}
	for i := range p.Threads[:limit(len(p.Threads))] {
		t := &p.Threads[i]
		fmt.Fprintf(w, "%7d %-13s", t.Tid, wording.Fit(wording.Printable(t.Name), 13))
		columns(&t.Placing)
		fmt.Fprintf(w, " %5s\n", wording.Count(t.ClusterMigrations))
	}
	if len(p.Methods) == 0 {
		return
	}
	titles()
	fmt.Fprintln(w, "  METHOD (ITSELF)")
	room := Width - 8*p.machine.Ranks() - 6 - 11 - 2
	for i := range p.Methods[:min(limit(len(p.Methods)), textMethods)] {
		m := &p.Methods[i]
		columns(&m.Placing)
		fmt.Fprintf(w, "  %s\n", wording.Shorten(wording.Printable(m.Name), room))
	}
}
