package symbols

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Why a module has no names.
var (
	// ErrReplaced says that the file under the module's path is not the file that was traced.
	ErrReplaced = errors.New("the file was replaced since")
	// ErrDeleted says that the file was gone and could not be opened through the process.
	ErrDeleted = errors.New("the file was deleted, and it cannot be opened through the process any more")
	// ErrNoFile says that no file belongs to the module, such as [vdso].
	ErrNoFile = errors.New("no file is mapped there")
	// ErrStripped says that the file has no function symbols, and that no debug file with its build id was found.
	ErrStripped = errors.New("the file has no function symbols and no debug file was found; " +
		"keep the unstripped file, or install its debug package")
)

// opener finds a module's file.
type opener struct {
	root string // Options.Root
}

// candidate is one way to open a module's file.
type candidate struct {
	exact bool // opened through the process, not by name; still another file if the process id was reused
	open  func() (*os.File, error)
}

// module opens the first file that is the one the module was made from, and reads its headers. The caller closes it.
func (o opener) module(m *Module) (*os.File, *imageReader, error) {
	if m.Path == "" || m.Path[0] != '/' {
		return nil, nil, ErrNoFile
	}
	var first error // the most telling one: of a file that was there
	for _, c := range o.candidates(m) {
		f, l, err := tryOpen(m, c)
		if err == nil {
			return f, l, nil
		}
		if first == nil || errors.Is(first, fs.ErrNotExist) || errors.Is(first, fs.ErrPermission) {
			first = err
		}
	}
	if m.Deleted && errors.Is(first, fs.ErrNotExist) {
		first = ErrDeleted
	}
	return nil, nil, first
}

// Hold opens the file of a module that a process still maps, so that its symbols can be read when it has been unloaded and
// the file is gone. Where it is mapped is looked up in /proc/PID/maps, if Mapping does not say. The caller closes it.
func Hold(m Module) (*os.File, error) {
	if maps, err := ReadMaps(m.Pid); err == nil && m.Mapping.End == 0 {
		for _, mp := range maps {
			if len(m.Ranges) > 0 && mp.File() && mp.Start >= m.Ranges[0].Start && mp.Start < m.Ranges[0].End {
				m.Mapping = mp
				break
			}
		}
	}
	f, _, err := opener{}.module(&m)
	return f, err
}

func (o opener) candidates(m *Module) []candidate {
	var cs []candidate
	if m.Held != nil {
		cs = append(cs, candidate{true, func() (*os.File, error) {
			return openRegular(fmt.Sprintf("/proc/self/fd/%d", m.Held.Fd())) // with a place of its own to read from
		}})
	}
	if m.Pid != 0 {
		if mp := m.Mapping; mp.End != 0 {
			cs = append(cs, candidate{true, func() (*os.File, error) {
				return openRegular(fmt.Sprintf("/proc/%d/map_files/%x-%x", m.Pid, mp.Start, mp.End))
			}})
		}
		cs = append(cs,
			candidate{false, func() (*os.File, error) { return openIn(fmt.Sprintf("/proc/%d/root", m.Pid), m.Path) }},
			candidate{true, func() (*os.File, error) { return exeOf(m) }})
	}
	return append(cs, candidate{false, func() (*os.File, error) { return openIn(o.root, m.Path) }})
}

func tryOpen(m *Module, c candidate) (*os.File, *imageReader, error) {
	f, err := c.open()
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	l, err := newImageReader(f, st.Size())
	if err == nil {
		err = m.matches(st, l.img, c.exact)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, l, nil
}

// openIn opens a regular file below root ("" for this process's own). Absolute symbolic links stay within root, as they
// do for a process that lives there (openat2 with RESOLVE_IN_ROOT, Linux 5.6).
func openIn(root, path string) (*os.File, error) {
	if root == "" {
		return openRegular(path)
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // old kernel, or a seccomp filter that does not know it
		return openRegular(filepath.Join(root, path))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(root, path), Err: err}
	}
	return onlyRegular(os.NewFile(uintptr(fd), filepath.Join(root, path)))
}

// openRegular opens a file for reading and refuses devices and pipes, whose opening it does not wait for.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return onlyRegular(f)
}

func onlyRegular(f *os.File) (*os.File, error) {
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no regular file", f.Name())
	}
	return f, nil
}
