package retain

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Store is an open folder of traces. Its methods may be called by several goroutines at the same time.
type Store struct {
	opts   Options
	euid   int
	base   *os.File // Options.Dir, locked
	tmp    *os.File
	free   func() (int64, error) // of the disk
	step   func(name string)     // tests: called between steps that a crash could separate
	nextID int                   // of slots; guarded by mu

	mu      sync.Mutex
	closed  bool
	entries map[string]*Entry // by UID/NAME
	slots   map[*Slot]bool
	stats   Stats
}

// Open takes hold of a folder of traces: it makes the folder if necessary, removes what a crash left, reads what is kept,
// and removes what the limits no longer allow. It fails with ErrBusy or ErrUnsafe.
func Open(o Options) (*Store, error) {
	switch {
	case o.Keep == "":
		o.Keep = KeepWorst
	case o.Keep != KeepWorst && o.Keep != KeepFirst && o.Keep != KeepCampaign:
		return nil, fmt.Errorf("keep %q: it is worst, first or campaign", o.Keep)
	}
	if (o.Keep == KeepCampaign) != (o.Campaign != "") {
		return nil, errors.New("keep campaign needs the name of a campaign, and no other choice takes one")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, fmt.Errorf("the folder of traces %q: %w", o.Dir, errors.Join(err, os.ErrInvalid))
	}
	o.Dir = dir
	s := &Store{opts: o, euid: os.Geteuid(), entries: map[string]*Entry{}, slots: map[*Slot]bool{},
		step: func(string) {}, stats: Stats{Refused: map[Reason]uint64{}, Removed: map[Reason]uint64{}}}
	s.free = s.statfs
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("the folder of traces: %w", err)
	}
	return s, nil
}

func (s *Store) open() (err error) {
	if err := os.MkdirAll(filepath.Dir(s.opts.Dir), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o700)
	if s.euid == 0 {
		mode = 0o711 // users reach their own folders, and see no others
	}
	if err := os.Mkdir(s.opts.Dir, mode); err == nil {
		err = os.Chmod(s.opts.Dir, mode) // whatever the umask is
		if err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	if s.base, err = os.Open(s.opts.Dir); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(s.base.Fd()), &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%w: %s is not a folder", ErrUnsafe, s.opts.Dir)
	case int(st.Uid) != s.euid:
		return fmt.Errorf("%w: %s belongs to user %d", ErrUnsafe, s.opts.Dir, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%w: others can write to %s", ErrUnsafe, s.opts.Dir)
	}
	if err := unix.Flock(int(s.base.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			return fmt.Errorf("%w: %s", ErrBusy, s.opts.Dir)
		}
		return fmt.Errorf("lock %s: %w", s.opts.Dir, err)
	}
	if s.tmp, err = makeDir(s.base, tmpDir, s.euid, s.euid); err != nil {
		return err
	}
	if st, err := s.tmp.Stat(); err != nil {
		return err
	} else if st.Mode().Perm() != 0o700 {
		if err := s.tmp.Chmod(0o700); err != nil {
			return err
		}
	}
	if err := s.clean(); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	return s.Sweep(s.now())
}

// Close lets the folder go. Slots that are open are aborted.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for slot := range s.slots {
		errs = append(errs, slot.discard())
	}
	if s.tmp != nil {
		errs = append(errs, s.tmp.Close())
	}
	if s.base != nil {
		errs = append(errs, s.base.Close())
	}
	return errors.Join(errs...)
}

func (s *Store) now() time.Time {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	return time.Now()
}

func (s *Store) statfs() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(s.base.Fd()), &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", s.opts.Dir, err)
	}
	return int64(min(st.Bavail, math.MaxInt64/uint64(st.Bsize)) * uint64(st.Bsize)), nil
}

// Prepare makes the folder of a user, so that the user has where to put a file of consent. It holds nothing.
func (s *Store) Prepare(uid int) error {
	if err := s.mayOwn(uid); err != nil {
		return err
	}
	d, err := makeDir(s.base, strconv.Itoa(uid), uid, s.euid)
	if err != nil {
		return fmt.Errorf("the folder of user %d: %w", uid, err)
	}
	return d.Close()
}

func (s *Store) mayOwn(uid int) error {
	if s.euid != 0 && uid != s.euid {
		return refused(ReasonOwner, "the program is user %d's, and only root can give it away; run braid as root or as that user", uid)
	}
	return nil
}

// List returns what is kept, the oldest first.
func (s *Store) List() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Entry
	for _, e := range s.entries {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Name, b.Name)) })
	return out
}

// Stats returns counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Traces: len(s.entries), Refused: map[Reason]uint64{}, Removed: map[Reason]uint64{}}
	for _, e := range s.entries {
		st.Bytes += e.Bytes
	}
	for r, n := range s.stats.Refused {
		st.Refused[r] = n
	}
	for r, n := range s.stats.Removed {
		st.Removed[r] = n
	}
	return st
}

// Sweep removes traces that are too old, and what the limits do not allow. Call it now and then, and after the clock was
// set: times are the wall clock's.
func (s *Store) Sweep(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrDone
	}
	s.forget()
	return s.remove(s.opts.excess(s.kept(), now))
}

func (s *Store) kept() []*Entry {
	out := make([]*Entry, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, e)
	}
	return out
}

// remove removes traces, and stops at the first that can not be removed: room that was not made can not be used.
func (s *Store) remove(goes map[*Entry]Reason) error {
	for _, e := range s.kept() {
		if r := goes[e]; r != "" {
			if err := s.drop(e.UID, e.Name); err != nil {
				return fmt.Errorf("removing a trace: %w", err)
			}
			delete(s.entries, e.key())
			s.stats.Removed[r]++
		}
	}
	return nil
}

// forget drops traces from the index that somebody has removed.
func (s *Store) forget() {
	for key, e := range s.entries {
		var st unix.Stat_t
		err := unix.Fstatat(int(s.base.Fd()), filepath.Join(strconv.Itoa(e.UID), e.Name), &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.ENOENT || err == unix.ENOTDIR {
			delete(s.entries, key)
			s.stats.Removed[ReasonGone]++
		}
	}
}

func (e *Entry) key() string { return strconv.Itoa(e.UID) + "/" + e.Name }
