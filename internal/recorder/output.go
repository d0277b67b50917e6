package recorder

import (
	"sync"

	"braid/internal/tracefile"
)

// output is the trace file behind a lock, with the first error kept. After an error nothing more is written.
type output struct {
	mu  sync.Mutex
	w   *tracefile.Writer
	err error
}

func (o *output) do(f func(w *tracefile.Writer) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = f(o.w)
	}
	return o.err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
