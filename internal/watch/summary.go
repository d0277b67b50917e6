package watch

import (
	"fmt"

	"braid/internal/analysis"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// Summary is what is kept of a trace beside it, or in its place.
type Summary struct {
	Trigger  *tracefile.Trigger `json:"trigger,omitempty"`
	Analysis *analysis.Result   `json:"analysis,omitempty"`
	Lost     map[string]uint64  `json:"lost,omitempty"`
	Error    string             `json:"error,omitempty"` // why there is no analysis
}

// summarise analyses a trace that was just written. A trace that can't be analysed is kept all the same.
func summarise(path string) any {
	s := &Summary{}
	if err := s.fill(path); err != nil {
		s.Error = err.Error()
	}
	return s
}

func (s *Summary) fill(path string) error {
	r, err := tracefile.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	s.Trigger, s.Lost = tr.Meta.Trigger, tr.Lost
	s.Analysis, err = analysis.Analyze(tr, analysis.Options{Signatures: analysis.Builtin()})
	return err
}
