package recorder

import (
	"bytes"
	"encoding/hex"

	"braid/control"
	"braid/symbols"
)

// maxHeld bounds the files that are kept open for their symbols.
const maxHeld = 256

// remember keeps what is needed of a process after its end, and of its libraries after theirs: it is called at each poll,
// and a library may be closed and its file deleted before the next one.
func (r *rings) remember(a *control.Area) {
	p := r.byArea[a]
	for _, m := range a.Modules() {
		if p.note(m) {
			r.hold(p, m)
		}
	}
}

// note takes over what the program says of a module, and reports whether it was not known. The program uses a module's
// entry again when the same library comes back to the same place.
func (p *process) note(m control.Module) (fresh bool) {
	for i := range p.modules {
		if old := &p.modules[i]; old.Loaded == m.Loaded && sameModule(*old, m) {
			old.Unloaded = m.Unloaded
			return false
		}
	}
	p.modules = append(p.modules, m)
	return true
}

func sameModule(a, b control.Module) bool {
	return a.Path == b.Path && a.Bias == b.Bias && bytes.Equal(a.BuildID, b.BuildID)
}

func heldKey(m control.Module) string { return hex.EncodeToString(m.BuildID) + m.Path }

// hold opens a new module's file while it is there. One that has gone already is reported with its module.
func (r *rings) hold(p *process, m control.Module) {
	key := heldKey(m)
	if _, ok := r.held[key]; ok || len(r.held) >= maxHeld {
		return
	}
	f, err := symbols.Hold(p.described(m))
	if err != nil {
		f = nil
	}
	if f != nil || m.Unloaded != 0 {
		r.held[key] = f
	}
}

// described is a module as the symbols package takes it.
func (p *process) described(m control.Module) symbols.Module {
	s := symbols.Registered(m.Path, m.Bias, m.BuildID)
	s.Pid, s.Ranges = p.pid, []symbols.Range{{Start: m.Low, End: m.High}}
	return s
}

// letGo closes the files.
func (r *rings) letGo() {
	for _, f := range r.held {
		if f != nil {
			f.Close()
		}
	}
	clear(r.held)
}
