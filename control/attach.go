package control

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"braid/inline/runtime"
)

// ErrNoStubs says that a process carries no runtime, so there are no methods to record in it.
var ErrNoStubs = errors.New("no stubs: the program was not built with braid cc")

// Attach maps the arenas of a running process. Usually there is one.
func Attach(pid int) ([]*Area, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("process %d does not exist", pid)
	}
	if err != nil {
		return nil, fmt.Errorf("looking at process %d: %w: run braid as root, or as the user that owns it (braid doctor: ptrace)", pid, err)
	}
	defer maps.Close()
	var out []*Area
	done := map[string]bool{}
	sc := bufio.NewScanner(maps)
	for end := ""; sc.Scan(); {
		f := strings.Fields(sc.Text())
		from, to, _ := strings.Cut(f[0], "-")
		first := from != end // an area is several mappings, one behind the other
		if end = ""; len(f) < 6 || f[5] != runtime.MemoryName {
			continue
		}
		end = to
		off, err := strconv.ParseInt(f[2], 16, 64)
		if err != nil || !strings.HasPrefix(f[1], "rw-s") || !begins(off, first) || done[f[2]+f[4]] {
			continue
		}
		done[f[2]+f[4]] = true
		m, err := openMapping(pid, f[0], f[4])
		if err != nil {
			return out, err
		}
		var a *Area
		if err = claim(m.f, off, 1); err == nil {
			a, err = mapArea(m, off)
		}
		m.close()
		if err != nil {
			return out, fmt.Errorf("process %d: %w", pid, err)
		}
		a.pid = pid
		out = append(out, a)
	}
	if err := sc.Err(); err != nil {
		return out, fmt.Errorf("reading the mappings of process %d: %w", pid, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoStubs)
	}
	return out, nil
}

// begins reports whether a mapping of a memory file from off on, which is or is not the first of several that lie one behind
// the other, may be the beginning of an area. A ring may lie at any multiple of its size.
func begins(off int64, first bool) bool {
	if off >= runtime.AreaFirst {
		return (off-runtime.AreaFirst)%runtime.AreaStride == 0
	}
	return off == 0 || first && off%runtime.NarrowStride == 0
}

// openMapping opens the memory file behind a mapping: through map_files, which needs CAP_SYS_ADMIN or
// CAP_CHECKPOINT_RESTORE (fs/proc/base.c, proc_map_files_get_link), else through a descriptor that the process still has.
func openMapping(pid int, span, inode string) (*memory, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/map_files/%s", pid, span), os.O_RDWR, 0)
	if err != nil {
		f, err = openDescriptor(pid, inode)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the arena of process %d: %w", pid, err)
	}
	if err := seal(f); err != nil {
		f.Close()
		return nil, err
	}
	return (&memory{f: f}).open(), nil
}

func openDescriptor(pid int, inode string) (*os.File, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: run braid as root, or as the user that owns the process (braid doctor: ptrace)", err)
	}
	for _, e := range fds {
		path := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, runtime.MemoryName) {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if strconv.FormatUint(inodeOf(f), 10) == inode {
			return f, nil
		}
		f.Close()
	}
	return nil, errors.New("it keeps no descriptor of it (closed by the program, or started under another recorder): run braid as root")
}
