package sample

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"braid/internal/unwind"
	"braid/symbols"
)

// mapping is a stretch of executable memory of one process. It does not change, but for what was found out about it.
type mapping struct {
	pid   uint32
	since uint64 // CLOCK_BOOTTIME, ns; 0: before the recording
	m     symbols.Mapping
	key   fileKey
	file  *file // nil: not looked for yet, or none
	bias  uint64
	tried bool
	addrs map[uint64]struct{} // of frames in it
}

// part is where a mapping still is: later ones may have taken parts of it.
type part struct {
	start, end uint64
	of         *mapping
}

// space is the executable memory of one process.
type space struct {
	pid   uint32
	parts []part // in order of addresses, without overlap
	// executing says that the process has begun with a program, and has not been seen to run it.
	executing bool
	read      uint64 // number of the drain in which /proc was read last
}

// add puts a mapping over what was there.
func (s *space) add(m *mapping) {
	start, end := m.m.Start, m.m.End
	var out []part
	for _, p := range s.parts {
		if p.start < start {
			out = append(out, part{p.start, min(p.end, start), p.of})
		}
		if p.end > end {
			out = append(out, part{max(p.start, end), p.end, p.of})
		}
	}
	out = append(out, part{start, end, m})
	slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	s.parts = out
}

func (s *space) find(addr uint64) *mapping {
	i, found := slices.BinarySearchFunc(s.parts, addr, func(p part, addr uint64) int { return cmp.Compare(p.start, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= s.parts[i].end {
		return nil
	}
	return s.parts[i].of
}

// fork returns a copy for a child.
func (s *space) fork(pid uint32, time uint64) *space {
	c := &space{pid: pid}
	for _, p := range s.parts {
		m := *p.of
		m.pid, m.since, m.addrs = pid, time, nil
		m.m.Start, m.m.End = p.start, p.end
		m.m.Offset += p.start - p.of.m.Start
		c.parts = append(c.parts, part{p.start, p.end, &m})
	}
	return c
}

// spaces are the address spaces of all processes, and the files in them. One goroutine uses it.
type spaces struct {
	all    map[uint32]*space
	files  map[fileKey]*file
	vdso   *file
	used   []*mapping // those with frames, in the order in which they were met
	held   int
	drains uint64
}

func newSpaces() *spaces {
	s := &spaces{all: map[uint32]*space{}, files: map[fileKey]*file{}}
	s.vdso, _ = readVDSO()
	return s
}

func (s *spaces) of(pid uint32) *space {
	p := s.all[pid]
	if p == nil {
		p = &space{pid: pid}
		s.all[pid] = p
	}
	return p
}

// mapped notes a mapping that a process made.
func (s *spaces) mapped(r mmapRecord, time uint64) {
	m := symbols.Mapping{Start: r.start, End: r.end, Offset: r.off, Exec: true, Dev: uint64(r.major)<<32 | uint64(r.minor), Inode: r.inode}
	m.Path, m.Deleted = strings.CutSuffix(r.path, " (deleted)")
	s.of(r.pid).add(newMapping(r.pid, m, time))
}

func newMapping(pid uint32, m symbols.Mapping, since uint64) *mapping {
	return &mapping{pid: pid, since: since, m: m, key: fileKey{m.Dev, m.Inode, m.Path}}
}

// scan reads a process's mappings from /proc. Those that are known already stay. It reports whether the process is there.
func (s *spaces) scan(pid uint32, since uint64) bool {
	p := s.of(pid)
	p.read = s.drains
	maps, err := symbols.ReadMaps(int(pid))
	if err != nil {
		return false
	}
	for _, m := range maps {
		if !m.Exec {
			continue
		}
		if old := p.find(m.Start); old != nil && old.m.End >= m.End && old.m.Path == m.Path && old.m.Offset+m.Start-old.m.Start == m.Offset {
			continue
		}
		p.add(newMapping(pid, m, since))
	}
	return true
}

// at returns the mapping at a process's address, or nil. A process is asked again for what is not known, once a drain.
func (s *spaces) at(pid uint32, addr, time uint64) *mapping {
	p := s.of(pid)
	m := p.find(addr)
	if m == nil && p.read != s.drains {
		s.scan(pid, time)
		m = p.find(addr)
	}
	if m != nil && !m.tried {
		m.tried = true
		s.resolve(m)
	}
	return m
}

// resolve finds the mapping's file.
func (s *spaces) resolve(m *mapping) {
	if m.m.Path == "[vdso]" {
		if m.file = s.vdso; m.file != nil {
			m.bias = m.m.Start
		}
		return
	}
	if m.m.Inode == 0 || !strings.HasPrefix(m.m.Path, "/") {
		return
	}
	f, ok := s.files[m.key]
	if !ok {
		f = openFile(m.key, int(m.pid), m.m, s.held < maxHeld)
		if f.held != nil {
			s.held++
		}
		if f.opened || processGone(m.pid) {
			s.files[m.key] = f
		}
	}
	if f.opened {
		m.file, m.bias = f, f.bias(m.m)
	}
}

func processGone(pid uint32) bool {
	_, err := os.Lstat(procPath(pid, ""))
	return err != nil
}

// code is what an unwinder needs to know of an address.
func (s *spaces) code(pid uint32, addr, time uint64) unwind.Code {
	m := s.at(pid, addr, time)
	if m == nil || m.file == nil {
		return unwind.Code{Known: m != nil && m.m.File()}
	}
	f := m.file
	return unwind.Code{Known: true, Table: f.table, Bias: m.bias, Trampoline: f.trampoline != 0 && addr-m.bias == f.trampoline}
}

// note remembers that a frame lies at an address, so that it gets a name.
func (s *spaces) note(pid uint32, addr, time uint64) {
	m := s.at(pid, addr, time)
	if m == nil {
		return
	}
	if m.addrs == nil {
		m.addrs = map[uint64]struct{}{}
		s.used = append(s.used, m)
	}
	m.addrs[addr] = struct{}{}
}

func (s *spaces) close() {
	for _, f := range s.files {
		if f.held != nil {
			f.held.Close()
		}
	}
}
