package retain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// consentFile is the name of the file that a user makes to allow that traces are kept.
const consentFile = "consent"

// maxConsent bounds a consent file.
const maxConsent = 64 << 10

// consent is what one file allows.
type consent struct {
	programs  []string // patterns; at least one
	users     []string // ids or names, "*"; nil: the file's owner
	recorders []string // ids or names; nil: root and the file's owner
	until     time.Time
}

// parseConsent reads lines of "key: value, value". What it does not understand is an error: a line that was meant to
// forbid something must not be passed over.
func parseConsent(text string) (*consent, error) {
	var c consent
	for n, line := range strings.Split(text, "\n") {
		if i := strings.Index(line, "#"); i == 0 || i > 0 && (line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d: %q is not \"key: value\"", n+1, line)
		}
		var list *[]string
		switch key = strings.TrimSpace(key); key {
		case "programs":
			list = &c.programs
		case "users":
			list = &c.users
		case "recorders":
			list = &c.recorders
		case "until":
			t, err := parseUntil(strings.TrimSpace(value))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			if c.until.IsZero() || t.Before(c.until) {
				c.until = t
			}
			continue
		default:
			return nil, fmt.Errorf("line %d: there is no key %q; keys are programs, users, recorders, until", n+1, key)
		}
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word == "" {
				return nil, fmt.Errorf("line %d: an empty name in %q", n+1, key)
			}
			if _, err := path.Match(word, ""); err != nil {
				return nil, fmt.Errorf("line %d: the pattern %q: %w", n+1, word, err)
			}
			*list = append(*list, word)
		}
	}
	if len(c.programs) == 0 {
		return nil, errors.New(`no line "programs:" says which programs`)
	}
	return &c, nil
}

// parseUntil accepts a day, whose end is meant, or a moment.
func parseUntil(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t.AddDate(0, 0, 1), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("until %q is neither a day like 2027-01-31 nor a time like 2027-01-31T12:00:00Z", s)
	}
	return t, nil
}

// allows returns nil, or why this file allows nothing for the program of user uid.
func (c *consent) allows(owner, uid, recorder int, program string, now time.Time) error {
	if !c.until.IsZero() && !now.Before(c.until) {
		return fmt.Errorf("ended at %s", c.until.UTC().Format(time.RFC3339))
	}
	if c.users == nil && uid != owner || c.users != nil && !names(c.users, uid) {
		return fmt.Errorf("is not for user %d", uid)
	}
	if c.recorders == nil && recorder != 0 && recorder != owner || c.recorders != nil && !names(c.recorders, recorder) {
		return fmt.Errorf("is not for braid run by user %d", recorder)
	}
	for _, p := range c.programs {
		// path.Match keeps * within a folder; a program's name is one word.
		if ok, _ := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(program, "/", "\x00")); ok {
			return nil
		}
	}
	return fmt.Errorf("does not name the program %q", program)
}

// names says whether a user is in a list of ids, names and "*".
func names(list []string, uid int) bool {
	for _, w := range list {
		if w == "*" || w == strconv.Itoa(uid) {
			return true
		}
		if _, err := strconv.Atoi(w); err == nil {
			continue
		}
		if u, err := user.Lookup(w); err == nil && u.Uid == strconv.Itoa(uid) {
			return true
		}
	}
	return false
}

// Consent returns nil if a trace of the program of user uid may be kept now, else a *RefusedError. The files are read each
// time, so that a consent ends at once when its file goes.
func (s *Store) Consent(program string, uid int) error {
	now := s.now()
	var why []string
	try := func(dir *os.File, dirName string, owners ...int) bool {
		name := path.Join(dirName, consentFile)
		c, owner, err := readConsent(dir, owners)
		if errors.Is(err, os.ErrNotExist) {
			return false
		}
		if err == nil {
			if err = c.allows(owner, uid, s.euid, program, now); err == nil {
				return true
			}
		}
		why = append(why, fmt.Sprintf("%s %v", name, err))
		return false
	}
	// Not root's: DIR/UID belongs to the user, and what root put there would be the user's to change.
	if d, err := openDir(s.base, strconv.Itoa(uid)); err == nil {
		ok := ownedBy(d, uid) && try(d, strconv.Itoa(uid), uid)
		d.Close()
		if ok {
			return nil
		}
	}
	if try(s.base, "", 0, s.euid) {
		return nil
	}
	if why == nil {
		return refused(ReasonConsent, "no consent: user %d has no file %s", uid,
			path.Join(s.opts.Dir, strconv.Itoa(uid), consentFile))
	}
	return refused(ReasonConsent, "no consent: %s", strings.Join(why, "; "))
}

// readConsent reads the consent file of a folder, if one of the owners made it and nobody else can write to it.
func readConsent(dir *os.File, owners []int) (c *consent, owner int, err error) {
	f, st, err := openRegular(dir, consentFile)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	owner = int(st.Uid)
	if !slices.Contains(owners, owner) {
		return nil, 0, fmt.Errorf("belongs to user %d", owner)
	}
	if st.Mode&0o022 != 0 {
		return nil, 0, errors.New("can be written to by others")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConsent+1))
	if err != nil {
		return nil, 0, err
	}
	if len(b) > maxConsent {
		return nil, 0, fmt.Errorf("is longer than %d bytes", maxConsent)
	}
	c, err = parseConsent(string(b))
	return c, owner, err
}

// openRegular opens a regular file in a folder for reading. It does not follow a symbolic link, and does not wait for a
// pipe's writer.
func openRegular(dir *os.File, name string) (*os.File, *unix.Stat_t, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, nil, errors.New("is not a regular file")
	}
	return f, &st, nil
}
