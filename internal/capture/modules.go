package capture

import (
	"bytes"
	"encoding/hex"
	"os"
	"sync"

	"braid/control"
	"braid/symbols"
)

// maxHeld bounds the files that are kept open for their symbols.
const maxHeld = 256

// Files are the modules' files of all processes, kept open for their symbols: a library may be closed and its file deleted
// before its methods are named. Its methods may be called from any goroutine; a Process belongs to one at a time.
type Files struct {
	mu   sync.Mutex
	held map[string]*os.File // by heldKey; nil where one could not be opened
}

// NewFiles returns an empty set.
func NewFiles() *Files { return &Files{held: map[string]*os.File{}} }

// Remember keeps what is needed of a process after its end, and of its libraries after theirs. Call it at each poll.
func (f *Files) Remember(p *Process, a *control.Area) {
	for _, m := range a.Modules() {
		if p.note(m) {
			f.hold(p, m)
		}
	}
}

// note takes over what the program says of a module, and reports whether it was not known. The program uses a module's
// entry again when the same library comes back to the same place.
func (p *Process) note(m control.Module) (fresh bool) {
	for i := range p.Modules {
		if old := &p.Modules[i]; old.Loaded == m.Loaded && sameModule(*old, m) {
			old.Unloaded = m.Unloaded
			return false
		}
	}
	p.Modules = append(p.Modules, m)
	return true
}

func sameModule(a, b control.Module) bool {
	return a.Path == b.Path && a.Bias == b.Bias && bytes.Equal(a.BuildID, b.BuildID)
}

func heldKey(m control.Module) string { return hex.EncodeToString(m.BuildID) + m.Path }

// hold opens a new module's file while it is there. One that has gone already is reported with its module.
func (f *Files) hold(p *Process, m control.Module) {
	key := heldKey(m)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.held[key]; ok || len(f.held) >= maxHeld {
		return
	}
	file, err := symbols.Hold(p.described(m))
	if err != nil {
		file = nil
	}
	if file != nil || m.Unloaded != 0 {
		f.held[key] = file
	}
}

// Symbols returns the modules as package symbols takes them.
func (p *Process) Symbols() []symbols.Module {
	var out []symbols.Module
	for _, m := range p.Modules {
		out = append(out, p.described(m))
	}
	return out
}

// described is a module as the symbols package takes it.
func (p *Process) described(m control.Module) symbols.Module {
	s := symbols.Registered(m.Path, m.Bias, m.BuildID)
	s.Pid, s.Ranges = p.Pid, []symbols.Range{{Start: m.Low, End: m.High}}
	return s
}

// file returns a module's file, or nil.
func (f *Files) file(m control.Module) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[heldKey(m)]
}

// Close closes the files.
func (f *Files) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.held {
		if file != nil {
			file.Close()
		}
	}
	clear(f.held)
}
