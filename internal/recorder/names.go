package recorder

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"braid/control"
	"braid/internal/tracefile"
	"braid/symbols"
)

// writeNames writes the modules of all traced processes and the names of the methods that their rings mention. A process
// with the same modules as the one it was forked from has none of its own in the file: its parent's serve.
func (r *rings) writeNames() error {
	var mods []tracefile.Module
	var syms []tracefile.Symbol
	procs := slices.SortedStableFunc(slices.Values(r.procs), func(a, b *process) int { return cmp.Compare(a.pid, b.pid) })
	for _, p := range procs { // what a child used, its parent's table must name
		if r.shares(p) {
			q := r.origin(p)
			for w := range p.used {
				q.used[w] = struct{}{}
			}
			for w := range p.wide {
				q.wide[w] = struct{}{}
			}
		}
	}
	for _, p := range procs {
		if r.shares(p) || len(p.modules) == 0 {
			continue
		}
		m, s, ambiguous := names(p, uint32(len(mods)))
		mods, syms = append(mods, m...), append(syms, s...)
		r.ambiguous = append(r.ambiguous, ambiguous...)
	}
	if len(mods) == 0 {
		return nil
	}
	return r.out.do(func(w *tracefile.Writer) error {
		if err := w.WriteModules(mods); err != nil {
			return err
		}
		return w.WriteSymbols(syms)
	})
}

// shares reports whether a process's modules are those of the process that it was forked from, and neither has executed
// another program since.
func (r *rings) shares(p *process) bool {
	q := r.only(p.parent)
	return q != nil && q != p && p == r.only(p.pid) && sameModules(p.modules, q.modules)
}

// only is a process that has executed no other program while it was traced, or nil.
func (r *rings) only(pid int) (p *process) {
	for _, q := range r.procs {
		if q.pid != pid {
			continue
		}
		if p != nil {
			return nil
		}
		p = q
	}
	return p
}

func (r *rings) origin(p *process) *process {
	for range len(r.procs) {
		if !r.shares(p) {
			break
		}
		p = r.only(p.parent)
	}
	return p
}

func sameModules(a, b []control.Module) bool {
	return slices.EqualFunc(a, b, func(x, y control.Module) bool {
		return x.Path == y.Path && x.Bias == y.Bias && bytes.Equal(x.BuildID, y.BuildID)
	})
}

// names resolves what one process used. first is the index of its first module in the file. ambiguous says, for the user,
// which modules lie so that records of their methods can not always be told apart.
func names(p *process, first uint32) (mods []tracefile.Module, syms []tracefile.Symbol, ambiguous []string) {
	var in []symbols.Module
	for _, m := range p.modules {
		s := symbols.Registered(m.Path, m.Bias, m.BuildID)
		s.Pid, s.Ranges = p.pid, []symbols.Range{{Start: m.Low, End: m.High}}
		in = append(in, s)
	}
	table := symbols.NewTable(in, symbols.Options{})
	for _, c := range table.Collisions() {
		if c.Shared > 0 {
			ambiguous = append(ambiguous, fmt.Sprintf("%s and %s have %d methods whose addresses differ by a multiple of 4 GiB: records can't tell them apart",
				p.modules[c.A].Path, p.modules[c.B].Path, c.Shared))
		}
	}
	for i, info := range table.Modules() {
		m := tracefile.Module{Pid: p.pid, Since: p.since, Path: p.modules[i].Path, BuildID: hex.EncodeToString(p.modules[i].BuildID),
			Bias: p.modules[i].Bias, Start: p.modules[i].Low, End: p.modules[i].High, Instrumented: true}
		if info.Err != nil {
			m.Unresolved = info.Err.Error()
		}
		mods = append(mods, m)
	}
	lows := make([]uint32, 0, len(p.used))
	for w := range p.used {
		lows = append(lows, w)
	}
	slices.Sort(lows)
	addrs := make([]uint64, 0, len(p.wide))
	for a := range p.wide {
		addrs = append(addrs, a)
	}
	slices.Sort(addrs)
	seen := map[uint64]bool{}
	for _, s := range append(table.Select32(lows), table.Select(addrs)...) {
		if seen[s.Addr] || s.Module < 0 {
			continue
		}
		seen[s.Addr] = true
		syms = append(syms, tracefile.Symbol{Addr: s.Addr, Size: s.Size, Module: first + uint32(s.Module), Name: s.Name, Raw: s.Raw})
	}
	return mods, syms, ambiguous
}
