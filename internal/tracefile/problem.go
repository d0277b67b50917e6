package tracefile

import (
	"errors"
	"fmt"
)

// What can be wrong with a part of a file. A Problem wraps one of them.
var (
	ErrTruncated   = errors.New("the file was cut short")
	ErrDamaged     = errors.New("section header damaged")
	ErrChecksum    = errors.New("section content damaged")
	ErrCount       = errors.New("sections are missing")
	ErrTrailing    = errors.New("data after the end")
	ErrUnknown     = errors.New("unknown section")
	ErrTooMany     = errors.New("too many sections")
	ErrContent     = errors.New("section content makes no sense")
	errManyDamages = errors.New("further problems left out")
)

// Problem is something wrong with a file whose other parts are still read.
type Problem struct {
	Offset uint64 // in the file, where the damaged part begins
	Kind   Kind   // of the section, or 0 if that is not known
	Err    error  // one of the errors above
	Detail string // what was lost, for the user
}

func (p *Problem) Error() string {
	s := fmt.Sprintf("offset %d: ", p.Offset)
	if p.Kind != 0 {
		s += fmt.Sprintf("%v: ", p.Kind)
	}
	s += p.Err.Error()
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	return s
}

func (p *Problem) Unwrap() error { return p.Err }

// maxProblems bounds what is kept about a file that is damaged all over.
const maxProblems = 1000

func (r *Reader) problem(offset uint64, kind Kind, err error, detail string, args ...any) {
	switch n := len(r.problems); {
	case n > maxProblems:
	case n == maxProblems:
		r.problems = append(r.problems, &Problem{Offset: offset, Err: errManyDamages})
	default:
		r.problems = append(r.problems, &Problem{offset, kind, err, fmt.Sprintf(detail, args...)})
	}
}
