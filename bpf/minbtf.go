package bpf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// rawObjects are loaded where types come from a file.
var rawObjects = []func() (*ebpf.CollectionSpec, error){
	loadProcessRaw, loadSchedRaw, loadIoRaw, loadWaitRaw, loadWatchRaw, loadSchedWatchRaw, loadIoWatchRaw, loadProbe,
}

// MinimizeBTF returns, as raw BTF, what the programs need of a kernel's types: a few kilobytes of megabytes, for
// Options.BTFPath. It holds what `bpftool gen min_core_btf` keeps, the fields that programs read, and besides the
// prototypes of the tracepoints, which the loader asks for.
func MinimizeBTF(kernel *btf.Spec) ([]byte, error) {
	m := minimizer{fields: map[string]map[string]bool{}, made: map[btf.Type]btf.Type{}}
	hooks := map[string]bool{}
	for _, open := range rawObjects {
		spec, err := open()
		if err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		for _, p := range spec.Programs {
			hooks[hookOf(p)] = true
		}
		if err := m.note(spec.Types); err != nil {
			return nil, err
		}
	}
	var types []btf.Type
	for _, name := range slices.Sorted(maps.Keys(m.fields)) {
		if name == "" {
			continue // by their owners
		}
		found, err := kernel.AnyTypesByName(name)
		if err != nil {
			continue // older and newer shapes: not every kernel has each
		}
		for _, t := range found {
			types = append(types, m.keep(t, nil))
		}
	}
	for _, hook := range slices.Sorted(maps.Keys(hooks)) {
		if t, err := kernel.AnyTypeByName("btf_trace_" + hook); err == nil {
			types = append(types, m.keep(t, nil))
		}
	}
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		return nil, fmt.Errorf("collect types: %w", err)
	}
	return b.Marshal(nil, nil)
}

// minimizer copies types with those members alone that programs name.
type minimizer struct {
	fields map[string]map[string]bool // of a structure, union or enumeration; "" of those without a name
	made   map[btf.Type]btf.Type
}

// note takes the names of an object's types. x___y is a shape of x.
func (m *minimizer) note(spec *btf.Spec) error {
	for t, err := range spec.All() {
		if err != nil {
			return fmt.Errorf("read an object's types: %w", err)
		}
		name, _, _ := strings.Cut(t.TypeName(), "___")
		var names []string
		switch t := t.(type) {
		case *btf.Struct:
			names = memberNames(t.Members)
		case *btf.Union:
			names = memberNames(t.Members)
		case *btf.Enum:
			for _, v := range t.Values {
				names = append(names, v.Name)
			}
		case *btf.Typedef:
		default:
			continue
		}
		if m.fields[name] == nil {
			m.fields[name] = map[string]bool{}
		}
		for _, n := range names {
			m.fields[name][n] = true
		}
	}
	return nil
}

func memberNames(members []btf.Member) (names []string) {
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

// keep copies a type. The members of a structure without a name are chosen by the names that its owner's have.
func (m *minimizer) keep(t btf.Type, owner map[string]bool) btf.Type {
	if made, ok := m.made[t]; ok {
		return made
	}
	switch t := t.(type) {
	case *btf.Struct:
		c := &btf.Struct{Name: t.Name, Size: t.Size}
		m.made[t] = c
		c.Members = m.members(t.Name, t.Members, owner)
		return c
	case *btf.Union:
		c := &btf.Union{Name: t.Name, Size: t.Size}
		m.made[t] = c
		c.Members = m.members(t.Name, t.Members, owner)
		return c
	case *btf.Enum:
		c := &btf.Enum{Name: t.Name, Size: t.Size, Signed: t.Signed}
		m.made[t] = c
		for _, v := range t.Values {
			if m.fields[t.Name][v.Name] {
				c.Values = append(c.Values, v)
			}
		}
		return c
	case *btf.Pointer:
		c := &btf.Pointer{}
		m.made[t] = c
		c.Target = m.keep(t.Target, nil)
		return c
	case *btf.Typedef:
		c := &btf.Typedef{Name: t.Name}
		m.made[t] = c
		c.Type = m.keep(t.Type, owner)
		return c
	case *btf.Array:
		return &btf.Array{Index: m.keep(t.Index, nil), Type: m.keep(t.Type, owner), Nelems: t.Nelems}
	case *btf.Const:
		return m.keep(t.Type, owner)
	case *btf.Volatile:
		return m.keep(t.Type, owner)
	case *btf.Restrict:
		return m.keep(t.Type, owner)
	case *btf.TypeTag:
		return m.keep(t.Type, owner)
	case *btf.FuncProto:
		c := &btf.FuncProto{Return: m.keep(t.Return, nil)}
		for _, p := range t.Params {
			c.Params = append(c.Params, btf.FuncParam{Name: p.Name, Type: m.keep(p.Type, nil)})
		}
		return c
	}
	return t // without parts
}

func (m *minimizer) members(name string, all []btf.Member, owner map[string]bool) (kept []btf.Member) {
	wanted := m.fields[name]
	if name == "" {
		wanted = owner
	}
	for _, member := range all {
		anonymous := member.Name == "" && len(wanted) > 0
		if anonymous || wanted[member.Name] || name == "" && m.fields[""][member.Name] {
			member.Type = m.keep(member.Type, wanted)
			kept = append(kept, member)
		}
	}
	return kept
}
