package tracefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MappingFlags tells what a mapping is.
type MappingFlags uint32

// The flags. Their values never change meaning.
const (
	MappingKernel  MappingFlags = 1 << 0 // the kernel, or a module of it
	MappingDeleted MappingFlags = 1 << 1 // the file has no name any more
	MappingAnon    MappingFlags = 1 << 2 // no file: generated code; Path may say what for
	MappingVDSO    MappingFlags = 1 << 3 // code that the kernel gives to each process
	MappingHidden  MappingFlags = 1 << 4 // names exist but may not be read (kptr_restrict)
)

var mappingFlagNames = []string{"kernel", "deleted", "anonymous", "vdso", "names-hidden"}

func (f MappingFlags) String() string {
	var s []string
	for i, n := range mappingFlagNames {
		if f&(1<<i) != 0 {
			s = append(s, n)
		}
	}
	return strings.Join(s, " ")
}

// Mapping is a stretch of executable addresses in which samples' frames lie.
type Mapping struct {
	Pid     uint32 // of the process; 0: the kernel
	Flags   MappingFlags
	Start   uint64 // the first address
	End     uint64 // the first address after it
	Offset  uint64 // in the file, of Start
	Bias    uint64 // run-time address minus address in the file's symbol table
	Since   uint64 // CLOCK_BOOTTIME ns from which on it was there; 0: from the beginning
	Path    string
	BuildID string // hexadecimal; empty if unknown
}

// Function is one function in which frames lie.
type Function struct {
	Mapping uint32 // index into the same section's mappings
	Start   uint64 // at run time
	End     uint64 // the first address after it
	Name    string // demangled
	Raw     string // as in the symbol table
}

// Frames is one frames section: what the addresses of samples are called.
type Frames struct {
	Mappings  []Mapping
	Functions []Function
}

const (
	framesHeaderSize = 24
	mappingSize      = 64
	functionSize     = 32
)

// AppendFrames appends a frames section's content. A name ends at its first zero byte, or before 64 KiB.
func AppendFrames(b []byte, f *Frames) ([]byte, error) {
	t := stringTable{offsets: map[string]uint32{}}
	start := len(b)
	b = le.AppendUint64(b, uint64(len(f.Mappings)))
	b = le.AppendUint64(b, uint64(len(f.Functions)))
	b = le.AppendUint64(b, 0)
	for i := range f.Mappings {
		m := &f.Mappings[i]
		b = le.AppendUint32(b, m.Pid)
		b = le.AppendUint32(b, uint32(m.Flags))
		for _, v := range []uint64{m.Start, m.End, m.Offset, m.Bias, m.Since} {
			b = le.AppendUint64(b, v)
		}
		b = le.AppendUint32(b, t.intern(m.Path))
		b = le.AppendUint32(b, t.intern(m.BuildID))
		b = le.AppendUint64(b, 0)
	}
	for i := range f.Functions {
		s := &f.Functions[i]
		b = le.AppendUint64(b, s.Start)
		b = le.AppendUint64(b, s.End)
		b = le.AppendUint32(b, s.Mapping)
		b = le.AppendUint32(b, t.intern(s.Name))
		b = le.AppendUint32(b, t.intern(s.Raw))
		b = le.AppendUint32(b, 0)
		if len(t.table) > MaxContent/2 {
			return nil, fmt.Errorf("frames: the names exceed %d bytes; write several sections", MaxContent/2)
		}
	}
	le.PutUint64(b[start+16:], uint64(len(t.table)))
	return append(b, t.table...), nil
}

// DecodeFrames decodes a frames section's content. The names share one copy of the string table.
func DecodeFrames(b []byte) (*Frames, error) {
	if len(b) < framesHeaderSize {
		return nil, fmt.Errorf("frames: %d bytes, shorter than their header", len(b))
	}
	mappings, functions, table := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
	b = b[framesHeaderSize:]
	if room := uint64(len(b)); mappings > room/mappingSize || functions > room/functionSize ||
		mappings*mappingSize+functions*functionSize > room || table != room-mappings*mappingSize-functions*functionSize {
		return nil, fmt.Errorf("frames: %d mappings, %d functions and %d bytes of names do not take %d bytes", mappings, functions, table, room)
	}
	names := string(b[uint64(len(b))-table:])
	f := &Frames{Mappings: make([]Mapping, mappings), Functions: make([]Function, functions)}
	for i := range f.Mappings {
		m := Mapping{Pid: le.Uint32(b), Flags: MappingFlags(le.Uint32(b[4:])), Start: le.Uint64(b[8:]), End: le.Uint64(b[16:]),
			Offset: le.Uint64(b[24:]), Bias: le.Uint64(b[32:]), Since: le.Uint64(b[40:])}
		if err := namesAt(names, b[48:], &m.Path, &m.BuildID); err != nil {
			return nil, fmt.Errorf("frames: mapping %d of %d: %w", i, mappings, err)
		}
		f.Mappings[i] = m
		b = b[mappingSize:]
	}
	for i := range f.Functions {
		s := Function{Start: le.Uint64(b), End: le.Uint64(b[8:]), Mapping: le.Uint32(b[16:])}
		if err := namesAt(names, b[20:], &s.Name, &s.Raw); err != nil {
			return nil, fmt.Errorf("frames: function %d of %d: %w", i, functions, err)
		}
		if uint64(s.Mapping) >= mappings {
			return nil, fmt.Errorf("frames: function %d of %d lies in mapping %d of %d", i, functions, s.Mapping, mappings)
		}
		f.Functions[i] = s
		b = b[functionSize:]
	}
	return f, nil
}

