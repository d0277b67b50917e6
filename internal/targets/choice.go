package targets

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// commBytes is what the kernel keeps of a name, TASK_COMM_LEN without the NUL.
const commBytes = 15

// Choice says which processes are meant. A process must fit all that is given; at least Package or HasUID is.
type Choice struct {
	// Package is a process's whole name: that of an Android package, of system_server, or of any program. All components
	// of a package are meant, unless Components says which.
	Package string
	// Components are what follows the package in a process's name, as ":remote"; "main" is the process without.
	Components []string
	UID        int // effective user, if HasUID
	HasUID     bool
}

// Check says what is wrong with a choice that a user has given, or nil.
func (c *Choice) Check() error {
	switch {
	case c.Package == "" && !c.HasUID:
		return errors.New("nothing says which processes")
	case strings.ContainsAny(c.Package, "/*?[\x00"):
		return fmt.Errorf("package %q: want a whole name, without folders and patterns", c.Package)
	case len(c.Components) > 8:
		return fmt.Errorf("%d components: at most 8", len(c.Components))
	case len(c.Components) > 0 && c.Package == "":
		return errors.New("a component needs a package, since components of several packages may be called the same")
	case len(c.Components) > 0 && strings.Contains(c.Package, ":"):
		return fmt.Errorf("package %q names a component already", c.Package)
	}
	for _, k := range c.Components {
		if k == "" || k == ":" {
			return fmt.Errorf("component %q: want a name such as :remote, or main", k)
		}
	}
	return nil
}

// String says what is meant, for messages: `process named "com.example"`.
func (c *Choice) String() string {
	s := "process"
	if names := c.names(); len(names) > 0 {
		s += ` named "` + strings.Join(names, `" or "`) + `"`
	}
	if c.HasUID {
		s += fmt.Sprintf(" of user %d", c.UID)
	}
	return s
}

// names are the whole names of the processes that are meant; of Package alone, those of its components can not be told.
func (c *Choice) names() []string {
	if c.Package == "" {
		return nil
	}
	if len(c.Components) == 0 {
		return []string{c.Package}
	}
	var out []string
	for _, k := range c.Components {
		if k == "main" {
			out = append(out, c.Package)
		} else {
			out = append(out, c.Package+":"+strings.TrimPrefix(k, ":"))
		}
	}
	return out
}

// family reports whether the components of the package are meant too.
func (c *Choice) family() bool {
	return len(c.Components) == 0 && c.Package != "" && !strings.Contains(c.Package, ":")
}

// Verdict says whether a process is meant.
type Verdict int

// The verdicts. A process that zygote is just starting, whose name is not there yet, may become one that is meant.
const (
	No Verdict = iota
	Undecided
	Yes
)

// interim are the names that a process has before it has its own: those of the processes that fork apps, and what a
// started app calls itself until it has been told which it is.
var interim = []string{"zygote", "zygote64", "usap32", "usap64", "webview_zygote", "app_process", "app_process32", "app_process64", preInitialized}

const preInitialized = "<pre-initialized>"

// Match judges a process. Undecided is one whose main thread has a name that fits, but which has no whole name of its own
// yet: read it again.
func (c *Choice) Match(p *Process) Verdict {
	switch {
	case c.HasUID && p.UID != c.UID:
		return No
	case c.Package == "" || c.named(p):
		return Yes
	case Unnamed(p.Name) && (c.commFits(p.Comm) || p.Comm == preInitialized[2:]):
		return Undecided
	}
	return No
}

func (c *Choice) commFits(comm string) bool {
	return slices.ContainsFunc(c.Comms(), func(want string) bool {
		prefix, open := strings.CutSuffix(want, "*")
		return comm == prefix || open && strings.HasPrefix(comm, prefix)
	})
}

func (c *Choice) named(p *Process) bool {
	for _, want := range c.names() {
		switch {
		case p.Comm == want && len(want) < commBytes-1 && !Unnamed(p.Name):
			return true
		case p.Name == want, path.Base(p.Name) == want, path.Base(p.Exe) == want:
			return true
		case c.family() && strings.HasPrefix(p.Name, want+":"):
			return true
		}
	}
	return false
}

// Comms are the names of main threads that the processes that are meant may have, as the kernel side takes them: a last *
// stands for any rest. Other processes may have them too, so Match decides. Empty if Package is.
func (c *Choice) Comms() []string {
	var out []string
	for _, n := range c.names() {
		out = append(out, Comms(n)...)
	}
	if !c.family() {
		return out
	}
	// Of a component that is not known, the kernel keeps all, and what is left of the package's name before it.
	for left := range commBytes {
		if left > 0 && left < len(c.Package) {
			out = append(out, c.Package[len(c.Package)-left:]+":*")
		}
	}
	if len(c.Package) < commBytes {
		out = append(out, c.Package+":*")
	}
	return out
}

// Comms are the names that the main thread of a process with this whole name may have, as Choice.Comms has them. Android
// keeps a name's last 15 bytes, and for a moment the first 14 of these (SetThreadName's strlcpy); of a name without a dot or
// with an @, and of any executed file's, the first 15 are kept.
func Comms(name string) []string {
	if len(name) < commBytes {
		return []string{name}
	}
	return []string{name[len(name)-commBytes:len(name)-1] + "*", name[:commBytes-1] + "*"}
}

// StartingComm is what the main thread of every Android app is called while it starts, as Comms has it.
const StartingComm = "re-initialized*" // the last 15 bytes of preInitialized, or 14 of them

// Unnamed reports whether a process's whole name is one of those that a process of Android has before its own.
func Unnamed(name string) bool { return slices.Contains(interim, path.Base(name)) }
