package symbols

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Range is a half-open interval of run-time addresses.
type Range struct {
	Start, End uint64
}

// FileID is what stat said about a module's file; the zero value is unknown.
type FileID struct {
	Dev, Ino uint64
	Size     int64 // bytes; 0 if unknown
	MtimeNs  int64 // ns since 1970; 0 if unknown
}

// Module is a file that was mapped into a process with at least one executable mapping, or a special executable area
// such as [vdso]. It is plain data and outlives the process.
type Module struct {
	Path    string // as the process saw it, or the kernel's name of a special area
	Deleted bool   // the file was unlinked or replaced when the module was found
	Pid     int    // a process through which the file can be opened while it lives; 0 for none

	// Known says that Bias and BuildID are known, an empty BuildID meaning that the file has none. Otherwise they are
	// found when a Table is built, from Mapping.
	Known   bool
	Bias    uint64 // run-time address minus link-time address, modulo 2^64
	BuildID string // lower-case hex

	// Ranges are the executable mappings. Empty: the file's executable segments at Bias.
	Ranges  []Range
	Mapping Mapping // the first executable mapping; the zero value for a registered module
	File    FileID
	// Held is the file itself, if Hold has opened it while it was there. The table reads it and leaves it open.
	Held *os.File

	// Instrumented says that the module's functions write records, so that Resolve32 answers for them.
	Instrumented bool
}

// Registered is a module that an instrumented program's runtime described itself. buildID is empty if the program was
// linked without one.
func Registered(path string, bias uint64, buildID []byte) Module {
	path, deleted := strings.CutSuffix(path, " (deleted)") // what /proc/self/exe may have said
	return Module{Path: path, Deleted: deleted, Known: true, Bias: bias, BuildID: hex.EncodeToString(buildID), Instrumented: true}
}

// Name is the path's last element, for display: it contains printable characters only.
func (m *Module) Name() string {
	return printable(filepath.Base(m.Path))
}

// ReadModules finds the modules of a live process, with biases and build ids. Files are opened for this once, through
// /proc/PID/map_files (needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE) so that deleted files and other mount namespaces
// are no obstacle, else through /proc/PID/root. A module whose file cannot be opened is returned with Known false.
func ReadModules(pid int) ([]Module, error) {
	maps, err := ReadMaps(pid)
	if err != nil {
		return nil, err
	}
	opener := opener{}
	return modulesOf(pid, maps, func(m *Module) (*Image, FileID) {
		f, l, err := opener.module(m)
		if err != nil {
			return nil, FileID{}
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return nil, FileID{}
		}
		return l.img, fileID(st)
	}), nil
}

// modulesOf groups the executable mappings of a process. header opens a module's file and returns nil if it cannot.
// Mappings of one file with different biases are different modules: a library can be loaded twice (dlmopen).
func modulesOf(pid int, maps []Mapping, header func(*Module) (*Image, FileID)) []Module {
	type fileKey struct {
		dev, ino uint64
		path     string
	}
	type moduleKey struct {
		fileKey
		bias uint64
	}
	type file struct {
		img *Image
		id  FileID
	}
	files := make(map[fileKey]file)
	index := make(map[moduleKey]int)
	var mods []Module
	for _, mp := range maps {
		if !mp.Exec || mp.Path == "" {
			continue
		}
		m := Module{Path: mp.Path, Deleted: mp.Deleted, Pid: pid, Mapping: mp, File: FileID{Dev: mp.Dev, Ino: mp.Inode}}
		key := moduleKey{fileKey: fileKey{mp.Dev, mp.Inode, mp.Path}}
		if mp.File() {
			f, seen := files[key.fileKey]
			if !seen {
				f.img, f.id = header(&m)
				files[key.fileKey] = f
			}
			if f.img != nil {
				m.Bias, m.Known = f.img.Bias(mp)
				m.BuildID, m.File = f.img.BuildID, f.id
				key.bias = m.Bias
			}
		} else {
			key.bias = mp.Start // special areas are not grouped
		}
		r := Range{mp.Start, mp.End}
		if i, seen := index[key]; seen {
			mods[i].Ranges = append(mods[i].Ranges, r)
			continue
		}
		m.Ranges = []Range{r}
		index[key] = len(mods)
		mods = append(mods, m)
	}
	return mods
}

func fileID(st fs.FileInfo) FileID {
	id := FileID{Size: st.Size(), MtimeNs: st.ModTime().UnixNano()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		id.Dev, id.Ino = uint64(sys.Dev), sys.Ino
	}
	return id
}

// matches says whether a file that was found under the module's name is the one that was mapped. exact says that it was
// opened through the mapping itself.
func (m *Module) matches(st fs.FileInfo, img *Image, exact bool) error {
	id := fileID(st)
	switch {
	case m.Known && m.BuildID != img.BuildID:
		return fmt.Errorf("%w: its build id is %s, that of the traced file %s", ErrReplaced, orNone(img.BuildID), orNone(m.BuildID))
	case m.Known && m.BuildID != "", exact && !m.Known:
		return nil
	case m.Deleted && !exact:
		return ErrDeleted
	// Inode numbers alone are compared: maps shows the device of the superblock, stat that of the subvolume (btrfs) or
	// overlay.
	case m.File.Ino != 0 && m.File.Ino != id.Ino,
		m.File.Size != 0 && m.File.Size != id.Size,
		m.File.MtimeNs != 0 && m.File.MtimeNs != id.MtimeNs:
		return fmt.Errorf("%w: it is another file or was written to, and has no build id to tell; "+
			"link with -Wl,--build-id", ErrReplaced)
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "missing"
	}
	return id
}

// exeOf opens the executable of a process if that is the module's file.
func exeOf(m *Module) (*os.File, error) {
	link := fmt.Sprintf("/proc/%d/exe", m.Pid)
	target, err := os.Readlink(link)
	if err != nil {
		return nil, err
	}
	if strings.TrimSuffix(target, " (deleted)") != m.Path {
		return nil, fs.ErrNotExist
	}
	return openRegular(link)
}
