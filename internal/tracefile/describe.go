package tracefile

import (
	"encoding/json"
	"fmt"
	"strings"

	"braid/internal/cpus"
)

// The sections in JSON are small and descriptive. Fields that a reader does not know are ignored, and fields that
// are missing are zero, so that they can grow without a new format version.

// maxJSON bounds a JSON section, which takes a multiple of its length in memory.
const maxJSON = 64 << 20

// Meta is the meta section: what was recorded, where and how. A file has one.
type Meta struct {
	Braid   string   `json:"braid"`             // version of the braid that recorded
	Command []string `json:"command,omitempty"` // the traced command; empty if it ran already
	Kernel  string   `json:"kernel"`            // uname -r
	Machine string   `json:"machine"`           // uname -m
	Arch    string   `json:"arch"`              // the target's, as in GOARCH
	Host    string   `json:"host,omitempty"`
	CPUs    int      `json:"cpus,omitempty"`
	// Processors are the machine's, as they were when recording began. KHz is 0 where the frequency at the beginning of
	// the trace is not known.
	Processors []cpus.CPU `json:"processors,omitempty"`

	Start   Instant           `json:"start"`
	End     Instant           `json:"end"`
	Options map[string]string `json:"options,omitempty"` // flag name to value, of those that were given
	Pid     int               `json:"pid,omitempty"`     // of the target's first process
	Exit    *Exit             `json:"exit,omitempty"`    // how it ended; nil if it was still running
	Notes   []string          `json:"notes,omitempty"`   // for the user, e.g. "the target carries no stubs"
	Trigger *Trigger          `json:"trigger,omitempty"` // why it was written out; nil if somebody asked for a recording
}

// Thumb reports whether the recording's programs may use the Thumb instruction set, where bit 0 of a function's pointer is
// no part of its address: 32-bit ones on ARM, also under a 64-bit kernel. 64-bit ones have no odd addresses there.
func (m *Meta) Thumb() bool { return strings.HasPrefix(m.Arch, "arm") }

// Instant is one moment on both clocks.
type Instant struct {
	WallNs int64  `json:"wall_ns"` // CLOCK_REALTIME, ns since 1970
	BootNs uint64 `json:"boot_ns"` // CLOCK_BOOTTIME, ns
}

// Exit says how a process ended.
type Exit struct {
	Code   int `json:"code"`             // exit status, 128+signal if it was killed
	Signal int `json:"signal,omitempty"` // the signal that killed it, or 0
}

// Processes is the process table: who was there. Several sections add to each other; for one pid or tid and start, a
// later one replaces an earlier one.
type Processes struct {
	Processes []Process `json:"processes"`
	Threads   []Thread  `json:"threads"`
}

// Process is one traced process. Times are CLOCK_BOOTTIME ns, 0 if unknown.
type Process struct {
	Pid     int      `json:"pid"`
	PPid    int      `json:"ppid,omitempty"`
	Name    string   `json:"name"` // comm
	Cmdline []string `json:"cmdline,omitempty"`
	StartNs uint64   `json:"start_ns,omitempty"`
	EndNs   uint64   `json:"end_ns,omitempty"`
	Exited  bool     `json:"exited,omitempty"`
	// Partner: it was not recorded itself, and took part in binder transactions of a process that was.
	Partner bool `json:"partner,omitempty"`
}

// Thread is one thread of a traced process. Times are CLOCK_BOOTTIME ns, 0 if unknown.
type Thread struct {
	Tid     int      `json:"tid"`
	Pid     int      `json:"pid"`
	Names   []string `json:"names"` // comm, oldest first, the last one valid at the end
	StartNs uint64   `json:"start_ns,omitempty"`
	EndNs   uint64   `json:"end_ns,omitempty"`
	// State is the letter of /proc/PID/task/TID/stat (R, S, D, T, t, Z, X, I) when the recorder attached, at StateNs;
	// empty for threads that started later.
	State   string `json:"state,omitempty"`
	StateNs uint64 `json:"state_ns,omitempty"`
}

// Module is one mapped program or library. Symbols refer to it by its index over all modules sections of the file.
type Module struct {
	Pid          int    `json:"pid,omitempty"` // of the process that mapped it; 0: all
	Path         string `json:"path"`
	BuildID      string `json:"build_id,omitempty"` // hexadecimal
	Bias         uint64 `json:"bias"`               // run-time address minus address in the file
	Start        uint64 `json:"start"`              // of its mappings at run time
	End          uint64 `json:"end"`
	Instrumented bool   `json:"instrumented,omitempty"` // it carries stubs
	// Since is the counter when the process began with the program that this belongs to; 0: it is its first. A ring
	// belongs to the newest program of its process that is not later than the ring's Begin.
	Since uint64 `json:"since,omitempty"`
	// Loaded and Unloaded are the counter when it was loaded and when it was unloaded; 0: unknown, or never. Of modules
	// that were loaded at the same place, a record belongs to the one that was loaded last before it.
	Loaded     uint64 `json:"loaded,omitempty"`
	Unloaded   uint64 `json:"unloaded,omitempty"`
	UnloadedNs uint64 `json:"unloaded_ns,omitempty"` // CLOCK_BOOTTIME ns of dlclose; 0: never
	Unresolved string `json:"unresolved,omitempty"`  // why its symbols are missing
}

// Lost is the lost section. Several add up.
type Lost struct {
	// Counts is what is missing, by names such as kernel_ring_full_switch. Zero counts may be left out.
	Counts map[string]uint64 `json:"counts"`
	// Hooks are the kernel hooks that could not be attached, each with its reason.
	Hooks []string `json:"hooks,omitempty"`
}

// encodeJSON never fails for the types of this package, which hold no channels or cycles, and no floats that JSON can
// not say (Trigger.MarshalJSON).
func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("tracefile: " + err.Error())
	}
	return append(b, '\n')
}

func decodeJSON(b []byte, v any) error {
	if len(b) > maxJSON {
		return fmt.Errorf("%d bytes of JSON exceed the limit of %d", len(b), maxJSON)
	}
	return json.Unmarshal(b, v)
}

// WriteMeta appends the meta section.
func (w *Writer) WriteMeta(m *Meta) error { return w.WriteSection(KindMeta, encodeJSON(m)) }

// WriteProcesses appends a processes section.
func (w *Writer) WriteProcesses(p *Processes) error {
	return w.WriteSection(KindProcesses, encodeJSON(p))
}

// WriteModules appends a modules section.
func (w *Writer) WriteModules(m []Module) error { return w.WriteSection(KindModules, encodeJSON(m)) }

// WriteLost appends a lost section.
func (w *Writer) WriteLost(l *Lost) error { return w.WriteSection(KindLost, encodeJSON(l)) }
