package retain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// nameTime is how a trace's name begins: UTC, and without colons, which some file systems do not take.
const nameTime = "2006-01-02T15-04-05.000Z"

var nameForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z_[A-Za-z0-9.-]+_[A-Za-z0-9.-]+(_\d+)?$`)

// newName makes the name of a trace. Programs and triggers are named by others, so only harmless signs stay of them.
func newName(c *Candidate, n int) string {
	plain := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.') {
				return r
			}
			return '-'
		}, s)
		if s == "" {
			return "-"
		}
		return s[:min(len(s), 64)]
	}
	t := c.Time.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		t = time.Unix(0, 0).UTC()
	}
	name := t.Format(nameTime) + "_" + plain(c.Program) + "_" + plain(c.Trigger)
	if n > 1 {
		name += "_" + strconv.Itoa(n)
	}
	return name
}

// load makes the index from the files. What does not look like a trace of ours is left alone, and not counted.
func (s *Store) load() error {
	users, err := list(s.base)
	if err != nil {
		return err
	}
	for _, u := range users {
		uid, err := strconv.Atoi(u)
		if err != nil || strconv.Itoa(uid) != u || s.mayOwn(uid) != nil {
			continue
		}
		d, err := openDir(s.base, u)
		if err != nil {
			continue
		}
		if ownedBy(d, uid) {
			err = s.loadUser(d, uid)
		}
		d.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadUser(d *os.File, uid int) error {
	names, err := list(d)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !nameForm.MatchString(name) {
			continue
		}
		if e, err := s.loadEntry(d, uid, name); err == nil {
			s.entries[e.key()] = e
		}
	}
	return nil
}

// loadEntry reads one trace's description. The user can have written anything into it.
func (s *Store) loadEntry(user *os.File, uid int, name string) (*Entry, error) {
	d, err := openDir(user, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, st, err := openRegular(d, name+sideSuffix)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSidecar || int(st.Uid) != uid || !ownedBy(d, uid) {
		return nil, errors.New("not ours")
	}
	var side Sidecar
	if err := json.Unmarshal(b, &side); err != nil {
		return nil, err
	}
	e := &side.Entry
	if side.Version != SidecarVersion || e.Name != name || e.UID != uid {
		return nil, fmt.Errorf("%s describes another trace", name)
	}
	if err := s.describe(d, e); err != nil {
		return nil, err
	}
	return e, nil
}

// describe fills in what the files themselves say: sizes and paths.
func (s *Store) describe(d *os.File, e *Entry) error {
	dir := filepath.Join(s.opts.Dir, strconv.Itoa(e.UID), e.Name)
	e.Bytes, e.Trace, e.Summary = 0, "", ""
	for suffix, path := range map[string]*string{traceSuffix: &e.Trace, sideSuffix: &e.Summary} {
		var st unix.Stat_t
		err := unix.Fstatat(int(d.Fd()), e.Name+suffix, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "stat", Path: filepath.Join(dir, e.Name+suffix), Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return fmt.Errorf("%s is not a regular file", filepath.Join(dir, e.Name+suffix))
		}
		e.Bytes += st.Size
		*path = filepath.Join(dir, e.Name+suffix)
	}
	return nil
}