// namesAt reads the two names whose offsets in the table b begins with.
func namesAt(table string, b []byte, first, second *string) error {
	for i, to := range []*string{first, second} {
		at := le.Uint32(b[4*i:])
		if uint64(at) >= uint64(len(table)) {
			return fmt.Errorf("a name at offset %d of %d", at, len(table))
		}
		var ok bool
		if *to, ok = nameFrom(table[at:]); !ok {
			return fmt.Errorf("a name without an end within %d bytes", maxName)
		}
	}
	return nil
}

// WriteFrames appends a frames section.
func (w *Writer) WriteFrames(f *Frames) error {
	b, err := AppendFrames(nil, f)
	if err != nil {
		return err
	}
	return w.WriteSection(KindFrames, b)
}

// Frames returns the content of all frames sections as one.
func (r *Reader) Frames() (*Frames, error) {
	all := new(Frames)
	err := r.each(KindFrames, func(b []byte) error {
		f, err := DecodeFrames(b)
		if err != nil {
			return err
		}
		base := uint32(len(all.Mappings))
		for i := range f.Functions {
			f.Functions[i].Mapping += base
		}
		all.Mappings = append(all.Mappings, f.Mappings...)
		all.Functions = append(all.Functions, f.Functions...)
		return nil
	})
	return all, err
}

// FrameTable finds names for addresses. Its methods may be called from any goroutine.
type FrameTable struct {
	f         *Frames
	mappings  map[uint32][]int // of a process, as indexes, in order of Start, then of Since
	functions [][]int          // of a mapping, as indexes, in order of Start
}

// Table prepares f for looking up. f must not be changed afterwards.
func (f *Frames) Table() *FrameTable {
	t := &FrameTable{f: f, mappings: map[uint32][]int{}, functions: make([][]int, len(f.Mappings))}
	for i := range f.Mappings {
		t.mappings[f.Mappings[i].Pid] = append(t.mappings[f.Mappings[i].Pid], i)
	}
	for _, list := range t.mappings {
		slices.SortStableFunc(list, func(a, b int) int {
			x, y := &f.Mappings[a], &f.Mappings[b]
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Since, y.Since))
		})
	}
	for i := range f.Functions {
		m := f.Functions[i].Mapping
		t.functions[m] = append(t.functions[m], i)
	}
	for _, list := range t.functions {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(f.Functions[a].Start, f.Functions[b].Start) })
	}
	return t
}

// Find returns where an address of process pid lay at a time (CLOCK_BOOTTIME ns): of mappings that overlap, in the one
// that came last before then. Pid 0 is the kernel. Both are nil if the address lies in no mapping; function is nil if
// it has no name. They point into the Frames.
func (t *FrameTable) Find(pid uint32, addr, time uint64) (*Mapping, *Function) {
	best := -1
	for _, i := range t.mappings[pid] {
		m := &t.f.Mappings[i]
		if m.Start > addr {
			break
		}
		if addr < m.End && m.Since <= time && (best < 0 || m.Since >= t.f.Mappings[best].Since) {
			best = i
		}
	}
	if best < 0 {
		return nil, nil
	}
	list := t.functions[best]
	n, found := slices.BinarySearchFunc(list, addr, func(i int, addr uint64) int { return cmp.Compare(t.f.Functions[i].Start, addr) })
	if !found {
		n--
	}
	if n < 0 || t.f.Functions[list[n]].End <= addr {
		return &t.f.Mappings[best], nil
	}
	return &t.f.Mappings[best], &t.f.Functions[list[n]]
}
