package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"braid/internal/sample"
	"braid/internal/tracefile"
)

// sampling writes samples of the target into the trace file.
type sampling struct {
	sampler *sample.Sampler
	done    <-chan error
}

// beginSampling prepares it, if it was asked for. Nothing is sampled before Launch or Attach.
func (r *recording) beginSampling() error {
	if r.o.Sample == nil {
		return nil
	}
	s, err := sample.New(*r.o.Sample)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	r.sampling = &sampling{sampler: s, done: done}
	go func() {
		defer close(done)
		done <- s.Run(func(samples *tracefile.Samples) error {
			return r.out.Do(func(w *tracefile.Writer) error { return w.WriteSamples(samples) })
		})
	}()
	return nil
}

// samplePending samples a process from its exec on, and sampleRunning from now on.
func (r *recording) samplePending(pid int) error {
	if r.sampling == nil {
		return nil
	}
	return r.sampling.sampler.Launch(pid)
}

func (r *recording) sampleRunning(pid int) error {
	if r.sampling == nil {
		return nil
	}
	err := r.sampling.sampler.Attach(pid)
	if errors.Is(err, fs.ErrNotExist) { // it has just ended
		return nil
	}
	return err
}

// endSampling stops and writes what is left, and the names.
func (r *recording) endSampling() error {
	if r.sampling == nil {
		return nil
	}
	s := r.sampling.sampler
	err := r.sampling.stop()
	if err == nil {
		err = r.out.Do(func(w *tracefile.Writer) error { return w.WriteFrames(s.Names()) })
	}
	r.res.Samples, r.res.Incomplete = s.Count(), s.Incomplete()
	maps.Copy(r.res.Lost, s.Lost())
	for _, n := range s.Notes() {
		r.note(n)
	}
	if r.res.Samples == 0 {
		r.note("no samples: the program used less CPU time than is between two of them, or could not be sampled (a program with " +
			"more rights than braid's user has, such as a set-uid one, can not)")
	}
	r.closeSampling()
	return err
}

// closeSampling frees what is left of it.
func (r *recording) closeSampling() {
	if r.sampling == nil {
		return
	}
	_ = r.sampling.stop()
	_ = r.sampling.sampler.Close()
	r.sampling = nil
}

// stop ends sampling and waits until all samples are written. Calling it again returns nil.
func (s *sampling) stop() error {
	s.sampler.Stop()
	return <-s.done
}

// sampleSummary is a part of a result's summary.
func (r *Result) sampleSummary() string {
	switch {
	case r.Samples == 0:
		return ""
	case r.Incomplete == 0:
		return fmt.Sprintf(", %s", plural(int(r.Samples), "sample"))
	}
	return fmt.Sprintf(", %s (%d with an incomplete stack)", plural(int(r.Samples), "sample"), r.Incomplete)
}
