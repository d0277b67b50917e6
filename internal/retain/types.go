package retain

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Keep says which traces are worth more when there is no room for all.
type Keep string

const (
	KeepWorst    Keep = "worst"    // the more severe, then the higher score, then the newer (default)
	KeepFirst    Keep = "first"    // the more severe, then the older
	KeepCampaign Keep = "campaign" // those of Options.Campaign, then as KeepWorst
)

// Limits bound what is kept. Zero is no limit. The counts are of traces kept whose time is within the last seven days,
// or in the future, as after a step of the clock.
type Limits struct {
	PerWeek    int           // all traces
	PerProgram int           // of one program of one user
	PerTrigger int           // of one trigger of one program of one user
	Quota      int64         // bytes of all traces, those being written included
	MinFree    int64         // bytes that must remain free on the disk
	MaxAge     time.Duration // older ones are removed
}

// Options say where and what to keep.
type Options struct {
	Dir         string // made, with its parents, if missing
	Limits      Limits
	Keep        Keep
	Campaign    string           // for KeepCampaign
	SummaryOnly bool             // no trace is kept, only its summary
	Now         func() time.Time // nil: time.Now
}

// Candidate is a trace that is about to be written.
type Candidate struct {
	Program  string // the target's name
	UID      int    // the target's user: the trace will be theirs
	Trigger  string // the trigger's name
	Campaign string // empty: none
	Severity int    // larger is worse
	Score    float64
	Time     time.Time // when the trigger fired
	Bytes    int64     // how large the trace will be at most; this much room is made and held
}

// Entry is a trace that is kept.
type Entry struct {
	Name     string    `json:"name"`
	Program  string    `json:"program"`
	UID      int       `json:"uid"`
	Trigger  string    `json:"trigger"`
	Campaign string    `json:"campaign,omitempty"`
	Severity int       `json:"severity"`
	Score    float64   `json:"score"`
	Time     time.Time `json:"time"`
	Bytes    int64     `json:"-"` // of all its files, as the file system says
	Trace    string    `json:"-"` // path of the trace; empty if only the summary is kept
	Summary  string    `json:"-"` // path of the summary
}

// Sidecar is the content of an entry's JSON file.
type Sidecar struct {
	Version int             `json:"version"`
	Entry   Entry           `json:"entry"`
	Summary json.RawMessage `json:"summary,omitempty"`
}

// SidecarVersion is the version of the JSON file.
const SidecarVersion = 1

// Reason is why a trace is not kept, or was removed. Its text is a name for metrics.
type Reason string

const (
	ReasonConsent    Reason = "no_consent"
	ReasonOwner      Reason = "other_user" // the daemon is not root, and the target is another user's
	ReasonPerWeek    Reason = "per_week"
	ReasonPerProgram Reason = "per_program"
	ReasonPerTrigger Reason = "per_trigger"
	ReasonQuota      Reason = "quota"
	ReasonFree       Reason = "min_free"
	ReasonAge        Reason = "age"
	ReasonFailed     Reason = "failed" // it could not be written
	ReasonGone       Reason = "gone"   // removed by somebody else
)

// RefusedError says why a trace is not kept. Callers get at it with errors.As.
type RefusedError struct {
	Reason Reason
	Detail string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("trace not kept: %s", e.Detail) }

func refused(r Reason, format string, args ...any) *RefusedError {
	return &RefusedError{r, fmt.Sprintf(format, args...)}
}

var (
	// ErrBusy is returned by Open when another process holds the folder.
	ErrBusy = errors.New("another braid keeps traces there")
	// ErrUnsafe is returned by Open for a folder that others can write to.
	ErrUnsafe = errors.New("not a safe folder for traces")
	// ErrDone is returned by a slot that was committed or aborted before, and by a closed store.
	ErrDone = errors.New("already closed")
)

// Stats counts since Open.
type Stats struct {
	Traces  int               // kept now
	Bytes   int64             // of them
	Refused map[Reason]uint64 // candidates not kept
	Removed map[Reason]uint64 // traces removed
}
