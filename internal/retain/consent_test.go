package retain

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseConsent(t *testing.T) {
	c, err := parseConsent("# mine\n\nprograms: app, com.example.* # two\nusers: 7, root\nuntil: 2026-11-30\nprograms: c#\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.programs, " "); got != "app com.example.* c#" {
		t.Errorf("programs %q", got)
	}
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		uid, recorder int
		program       string
		now           time.Time
		why           string
	}{
		{7, 0, "app", end.Add(-1), ""},
		{0, 0, "com.example.a/b", start, ""},
		{7, 7, "app", start, "run by user 7"},
		{8, 0, "app", start, "user 8"},
		{7, 0, "apps", start, `the program "apps"`},
		{7, 0, "app", end, "ended"},
	} {
		err := c.allows(1000, x.uid, x.recorder, x.program, x.now)
		if (err == nil) != (x.why == "") || err != nil && !strings.Contains(err.Error(), x.why) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	for text, why := range map[string]string{
		"":                              "programs",
		"until: 2026-11-30":             "programs",
		"programs: a\nuntil: tomorrow":  "line 2",
		"programs: a,,b":                "empty name",
		"programs: [":                   "pattern",
		"program: a":                    "no key",
		"anything":                      "key: value",
		"programs: a\nexcept: password": "line 2",
	} {
		if _, err := parseConsent(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}

func FuzzConsent(f *testing.F) {
	f.Add("programs: a, b\nusers: *\nrecorders: root\nuntil: 2026-11-30T00:00:00Z\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConsent(text)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if c != nil {
			c.allows(1, 1, 0, "a", start)
		}
	})
}

// Each file speaks only for whom it may, and only while it is there.
func TestConsent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	s := open(t, Options{Dir: dir})
	uid := os.Geteuid()
	own := filepath.Join(dir, strconv.Itoa(uid), consentFile)
	all := filepath.Join(dir, consentFile)
	c := candidate(1, 0)
	try := func(why string, want Reason) {
		t.Helper()
		_, err := put(s, c, 10)
		if reason(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %q", why, err, want)
		}
	}
	try("no file", ReasonConsent)
	if err := s.Prepare(uid); err != nil {
		t.Fatal(err)
	}
	write(t, own, "programs: app\n")
	try("the user's own", "")
	write(t, own, "programs: other\n")
	try("another program", ReasonConsent)
	write(t, own, "programs: app\nuntil: 2026-11-20\n")
	try("over", ReasonConsent)
	write(t, own, strings.Repeat("#", maxConsent)+"\nprograms: app\n")
	try("too long", ReasonConsent)
	write(t, own, "programs: app\n")
	if err := os.Chmod(own, 0o666); err != nil {
		t.Fatal(err)
	}
	try("others can write to it", ReasonConsent)
	os.Rename(own, own+".real")
	if err := os.Symlink(own+".real", own); err != nil {
		t.Fatal(err)
	}
	try("a symbolic link", ReasonConsent)
	os.Remove(own)
	if err := unix.Mkfifo(own, 0o600); err != nil {
		t.Fatal(err)
	}
	try("a pipe", ReasonConsent)
	os.Remove(own)
	write(t, all, "programs: app\n")
	try("the daemon's user's, for itself", "")
	write(t, all, "programs: app\nusers: 12345\n")
	try("for another user", ReasonConsent)
	write(t, all, "programs: app\nusers: *\n")
	slot, err := s.Admit(c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, slot.Path, "x")
	os.Remove(all)
	if _, err := slot.Commit(nil); reason(err) != ReasonConsent {
		t.Errorf("withdrawn while it was written: %v", err)
	}
	if names, _ := list(s.tmp); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestConsentOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		s := open(t, Options{Dir: folder(t)})
		c := candidate(1, 0)
		c.UID++
		if _, err := put(s, c, 10); reason(err) != ReasonOwner {
			t.Errorf("another user's program: %v", err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "traces")
	s := open(t, Options{Dir: dir})
	c := candidate(1, 0)
	c.UID = 65534
	if err := s.Prepare(c.UID); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "65534", consentFile)
	write(t, own, "programs: *\n")
	if _, err := put(s, c, 10); reason(err) != ReasonConsent {
		t.Errorf("a file of root's in the user's folder: %v", err)
	}
	os.Chown(own, c.UID, -1)
	if _, err := put(s, c, 10); err != nil {
		t.Errorf("the user's own: %v", err)
	}
	c.UID = 65533
	if _, err := put(s, c, 10); reason(err) != ReasonConsent {
		t.Errorf("another user: %v", err)
	}
}
