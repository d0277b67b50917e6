package capture

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"braid/control"
	"braid/internal/tracefile"
	"braid/symbols"
)

// Names are the processes of one trace file.
type Names struct {
	Files *Files
	Procs []*Process // in the order in which they were met
	// Ambiguous says, for the user, whose methods can't be named, or not always be told apart. Write fills it.
	Ambiguous []string
}

// Write writes the modules of all traced processes and the names of the methods that their rings mention. A process
// with the same modules as the one it was forked from has none of its own in the file: its parent's serve.
func (n *Names) Write(out *Output) error {
	var mods []tracefile.Module
	var syms []tracefile.Symbol
	procs := slices.SortedStableFunc(slices.Values(n.Procs), func(a, b *Process) int { return cmp.Compare(a.Pid, b.Pid) })
	for _, p := range procs { // what a child used, its parent's table must name
		if n.shares(p) {
			q := n.origin(p)
			for w := range p.used {
				q.used[w] = struct{}{}
			}
			for w := range p.wide {
				q.wide[w] = struct{}{}
			}
		}
	}
	for _, p := range procs {
		if n.shares(p) || len(p.Modules) == 0 {
			continue
		}
		m, s, ambiguous := n.names(p, uint32(len(mods)))
		mods, syms = append(mods, m...), append(syms, s...)
		n.Ambiguous = append(n.Ambiguous, ambiguous...)
	}
	if len(mods) == 0 {
		return nil
	}
	return out.Do(func(w *tracefile.Writer) error {
		if err := w.WriteModules(mods); err != nil {
			return err
		}
		return w.WriteSymbols(syms)
	})
}

// shares reports whether a process's modules are those of the process that it was forked from, and neither has executed
// another program since.
func (n *Names) shares(p *Process) bool {
	q := n.only(p.Parent)
	return q != nil && q != p && p == n.only(p.Pid) && sameModules(p.Modules, q.Modules)
}

// only is a process that has executed no other program while it was traced, or nil.
func (n *Names) only(pid int) (p *Process) {
	for _, q := range n.Procs {
		if q.Pid != pid {
			continue
		}
		if p != nil {
			return nil
		}
		p = q
	}
	return p
}

func (n *Names) origin(p *Process) *Process {
	for range len(n.Procs) {
		if !n.shares(p) {
			break
		}
		p = n.only(p.Parent)
	}
	return p
}

func sameModules(a, b []control.Module) bool {
	return slices.EqualFunc(a, b, sameModule)
}

// names resolves what one process used. first is the index of its first module in the file. ambiguous says, for the user,
// whose methods can not be named, or not always be told apart.
func (n *Names) names(p *Process, first uint32) (mods []tracefile.Module, syms []tracefile.Symbol, ambiguous []string) {
	var in []symbols.Module
	for _, m := range p.Modules {
		s := p.described(m)
		s.Held = n.Files.file(m)
		in = append(in, s)
	}
	table := symbols.NewTable(in, symbols.Options{})
	for _, c := range table.Collisions() {
		if c.Shared > 0 && together(p.Modules[c.A], p.Modules[c.B]) {
			ambiguous = append(ambiguous, fmt.Sprintf("%s and %s have %d methods whose addresses differ by a multiple of 4 GiB: records can't tell them apart",
				p.Modules[c.A].Path, p.Modules[c.B].Path, c.Shared))
		}
	}
	for i, info := range table.Modules() {
		m := tracefile.Module{Pid: p.Pid, Since: p.Since, Path: p.Modules[i].Path, BuildID: hex.EncodeToString(p.Modules[i].BuildID),
			Bias: p.Modules[i].Bias, Start: p.Modules[i].Low, End: p.Modules[i].High, Instrumented: true,
			Loaded: p.Modules[i].Loaded, Unloaded: p.Modules[i].Unloaded}
		if info.Err != nil {
			m.Unresolved = info.Err.Error()
			if p.Modules[i].Unloaded != 0 && errors.Is(info.Err, os.ErrNotExist) || errors.Is(info.Err, symbols.ErrDeleted) {
				ambiguous = append(ambiguous, fmt.Sprintf("%s was closed and deleted before braid had seen it: its methods have no names", m.Path))
			}
		}
		mods = append(mods, m)
	}
	lows := make([]uint32, 0, len(p.used))
	for w := range p.used {
		lows = append(lows, w)
	}
	addrs := make([]uint64, 0, len(p.wide))
	for a := range p.wide {
		addrs = append(addrs, a)
		lows = append(lows, uint32(a)) // all that were there, one after another
	}
	slices.Sort(addrs)
	type place struct {
		addr   uint64
		module int
	}
	seen := map[place]bool{}
	again := p.again()
	for _, s := range append(table.Select32(lows), table.Select(addrs)...) {
		if s.Module < 0 || seen[place{s.Addr, s.Module}] {
			continue
		}
		for _, m := range append([]int{s.Module}, again[s.Module]...) {
			seen[place{s.Addr, m}] = true
			syms = append(syms, tracefile.Symbol{Addr: s.Addr, Size: s.Size, Module: first + uint32(m), Name: s.Name, Raw: s.Raw})
		}
	}
	return mods, syms, ambiguous
}

// together reports whether two modules were there at the same time, and not at the same place: then the low halves of
// their methods' addresses do not tell them apart.
func together(a, b control.Module) bool {
	apart := a.Unloaded != 0 && a.Unloaded < b.Loaded || b.Unloaded != 0 && b.Unloaded < a.Loaded
	return !apart && (a.High <= b.Low || b.High <= a.Low)
}

// again lists, for each module, the later ones that are the same library at the same place once more. They need its
// symbols too: another library may have been there in between.
func (p *Process) again() map[int][]int {
	all := map[int][]int{}
	for i := range p.Modules {
		for j := range i {
			if sameModule(p.Modules[i], p.Modules[j]) {
				all[j] = append(all[j], i)
				break
			}
		}
	}
	return all
}
