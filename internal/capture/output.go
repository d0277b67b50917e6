package capture

import (
	"sync"

	"braid/internal/tracefile"
)

// Output is a trace file behind a lock, with the first error kept. After an error nothing more is written. Its methods may
// be called from any goroutine.
type Output struct {
	mu  sync.Mutex
	w   *tracefile.Writer
	err error
}

// NewOutput takes over w, which the caller closes or aborts in the end.
func NewOutput(w *tracefile.Writer) *Output { return &Output{w: w} }

// Do writes, unless an earlier write failed, and returns the first error.
func (o *Output) Do(f func(w *tracefile.Writer) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = f(o.w)
	}
	return o.err
}

// Failed returns the first error.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
