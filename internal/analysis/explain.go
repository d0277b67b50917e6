package analysis

import (
	"cmp"
	"maps"
	"slices"

	"braid/inline"
)

// moment fills in the call that is explained.
func (a *analyzer) moment() {
	d, row := &a.detail, &a.normals.rows[a.detail.method]
	th, name := a.trace.Threads[d.moment.thread], a.methods.names[d.method]
	m := &Moment{
		Pid: th.Pid, Tid: th.Tid, Thread: th.Name, Method: name.Name, Module: name.Module,
		FromNs: d.moment.begin, ToNs: d.moment.end, Open: d.moment.flags&inline.CutEnd != 0,
		Causes: d.root.total.byName(), Points: a.points(d.root),
	}
	if row.calls > MinPeers {
		m.Usual = usualOf(&row.total)
		length := m.ToNs - m.FromNs
		m.Unusual = length > m.Usual.MedianNs+3*max(m.Usual.MADNs, m.Usual.MedianNs/20)
	}
	a.result.Moment = m
}

// points sums a node and all below it.
func (a *analyzer) points(n *node) Points {
	sum := n.points
	for _, c := range n.children {
		sum.add(a.points(c))
	}
	return sum
}

// spent is what one method did itself in the moment.
type spent struct {
	calls  uint64
	self   Split
	points Points
	sleeps map[thing]*sleeper
}

// byMethod sums the moment's tree by method.
func (d *detail) byMethod() map[uint32]*spent {
	all := make(map[uint32]*spent)
	var visit func(n *node)
	visit = func(n *node) {
		s := all[n.method]
		if s == nil {
			s = &spent{sleeps: make(map[thing]*sleeper)}
			all[n.method] = s
		}
		s.calls += n.calls + n.folded
		s.self.add(&n.self)
		s.points.add(n.points)
		for t, o := range n.sleeps {
			if s.sleeps[t] == nil {
				s.sleeps[t] = new(sleeper)
			}
			s.sleeps[t].merge(o)
		}
		for _, c := range n.children {
			visit(c)
		}
	}
	visit(d.root)
	return all
}

// findings compares each method's own time in the moment with what is usual.
func (a *analyzer) findings(c *cpus) error {
	d := &a.detail
	length := d.moment.end - d.moment.begin
	by := d.byMethod()
	for method, s := range by {
		name := a.methods.names[method]
		for i, ns := range s.self {
			if ns == 0 {
				continue
			}
			f := Finding{
				Method: name.Name, Module: name.Module, Cause: Cause(i).String(), cause: Cause(i), method: method,
				Ns: ns, Calls: s.calls, Points: s.points,
			}
			a.usual(&f, method)
			if f.ExcessNs = ns - f.UsualNs; f.ExcessNs <= length/100 {
				continue
			}
			a.result.Findings = append(a.result.Findings, f)
		}
	}
	slices.SortFunc(a.result.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.ExcessNs, x.ExcessNs), cmp.Compare(x.Method, y.Method), cmp.Compare(x.Cause, y.Cause))
	})
	a.result.Findings = a.result.Findings[:min(len(a.result.Findings), a.options.Top)]
	for i := range a.result.Findings {
		switch f := &a.result.Findings[i]; f.cause {
		case Runnable:
			f.Who = c.holders(slices.DeleteFunc(slices.Clone(d.pieces), func(p piece) bool { return p.node.method != f.method }))
		case Sleeping, Lock, Binder, Poll, Stream, Timer:
			if err := a.waited(f, c, by[f.method].sleeps); err != nil {
				return err
			}
		}
	}
	return nil
}

// usual fills in what is usual of a method's time in a cause.
func (a *analyzer) usual(f *Finding, method uint32) {
	d := &a.detail
	if d.n >= MinPeers {
		f.Basis, f.Peers = "moment", d.n
		if int(method) < len(d.rows) {
			row := &d.rows[method]
			f.UsualNs, f.UsualCalls = d.usual(row.by[f.cause]), d.usual(&row.calls)
		}
		return
	}
	if row := &a.normals.rows[method]; row.calls > MinPeers {
		f.Basis, f.Peers = "method", row.calls
		f.UsualCalls = int64(f.Calls)
		f.UsualNs = int64(f.Calls) * row.usual(f.cause)
		return
	}
	f.Basis = "none"
}

func (a *analyzer) level(n *node) Level {
	name := a.methods.names[n.method]
	return Level{
		Method: name.Name, Module: name.Module, Calls: n.calls, Recursive: n.folded,
		TotalNs: n.total.Wall(), SelfNs: n.self.Wall(), Causes: n.total.byName(), Self: n.self.byName(),
	}
}

// chain goes down from the outermost call, to the longest callee each time, while that is a tenth of the moment.
func (a *analyzer) chain() {
	d := &a.detail
	for _, o := range d.outers {
		name := a.methods.names[o.method]
		l := Level{
			Method: name.Name, Module: name.Module, Calls: 1, Outside: true,
			TotalNs: o.total.Wall(), SelfNs: o.self.Wall(), Causes: o.total.byName(), Self: o.self.byName(),
		}
		if last := len(a.result.Chain) - 1; last >= 0 && a.result.Chain[last].Method == l.Method && a.result.Chain[last].Module == l.Module {
			a.result.Chain[last].Recursive++
			continue
		}
		a.result.Chain = append(a.result.Chain, l)
	}
	least := (d.moment.end - d.moment.begin) / 10
	for n := d.root; n != nil; {
		a.result.Chain = append(a.result.Chain, a.level(n))
		var next *node
		for _, c := range a.children(n) {
			if ns := c.total.Wall(); ns >= least && (next == nil || ns > next.total.Wall()) {
				next = c
			}
		}
		n = next
	}
}

// children are a node's in an order that does not change from run to run.
func (a *analyzer) children(n *node) []*node {
	return slices.SortedFunc(maps.Values(n.children), func(x, y *node) int {
		nx, ny := a.methods.names[x.method], a.methods.names[y.method]
		return cmp.Or(cmp.Compare(nx.Name, ny.Name), cmp.Compare(nx.Module, ny.Module))
	})
}

// chains lists the nodes with the most time of their own, and how they were reached.
func (a *analyzer) chains() {
	var all []*node
	var visit func(n *node)
	visit = func(n *node) {
		all = append(all, n)
		for _, c := range a.children(n) {
			visit(c)
		}
	}
	visit(a.detail.root)
	slices.SortStableFunc(all, func(x, y *node) int { return cmp.Compare(y.self.Wall(), x.self.Wall()) })
	for _, n := range all[:min(len(all), a.options.Top)] {
		c := Chain{Calls: n.calls + n.folded, SelfNs: n.self.Wall(), Self: n.self.byName()}
		if c.SelfNs == 0 {
			break
		}
		for up := n; up != nil; up = up.parent {
			c.Methods = append(c.Methods, a.methods.names[up.method].Name)
		}
		slices.Reverse(c.Methods)
		a.result.Chains = append(a.result.Chains, c)
	}
}
