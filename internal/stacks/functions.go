package stacks

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"braid/inline"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// Kind says what a function is.
type Kind uint8

// The kinds.
const (
	// Native is user code without a stub, or of which no ring has a record.
	Native Kind = iota
	// Method is user code that some ring has a record of, perhaps only of its end.
	Method
	// Kernel is code of the kernel.
	Kernel
)

// String is the kind's name in reports.
func (k Kind) String() string { return [...]string{"native", "method", "kernel"}[k] }

// Function is what all frames of a function share. Functions of the same name in files of the same name are one.
type Function struct {
	Name   string // demangled; "[FILE]" for all nameless functions of a file, "[unknown]" for those of none
	Module string // base name of its file; "" if not known
	Kind   Kind
}

// FuncID is a function's number in a Join.
type FuncID uint32

// Unknown is an open method of which only the end was recorded.
const Unknown FuncID = 0

// Names of what has none.
const (
	noName     = "[unknown]"
	kernelName = "[kernel]"
)

// entries are the functions that begin a thread, of glibc, musl and bionic. No method calls them.
var entries = map[string]bool{
	"_start": true, "_start_c": true, "__libc_start_main": true, "__libc_start_main_impl": true, "__libc_start_call_main": true,
	"libc_start_main_stage2": true, "__libc_init": true, "_start_main": true, "clone": true, "clone3": true, "__clone": true,
	"__clone3": true, "__clone_internal": true, "start_thread": true, "start": true, "__pthread_start": true,
	"__pthread_start(void*)": true, "__start_thread": true, "__bionic_clone": true, "thread_start": true,
}

// part is what compilers append to the name of code that they moved out of a function.
var part = regexp.MustCompile(`(\.cold(\.\d+)?| \[clone \.cold(\.\d+)?\])$`)

// place is what is known of an address of user code, or of the kernel.
type place struct {
	fn      FuncID
	key     uint64 // of the method in its space
	mapping int32  // index in Join.Mappings, -1 for none
	method  bool
	entry   bool
	// mayBe: it is not known as a method, but its file carries stubs. It begins at start.
	mayBe bool
	start uint64
}

type placeKey struct {
	space, pid, epoch uint32
	addr              uint64
}

// space is the methods of one address space, by their addresses.
type space struct {
	*timeline.Space
	id     uint32
	at     map[uint64][]uint32 // by address; several where libraries were loaded after one another
	low    map[uint32]uint32   // those of which only the low half of the address is known
	byName map[string]uint32
	// learned are the beginnings of methods that are known from stacks.
	learned map[uint64]bool
	fns     []FuncID // by method; 0: not asked for yet
}

// index notes where methods are. Call it when all rings were decoded: that may add methods.
func (s *space) index() {
	s.at, s.low, s.byName, s.learned = map[uint64][]uint32{}, map[uint32]uint32{}, map[string]uint32{}, map[uint64]bool{}
	for i := uint32(1); i < uint32(s.Methods.Len()); i++ {
		row := s.Methods.Row(i)
		if s.whole(i) {
			s.at[row.Addr] = append(s.at[row.Addr], i)
		} else {
			s.low[uint32(row.Addr)] = i
		}
		if n := s.Name(i); n.Resolved {
			s.byName[n.Name] = i
		}
	}
	s.fns = make([]FuncID, s.Methods.Len())
}

// whole reports whether a method's whole address is known.
func (s *space) whole(method uint32) bool {
	row := s.Methods.Row(method)
	return row.State == inline.MethodKnown || row.State == inline.MethodUnresolved && row.Wide
}

// key is what tells a method from others when rings and frames are compared: its address, or what is known of it.
func (s *space) key(method uint32) uint64 { return s.Methods.Row(method).Addr }

// methodAt is the method that begins at an address and is called name, of several.
func (s *space) methodAt(addr uint64, name string) (method uint32, ok bool) {
	if list := s.at[addr]; len(list) > 0 {
		i := slices.IndexFunc(list, func(m uint32) bool { return s.Name(m).Name == name })
		return list[max(i, 0)], true
	}
	method, ok = s.low[uint32(addr)]
	return method, ok
}

// function returns the number of a function.
func (j *Join) function(f Function) FuncID {
	id, ok := j.ids[f]
	if !ok {
		id = FuncID(len(j.Functions))
		j.ids[f] = id
		j.Functions = append(j.Functions, f)
	}
	return id
}

// methodFn is the function of a method.
func (j *Join) methodFn(s *space, method uint32) FuncID {
	if method == inline.Unknown {
		return Unknown
	}
	if id := s.fns[method]; id != 0 {
		return id
	}
	n := s.Name(method)
	id := j.function(Function{Name: n.Name, Module: n.Module, Kind: Method})
	s.fns[method] = id
	return id
}

// place finds out what an address of a process was at a time. s is nil if it has no methods; pid 0 is the kernel.
func (j *Join) place(s *space, pid uint32, addr, time uint64) place {
	k := placeKey{pid: pid, addr: addr, epoch: j.epoch(pid, time)}
	if s != nil {
		k.space = s.id + 1
	}
	p, ok := j.places[k]
	if !ok {
		p = j.find(s, pid, addr, time)
		j.places[k] = p
	}
	return p
}

// epoch tells times apart between which a process's mappings changed.
func (j *Join) epoch(pid uint32, time uint64) uint32 {
	n, found := slices.BinarySearch(j.changes[pid], time)
	if found {
		n++
	}
	return uint32(n)
}

func (j *Join) find(s *space, pid uint32, addr, time uint64) place {
	m, f := j.table.Find(pid, addr, time)
	p := place{mapping: -1}
	fn := Function{Name: noName}
	if pid == 0 {
		fn = Function{Name: kernelName, Kind: Kernel}
	}
	if m != nil {
		p.mapping = j.mappingIndex[m]
		fn.Module = moduleName(m)
		if fn.Name = "[" + strings.Trim(fn.Module, "[]") + "]"; fn.Module == "" {
			fn.Name = "[anonymous]"
		}
	}
	if f == nil {
		p.fn = j.function(fn)
		return p
	}
	fn.Name = f.Name
	if s != nil {
		method, ok := s.methodAt(f.Start, f.Name)
		if !ok {
			if whole := part.ReplaceAllString(f.Name, ""); whole != f.Name {
				method, ok = s.byName[whole]
			}
		}
		if ok {
			p.method, p.key, p.fn = true, s.key(method), j.methodFn(s, method)
			if !s.Name(method).Resolved {
				fn.Kind = Method
				p.fn = j.function(fn)
				s.fns[method] = p.fn
			}
			return p
		}
	}
	p.entry, p.start = entries[f.Name], f.Start
	switch {
	case s == nil || p.entry:
	case s.learned[f.Start]:
		p.method, p.key, fn.Kind = true, f.Start, Method
	default:
		p.mayBe = j.instrumented(pid, addr)
	}
	p.fn = j.function(fn)
	return p
}

// moduleName is what a mapping's file is called in short.
func moduleName(m *tracefile.Mapping) string {
	switch {
	case m.Path == "" && m.Flags&tracefile.MappingVDSO != 0:
		return "[vdso]"
	case m.Path == "" && m.Flags&tracefile.MappingKernel != 0:
		return kernelName
	case m.Path == "":
		return ""
	}
	return path.Base(m.Path)
}
