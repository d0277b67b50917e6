package retain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	tmpDir      = ".tmp"
	slotPrefix  = "slot-" // a trace being written
	gonePrefix  = "gone-" // a trace being removed: gone-UID-NAME
	traceSuffix = ".braid"
	sideSuffix  = ".json"
	maxSidecar  = 4 << 20
)

// openDir opens a folder by one name in another, and no symbolic link.
func openDir(parent *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(parent.Name(), name)), nil
}

// makeDir makes a folder of mode 0700 for a user, unless it is there, and opens it. A folder of somebody else's is an error.
func makeDir(parent *os.File, name string, uid, euid int) (*os.File, error) {
	merr := unix.Mkdirat(int(parent.Fd()), name, 0o700)
	if merr != nil && merr != unix.EEXIST {
		return nil, &os.PathError{Op: "mkdir", Path: filepath.Join(parent.Name(), name), Err: merr}
	}
	d, err := openDir(parent, name)
	if err != nil {
		return nil, err
	}
	if ownedBy(d, uid) {
		return d, nil
	}
	// Root's empty one is what a crash left between making it and giving it away.
	if ownedBy(d, euid) && euid == 0 && (merr == nil || isEmpty(d)) {
		if err = errors.Join(d.Chown(uid, -1), d.Sync(), parent.Sync()); err == nil {
			return d, nil
		}
	} else {
		err = fmt.Errorf("%s does not belong to user %d", d.Name(), uid)
	}
	d.Close()
	return nil, err
}

func ownedBy(f *os.File, uid int) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && int(st.Uid) == uid
}

func isEmpty(d *os.File) bool {
	names, err := list(d)
	return err == nil && len(names) == 0
}

// list returns a folder's names, however often it was read before.
func list(d *os.File) ([]string, error) {
	if _, err := d.Seek(0, 0); err != nil {
		return nil, err
	}
	return d.Readdirnames(-1)
}

// move renames within or between folders, and never replaces anything.
func move(from *os.File, old string, to *os.File, new string) error {
	err := unix.Renameat2(int(from.Fd()), old, int(to.Fd()), new, unix.RENAME_NOREPLACE)
	if err == unix.ENOSYS || err == unix.EINVAL {
		// The file system does not know the flag. What we move is a folder, which can only replace an empty one.
		err = unix.Renameat(int(from.Fd()), old, int(to.Fd()), new)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(from.Name(), old), New: filepath.Join(to.Name(), new), Err: err}
	}
	return nil
}

func unlink(dir *os.File, name string, flags int) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, flags); err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return nil
}

// drop removes a trace: its folder goes out of sight in one step, then its two files and the folder. If somebody has put
// anything else there, the folder with that goes back. A trace that is not there is no error.
func (s *Store) drop(uid int, name string) error {
	user, err := openDir(s.base, strconv.Itoa(uid))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer user.Close()
	gone := gonePrefix + strconv.Itoa(uid) + "-" + name
	if err := move(user, name, s.tmp, gone); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	s.step("moved away")
	return s.finishDrop(gone, user, name)
}

// finishDrop removes what was moved to .tmp.
func (s *Store) finishDrop(gone string, user *os.File, name string) error {
	d, err := openDir(s.tmp, gone)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return move(s.tmp, gone, user, name) // not what we put there
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := errors.Join(unlink(d, name+traceSuffix, 0), unlink(d, name+sideSuffix, 0)); err != nil {
		return err
	}
	s.step("emptied")
	if err := unlink(s.tmp, gone, unix.AT_REMOVEDIR); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return move(s.tmp, gone, user, name)
		}
		return err
	}
	return nil
}

// clean removes what a crash left in .tmp.
func (s *Store) clean() error {
	names, err := list(s.tmp)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range names {
		rest, ok := strings.CutPrefix(n, gonePrefix)
		id, name, ok2 := strings.Cut(rest, "-")
		uid, err := strconv.Atoi(id)
		if !ok || !ok2 || err != nil {
			errs = append(errs, removeAll(s.tmp, n))
			continue
		}
		user, err := makeDir(s.base, strconv.Itoa(uid), uid, s.euid)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, s.finishDrop(n, user, name))
		user.Close()
	}
	return errors.Join(errs...)
}

// removeAll removes a name in a folder, with all that is below, and follows no link.
func removeAll(dir *os.File, name string) error {
	root, err := os.OpenRoot(dir.Name())
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(name)
}
