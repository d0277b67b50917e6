package trigger

import (
	"path"
	"strings"
)

// Target is what is known of a process.
type Target struct {
	Pid     int
	Name    string // comm
	Exe     string // path of the executable, or its last element
	Package string // first argument of the command line
	Cgroup  string // path below the root of cgroup v2, "/" first
	UID     int    // effective
}

// named reports whether a pattern of a program's name fits. comm is cut at 15 bytes, so the executable counts, too.
func (t *Target) named(pattern string) bool {
	return Match(pattern, t.Name) || t.Exe != "" && Match(pattern, path.Base(t.Exe)) || t.Package != "" && Match(pattern, t.Package)
}

// Matches reports whether a process is one of a Program.
func (p *Program) Matches(t *Target) bool {
	return (p.Name == "" || Match(p.Name, t.Name) || t.Exe != "" && Match(p.Name, path.Base(t.Exe))) &&
		(p.Package == "" || Match(p.Package, t.Package)) &&
		(p.Cgroup == "" || below(t.Cgroup, p.Cgroup)) &&
		(p.UID < 0 || p.UID == t.UID) && (p.Pid == 0 || p.Pid == t.Pid)
}

// below reports whether a cgroup is another one, or in it.
func below(cgroup, of string) bool {
	of = strings.TrimSuffix("/"+strings.TrimPrefix(of, "/"), "/")
	return cgroup == of || strings.HasPrefix(cgroup, of+"/")
}

// Program returns the first entry that a process belongs to, or nil: it is not watched.
func (c *Config) Program(t *Target) *Program {
	for i := range c.Programs {
		if p := &c.Programs[i]; p.Matches(t) {
			return p
		}
	}
	return nil
}

// Chosen reports whether a thread with a name is one to record. first says that it is the process's first thread.
func (t *Threads) Chosen(name string, first bool) bool {
	if t.All || t.Main && first {
		return true
	}
	for _, p := range t.Names {
		if Match(p, name) {
			return true
		}
	}
	return false
}
