package symbols

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Limits of ParseMaps. A path has at most PATH_MAX (4096) bytes, of which each may be escaped to 4.
const (
	maxMapsLine = 4*4096 + 256
	maxMappings = 1 << 20
)

// ErrNoMappings says that a process exists but has no memory: a kernel thread, or a process that is ending.
var ErrNoMappings = errors.New("the process has no mappings: it is a kernel thread or has ended")

// Mapping is one line of /proc/PID/maps (fs/proc/task_mmu.c show_map_vma, Linux 6.18).
type Mapping struct {
	Start, End uint64 // run-time addresses, half open
	Offset     uint64 // of Start in the file, bytes
	Exec       bool   // the mapping can be executed
	Dev        uint64 // major<<32 | minor of the file's superblock, which need not be what stat says (btrfs, overlayfs)
	Inode      uint64 // 0 where no file is mapped
	Path       string // as the process sees it; "" for anonymous memory, "[vdso]" and the like for special areas
	Deleted    bool   // the file has been unlinked or replaced since; Path is without the kernel's " (deleted)"
}

// File reports whether a file that can be opened again is mapped.
func (m Mapping) File() bool {
	return m.Inode != 0 && strings.HasPrefix(m.Path, "/")
}

// ParseMaps parses the text of /proc/PID/maps. The kernel escapes newlines in paths as \012 and nothing else, so a path
// that contains these four characters literally is taken for one with a newline; likewise, a path that really ends in
// " (deleted)" is taken for a deleted file. On an error, the mappings of the lines before it are returned too.
func ParseMaps(r io.Reader) ([]Mapping, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxMapsLine)
	var maps []Mapping
	for n := 1; sc.Scan(); n++ {
		if len(maps) == maxMappings {
			return maps, fmt.Errorf("maps line %d: more than %d mappings", n, maxMappings)
		}
		m, err := parseMapsLine(sc.Text())
		if err != nil {
			return maps, fmt.Errorf("maps line %d: %w", n, err)
		}
		maps = append(maps, m)
	}
	if err := sc.Err(); err != nil {
		return maps, fmt.Errorf("maps line %d: %w", len(maps)+1, err)
	}
	return maps, nil
}

// parseMapsLine parses "start-end perms offset major:minor inode     path".
func parseMapsLine(line string) (Mapping, error) {
	var m Mapping
	field := func() string {
		f, rest, _ := strings.Cut(line, " ")
		line = rest
		return f
	}
	addrs, perms, offset, dev, inode := field(), field(), field(), field(), field()
	lo, hi, _ := strings.Cut(addrs, "-")
	major, minor, _ := strings.Cut(dev, ":")
	var maj, min uint64
	for _, f := range []struct {
		what, text string
		base, bits int
		to         *uint64
	}{
		{"start", lo, 16, 64, &m.Start},
		{"end", hi, 16, 64, &m.End},
		{"offset", offset, 16, 64, &m.Offset},
		{"device", major, 16, 32, &maj},
		{"device", minor, 16, 32, &min},
		{"inode", inode, 10, 64, &m.Inode},
	} {
		v, err := strconv.ParseUint(f.text, f.base, f.bits)
		if err != nil {
			return m, fmt.Errorf("bad %s %.40q", f.what, f.text)
		}
		*f.to = v
	}
	if m.Start >= m.End {
		return m, fmt.Errorf("empty range %#x-%#x", m.Start, m.End)
	}
	if len(perms) != 4 {
		return m, fmt.Errorf("bad permissions %.40q", perms)
	}
	m.Exec = perms[2] == 'x'
	m.Dev = maj<<32 | min
	m.Path = strings.TrimLeft(line, " ")
	if m.Inode != 0 || strings.HasPrefix(m.Path, "/") {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, " (deleted)")
		m.Path = strings.ReplaceAll(m.Path, `\012`, "\n")
	}
	return m, nil
}

// ReadMaps reads and parses /proc/PID/maps. The kernel hands the text out in pages, so a process that maps memory at
// the same time may be seen in between. It returns fs.ErrNotExist (wrapped) when there is no such process.
func ReadMaps(pid int) ([]Mapping, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("read the mappings of process %d: %w", pid, err)
	}
	defer f.Close()
	maps, err := ParseMaps(f)
	if err != nil {
		return nil, fmt.Errorf("read the mappings of process %d: %w", pid, err)
	}
	if len(maps) == 0 {
		return nil, fmt.Errorf("read the mappings of process %d: %w", pid, ErrNoMappings)
	}
	return maps, nil
}
