// Package arm is what a study compares: ways to trace a workload. Each arm is one file in package arms, which registers it; nothing
// else has to change.
package arm

import (
	"context"
	"errors"
	"fmt"

	"braid/compare/workload"
)

// Arm is a way to trace. Fields are fixed; functions are called by one goroutine at a time.
type Arm struct {
	Name  string // stable, for programs and for --arms: "stub-on"
	Title string // for people: "stub, on"
	Group string // one of result's Group constants
	Order int    // where it stands in tables, within its group

	// Points are the trace points that each call of the traced function has: 2 for an entry and a return. 0 for the baseline.
	Points float64
	// Baseline is the arm that it is compared with, "baseline" if empty.
	Baseline string
	// Workloads that it can run; nil: all.
	Workloads []string
	// Quick says that --quick has it too.
	Quick bool

	// Check says why the arm can't run here: nil, or an *Unavailable.
	Check func(ctx context.Context, env *Env) error
	// Open makes the arm ready. The session belongs to the caller, who closes it.
	Open func(ctx context.Context, env *Env, w Work) (Session, error)
}

// Work is what a session is opened for. A session serves all its parameters, alignments and rounds.
type Work struct {
	Workload string // name, as package workload knows it
	CPU      int    // to pin the measured thread to
	Aligns   []int
	Command  []string // the program and its arguments, for workload.Command
	// Functions are those of Command that probes are put on, as patterns: [FILE:]GLOB.
	Functions []string
}

// Session is an arm at work on a workload. It is used by one goroutine.
type Session interface {
	// Run makes one measurement, and says what was recorded in it. What it attaches, it attaches outside of the measured time. It
	// may stay attached until Close where no other session's program notices. Errors end the arm, not the study.
	Run(ctx context.Context, r workload.Request) (Measured, error)
	// Facts are what the table says beside the figures, like the probed instruction; keys "site" and "class" go to the fields of that name.
	Facts() map[string]string
	// Close ends the workload's process and removes every probe. Called once.
	Close() error
}

// Measured is a measurement with its proof.
type Measured struct {
	workload.Reply
	Expected, Recorded uint64 // events; an arm that records nothing by design leaves both 0
}

// Late is implemented by sessions of tools that can count their events only after the workload's end. Total is called after Close.
type Late interface {
	Total() (expected, recorded uint64, err error)
}

// Env is what arms share: where they may write, and what the machine has.
type Env struct {
	Dir       string            // empty folder of this study; arms make folders of their own in it, named after themselves
	Workloads *workload.Set     // the unpacked programs
	Root      bool              // whether the user may attach probes
	Ring      uint64            // bytes of rings and buffers of arms that record
	Cache     map[string]string // what an arm built and another can use; only Check and Open change it
}

// Unavailable says why an arm can't run.
type Unavailable struct {
	Why  string // "uftrace is not installed"
	Next string // "apt-get install uftrace"; may be empty
}

func (u *Unavailable) Error() string {
	if u.Next == "" {
		return u.Why
	}
	return fmt.Sprintf("%s (%s)", u.Why, u.Next)
}

var all []*Arm

// Register adds an arm; called from init functions of package arms. Two arms of the same name are a programming error.
func Register(a *Arm) {
	for _, b := range all {
		if a.Name == b.Name {
			panic("two arms are called " + a.Name)
		}
	}
	if a.Name == "" || a.Title == "" || a.Group == "" || a.Open == nil {
		panic(errors.New("an arm lacks name, title, group or Open"))
	}
	all = append(all, a)
}
