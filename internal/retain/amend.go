package retain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Amend puts a summary in the place of the one that an entry was committed with: an analysis takes longer than the trace
// should wait for. The old one is there until the new one is whole. An entry that was removed meanwhile is an error.
func (s *Store) Amend(e *Entry, summary any) error {
	side, err := sidecar(*e, summary)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrDone
	}
	s.nextID++
	name := fmt.Sprintf("summary-%d", s.nextID)
	s.mu.Unlock()
	if err := writeFile(s.tmp, name, side, e.UID); err != nil { // waits for the disk, so without the lock
		return errors.Join(err, unlink(s.tmp, name, 0))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.amend(e, name); err != nil {
		return errors.Join(err, unlink(s.tmp, name, 0))
	}
	return nil
}

// amend moves the file to its place, if the entry is still there. What a user may have put in its place is replaced, and
// not followed.
func (s *Store) amend(e *Entry, name string) error {
	kept := s.entries[e.key()]
	if s.closed || kept == nil {
		return ErrDone
	}
	user, err := openDir(s.base, strconv.Itoa(e.UID))
	if err != nil {
		return err
	}
	defer user.Close()
	dir, err := openDir(user, e.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if !ownedBy(dir, e.UID) {
		return fmt.Errorf("%s does not belong to user %d", dir.Name(), e.UID)
	}
	if err := unix.Renameat(int(s.tmp.Fd()), name, int(dir.Fd()), e.Name+sideSuffix); err != nil {
		return &os.LinkError{Op: "rename", Old: name, New: filepath.Join(dir.Name(), e.Name+sideSuffix), Err: err}
	}
	return errors.Join(dir.Sync(), s.describe(dir, kept))
}

// sidecar is the content of an entry's JSON file.
func sidecar(e Entry, summary any) ([]byte, error) {
	raw, err := json.Marshal(summary)
	if err != nil {
		return nil, fmt.Errorf("the summary: %w", err)
	}
	side, err := json.MarshalIndent(Sidecar{SidecarVersion, e, raw}, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("the summary: %w", err)
	}
	if len(side) >= maxSidecar {
		return nil, fmt.Errorf("the summary has %d bytes, more than %d", len(side), maxSidecar)
	}
	return append(side, '\n'), nil
}

// writeFile makes a user's file in a folder that only the daemon can enter, and waits until it is on the disk.
func writeFile(dir *os.File, name string, content []byte, uid int) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	_, err = f.Write(content)
	return errors.Join(err, give(f, uid))
}

func give(f *os.File, uid int) error {
	return errors.Join(f.Chmod(0o600), f.Chown(uid, -1), f.Sync(), f.Close())
}
