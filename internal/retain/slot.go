package retain

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Slot is the right to write one trace. It ends with Commit or Abort, one of which must be called. A slot may be used from
// one goroutine at a time.
type Slot struct {
	// Path is where to write the trace, to be closed before Commit; its folder holds nothing else. It is on the same
	// disk as the trace will be, in a folder that only the daemon can enter.
	Path string

	s     *Store
	entry Entry
	held  int64  // bytes held for it
	name  string // of its folder in .tmp
	dir   *os.File
	done  bool
}

// Admit asks for a slot. It makes room for c.Bytes: less severe traces may be gone when it returns. If the trace is not to
// be kept, the error is a *RefusedError; nothing was removed then. Any other error means that the folder does not work.
func (s *Store) Admit(c Candidate) (*Slot, error) {
	if math.IsNaN(c.Score) || math.IsInf(c.Score, 0) {
		c.Score = 0 // JSON has no name for it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, err := s.admit(c)
	if err != nil {
		s.count(err)
		return nil, err
	}
	s.slots[slot] = true
	return slot, nil
}

// count counts a trace that is not kept.
func (s *Store) count(err error) {
	var r *RefusedError
	if errors.As(err, &r) {
		s.stats.Refused[r.Reason]++
	} else {
		s.stats.Refused[ReasonFailed]++
	}
}

func (s *Store) admit(c Candidate) (*Slot, error) {
	if s.closed {
		return nil, ErrDone
	}
	if err := s.mayOwn(c.UID); err != nil {
		return nil, err
	}
	if err := s.Consent(c.Program, c.UID); err != nil {
		return nil, err
	}
	e := Entry{Program: c.Program, UID: c.UID, Trigger: c.Trigger, Campaign: c.Campaign,
		Severity: c.Severity, Score: c.Score, Time: c.Time.Round(0), Bytes: max(c.Bytes, 0)}
	if err := s.makeRoom(&e, nil); err != nil {
		return nil, err
	}
	user, err := makeDir(s.base, strconv.Itoa(c.UID), c.UID, s.euid)
	if err != nil {
		return nil, fmt.Errorf("the folder of user %d: %w", c.UID, err)
	}
	defer user.Close()
	if e.Name, err = s.freeName(&c, user); err != nil {
		return nil, err
	}
	s.nextID++
	slot := &Slot{s: s, entry: e, held: e.Bytes, name: slotPrefix + strconv.Itoa(s.nextID)}
	if slot.dir, err = makeDir(s.tmp, slot.name, s.euid, s.euid); err != nil {
		return nil, err
	}
	slot.Path = filepath.Join(s.opts.Dir, tmpDir, slot.name, e.Name+traceSuffix)
	return slot, nil
}

// freeName finds a name that no trace has, nor any that is being written, nor anything else in the user's folder.
func (s *Store) freeName(c *Candidate, user *os.File) (string, error) {
	for n := 1; n < 1000; n++ {
		name := newName(c, n)
		taken := false
		for o := range s.slots {
			taken = taken || o.entry.UID == c.UID && o.entry.Name == name
		}
		var st unix.Stat_t
		if !taken && unix.Fstatat(int(user.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			return name, nil
		}
	}
	return "", fmt.Errorf("no free name like %s", newName(c, 1))
}

// makeRoom removes what has to go for e. Before it is written (own is nil), nothing goes as long as there is room to write.
func (s *Store) makeRoom(e *Entry, own *Slot) error {
	s.forget()
	r := room{now: s.now()}
	var err error
	if r.free, err = s.free(); err != nil {
		return err
	}
	for o := range s.slots {
		if o != own {
			r.reserved += o.held
		}
	}
	if own != nil {
		r.free += e.Bytes // it is on the disk already
	}
	kept := s.kept()
	goes, no := s.opts.plan(kept, e, r)
	if no != nil {
		return no
	}
	if own == nil && s.opts.fits(kept, e, r) {
		return nil // whoever goes by number goes when the new one comes
	}
	return s.remove(goes)
}

// Commit keeps what was written: the trace at Path, if there is one and not only summaries are kept, and the summary, which
// is encoded as JSON. It returns the entry under its final name. Consent and limits are asked again: a *RefusedError says
// that the trace is not kept after all. After an error nothing is left of it.
func (t *Slot) Commit(summary any) (*Entry, error) {
	s := t.s
	s.mu.Lock()
	done := t.done || s.closed
	s.mu.Unlock()
	if done {
		return nil, ErrDone
	}
	err := t.finish(summary) // waits for the disk, so without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.done || s.closed {
		return nil, ErrDone
	}
	if err == nil {
		err = t.publish()
	}
	if err != nil {
		s.count(err)
		return nil, errors.Join(err, t.discard())
	}
	t.close()
	s.entries[t.entry.key()] = &t.entry
	e := t.entry
	return &e, nil
}

// finish makes the slot's folder what the user will have.
func (t *Slot) finish(summary any) error {
	side, err := sidecar(t.entry, summary)
	if err != nil {
		return err
	}
	names, err := list(t.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n != t.entry.Name+traceSuffix || t.s.opts.SummaryOnly {
			if err := removeAll(t.dir, n); err != nil {
				return err
			}
		}
	}
	if err := writeFile(t.dir, t.entry.Name+sideSuffix, side, t.entry.UID); err != nil {
		return err
	}
	t.s.step("summary written")
	trace, _, err := openRegular(t.dir, t.entry.Name+traceSuffix)
	if err == nil {
		err = t.give(trace)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	t.s.step("trace given")
	if err := errors.Join(t.dir.Chown(t.entry.UID, -1), t.dir.Sync()); err != nil {
		return err
	}
	return t.s.describe(t.dir, &t.entry)
}

// give makes a file the user's, waits until it is on the disk, and closes it.
func (t *Slot) give(f *os.File) error { return give(f, t.entry.UID) }

// publish makes room and moves the folder to its place.
func (t *Slot) publish() error {
	s := t.s
	if err := s.Consent(t.entry.Program, t.entry.UID); err != nil {
		return err
	}
	if err := s.makeRoom(&t.entry, t); err != nil {
		return err
	}
	s.step("room made")
	user, err := openDir(s.base, strconv.Itoa(t.entry.UID))
	if err != nil {
		return err
	}
	defer user.Close()
	if !ownedBy(user, t.entry.UID) {
		return fmt.Errorf("%s does not belong to user %d", user.Name(), t.entry.UID)
	}
	if err := move(s.tmp, t.name, user, t.entry.Name); err != nil {
		return err
	}
	s.step("in its place")
	if err := user.Sync(); err != nil {
		return errors.Join(err, s.drop(t.entry.UID, t.entry.Name))
	}
	return nil
}

// Abort gives the slot up and removes what was written. After Commit it does nothing, so that it can be deferred.
func (t *Slot) Abort() error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.done {
		return nil
	}
	return t.discard()
}

func (t *Slot) discard() error {
	err := removeAll(t.s.tmp, t.name)
	t.close()
	return err
}

func (t *Slot) close() {
	t.done = true
	delete(t.s.slots, t)
	t.dir.Close()
}
