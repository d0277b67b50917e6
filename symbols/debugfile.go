package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// maxDebugFile bounds how much is read to check a debug file's CRC, in bytes.
const maxDebugFile = 8 << 30

// debugRoot is where distributions put separate debug files.
const debugRoot = "/usr/lib/debug"

// loader reads the images of modules.
type loader struct {
	opts  Options
	cache map[string]*Image // by device and inode, or build id
}

// load reads the module's image, and fills in what was not known of the module.
func (ld *loader) load(m *Module) (*Image, error) {
	f, l, err := opener{ld.opts.Root}.module(m)
	if err != nil {
		if img := ld.fromDebugFile(m); img != nil {
			return img, nil
		}
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !m.Known {
		bias, ok := l.img.Bias(m.Mapping)
		if !ok {
			return nil, errors.New("ELF: no segment of the file fits the mapping")
		}
		m.Known, m.Bias, m.BuildID = true, bias, l.img.BuildID
	}
	m.File = fileID(st)
	key := fmt.Sprintf("%x.%x.%x.%x", m.File.Dev, m.File.Ino, m.File.Size, m.File.MtimeNs)
	if img := ld.cache[key]; img != nil {
		return img, nil
	}
	l.readOwnTables()
	if !l.hasSym && !ld.opts.NoDebugFiles {
		ld.readDebugFile(m, l)
	}
	img := l.finish()
	ld.cache[key] = img
	return img, nil
}

// fromDebugFile makes an image of the debug file alone, for a module whose own file is gone. The debug file has the
// same segments.
func (ld *loader) fromDebugFile(m *Module) *Image {
	if !m.Known || m.BuildID == "" || ld.opts.NoDebugFiles {
		return nil
	}
	if img := ld.cache[m.BuildID]; img != nil {
		return img
	}
	for _, path := range ld.buildIDPaths(m.BuildID) {
		f, st, err := openDebug("", path)
		if err != nil {
			continue
		}
		l, err := newImageReader(f, st.Size())
		if err == nil && l.img.BuildID == m.BuildID && l.readTable(l.elf, elf.SHT_SYMTAB, path) {
			f.Close()
			img := l.finish()
			ld.cache[m.BuildID] = img
			return img
		}
		f.Close()
	}
	return nil
}

// roots lists the directories that hold debug files, the user's first.
func (ld *loader) roots() []string {
	roots := append([]string(nil), ld.opts.DebugRoots...)
	if ld.opts.Root != "" {
		roots = append(roots, filepath.Join(ld.opts.Root, debugRoot))
	}
	return append(roots, debugRoot)
}

// buildIDPaths lists where a file with this build id may be (gdb manual, "Separate Debug Files").
func (ld *loader) buildIDPaths(id string) []string {
	if len(id) < 4 {
		return nil
	}
	var paths []string
	for _, root := range ld.roots() {
		base := filepath.Join(root, ".build-id", id[:2], id[2:])
		paths = append(paths, base+".debug", base)
	}
	return paths
}

// readDebugFile adds the functions of the separate debug file, if there is one that belongs to the image.
func (ld *loader) readDebugFile(m *Module, l *imageReader) {
	if l.img.BuildID != "" {
		for _, path := range ld.buildIDPaths(l.img.BuildID) {
			if l.addDebugFile("", path, nil) {
				return
			}
		}
	}
	name, crc := l.elf.debugLink()
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return // a link is a plain file name; anything else was made to lead elsewhere
	}
	type place struct{ root, path string }
	var places []place
	dir := filepath.Dir(m.Path)
	roots := []string{ld.opts.Root}
	if m.Pid != 0 {
		roots = []string{fmt.Sprintf("/proc/%d/root", m.Pid), ld.opts.Root}
	}
	for _, root := range roots {
		places = append(places, place{root, filepath.Join(dir, name)}, place{root, filepath.Join(dir, ".debug", name)})
	}
	for _, root := range ld.roots() {
		places = append(places, place{"", filepath.Join(root, dir, name)})
	}
	for _, p := range places {
		if l.addDebugFile(p.root, p.path, &crc) {
			return
		}
	}
}

// addDebugFile reads .symtab of a debug file whose CRC-32 is *crc, or, if crc is nil, whose build id is the image's. It
// reports whether it did; a file that is there but wrong is added to the image's problems.
func (l *imageReader) addDebugFile(root, path string, crc *uint32) bool {
	f, st, err := openDebug(root, path)
	if err != nil {
		return false
	}
	defer f.Close()
	fail := func(err error) bool {
		l.problem(fmt.Errorf("debug file %s: %w", path, err))
		return false
	}
	if crc != nil {
		h := crc32.NewIEEE()
		if n, err := io.Copy(h, io.LimitReader(f, maxDebugFile)); err != nil || n != st.Size() {
			return fail(fmt.Errorf("read all of it: %d of %d bytes (%w)", n, st.Size(), err))
		}
		if h.Sum32() != *crc {
			return fail(fmt.Errorf("its CRC is %08x, the program was linked to one with %08x", h.Sum32(), *crc))
		}
	}
	d, err := openELF(f, st.Size())
	if err != nil {
		return fail(err)
	}
	if d.sectErr != nil {
		return fail(d.sectErr)
	}
	if id := d.buildID(); crc == nil && id != l.img.BuildID {
		return fail(fmt.Errorf("its build id is %s, that of the program %s", orNone(id), l.img.BuildID))
	}
	if d.machine != l.elf.machine || d.is64 != l.elf.is64 {
		return fail(errors.New("it is for another processor"))
	}
	if !l.readTable(d, elf.SHT_SYMTAB, path) {
		return false
	}
	l.hasSym = true
	return true
}

func openDebug(root, path string) (*os.File, os.FileInfo, error) {
	f, err := openIn(root, path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}
