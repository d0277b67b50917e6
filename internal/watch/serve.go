package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"braid/internal/ctl"
	"braid/internal/metrics"

	"golang.org/x/sys/unix"
)

// errEnded is what requests get once the daemon is about to end.
var errEnded = errors.New("braid watch is ending")

// on runs f on the daemon's goroutine and waits for it.
func (d *Daemon) on(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case d.requests <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.over:
		return errEnded
	}
	select {
	case <-done:
		return nil
	case <-d.over:
		return errEnded
	}
}

// selected calls f for each target that a request chooses.
func (d *Daemon) selected(s ctl.Selection, f func(t *target)) error {
	found := false
	for _, t := range d.sorted() {
		if s.PID != 0 && s.PID != t.pid {
			continue
		}
		if ok, _ := path.Match(s.Program, t.name); s.Program != "" && !ok {
			continue
		}
		found = true
		f(t)
	}
	if !found {
		return fmt.Errorf("no watched program of that choice: %w; braid status lists them", ctl.ErrNotFound)
	}
	return nil
}

// Status implements ctl.Handler.
func (d *Daemon) Status(ctx context.Context) (s *ctl.Status, err error) {
	err = errors.Join(d.on(ctx, func() { s = d.status() }))
	return s, err
}

func (d *Daemon) status() *ctl.Status {
	s := &ctl.Status{Time: time.Now()}
	s.Daemon = ctl.Daemon{PID: os.Getpid(), Version: d.o.Version, UptimeNs: uint64(time.Since(d.began)), Kernel: d.kernelState, Lost: map[string]uint64{}}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		s.Daemon.CPUNs = uint64(u.Utime.Nano() + u.Stime.Nano())
	}
	s.Daemon.RSSBytes = resident()
	if d.kernel != nil {
		s.Daemon.HooksMissing = d.kernel.rec.Missing()
		maps.Copy(s.Daemon.Lost, d.kernel.losses())
	}
	for _, t := range d.sorted() {
		st := t.status()
		s.Daemon.RingBytes += st.RingBytes
		s.Targets = append(s.Targets, st)
	}
	es := d.engine.Stats()
	for _, r := range d.o.Config.Rules {
		tr := ctl.Trigger{Name: r.Name, Fired: es.Fired[r.Name], Suppressed: es.Suppressed[r.Name]}
		if c := d.triggers[r.Name]; c != nil {
			tr.Last = *c
		}
		s.Triggers = append(s.Triggers, tr)
	}
	if d.store != nil {
		st := d.store.Stats()
		s.Kept = ctl.Kept{Dir: d.o.Config.Output.Dir, Traces: st.Traces, Bytes: st.Bytes, Refused: map[string]uint64{}, Removed: map[string]uint64{}}
		for r, n := range st.Refused {
			s.Kept.Refused[string(r)] = n
		}
		for r, n := range st.Removed {
			s.Kept.Removed[string(r)] = n
		}
	}
	return s
}

func (t *target) status() ctl.Target {
	s := ctl.Target{PID: t.pid, Name: t.name, UID: t.uid, State: "off", Flushes: t.flushes, Lost: maps.Clone(t.lost),
		LastTrigger: t.lastTrigger, LastFlush: t.lastFlush, Note: t.note, Records: t.records}
	for _, r := range t.rings {
		at, wraps := r.t.Position()
		th := ctl.Thread{TID: r.t.Tid, Name: r.name, On: r.t.On(), Records: at / 8, Wraps: wraps, RingBytes: t.opts.Bytes, Swaps: r.swaps}
		s.Records += th.Records
		s.RingBytes += th.RingBytes
		if th.On {
			s.State = "on"
		}
		s.Threads = append(s.Threads, th)
	}
	switch {
	case t.gone:
		s.State = "ended"
	case t.writing > 0:
		s.State = "flushing"
	}
	return s
}

// Start implements ctl.Handler: threads may have rings again.
func (d *Daemon) Start(ctx context.Context, s ctl.Selection) (int, error) {
	return d.turn(ctx, s, true)
}

// Stop implements ctl.Handler: threads are turned off until they are started again.
func (d *Daemon) Stop(ctx context.Context, s ctl.Selection) (int, error) {
	return d.turn(ctx, s, false)
}

func (d *Daemon) turn(ctx context.Context, s ctl.Selection, on bool) (n int, err error) {
	oerr := d.on(ctx, func() {
		err = d.selected(s, func(t *target) { n += t.turn(s.Thread, on) })
		if err == nil && n == 0 && s.Thread != "" {
			err = fmt.Errorf("no thread %q: %w; braid status lists them", s.Thread, ctl.ErrNotFound)
		}
	})
	return n, errors.Join(oerr, err)
}

// Flush implements ctl.Handler.
func (d *Daemon) Flush(ctx context.Context, s ctl.Selection, why string) ([]ctl.Flushed, error) {
	return d.fire(ctx, "flush", s, why)
}

// Trigger implements ctl.Handler.
func (d *Daemon) Trigger(ctx context.Context, name string, s ctl.Selection, why string) ([]ctl.Flushed, error) {
	if name == "" {
		name = "socket"
	} else if !known(d.o.Config, name) {
		return nil, fmt.Errorf("no trigger %q: %w; braid status lists them", name, ctl.ErrNotFound)
	}
	return d.fire(ctx, name, s, why)
}

// fire flushes the selected targets and waits until their traces are written.
func (d *Daemon) fire(ctx context.Context, name string, s ctl.Selection, why string) (out []ctl.Flushed, err error) {
	var answers chan ctl.Flushed
	n := 0
	oerr := d.on(ctx, func() {
		if d.store == nil {
			err = errors.New("there is no output folder")
			return
		}
		answers = make(chan ctl.Flushed, len(d.targets)) // nobody waits for who does not listen any more
		err = d.selected(s, func(t *target) {
			n++
			d.flush(t, d.asked(name, t, why), answers)
		})
	})
	if err = errors.Join(oerr, err); err != nil {
		return nil, err
	}
	for range n {
		select {
		case f := <-answers:
			out = append(out, f)
		case <-ctx.Done():
			return out, ctx.Err()
		case <-d.over:
			return out, errEnded
		}
	}
	return out, nil
}

// Metrics implements metrics.Source.
func (d *Daemon) Metrics() (*metrics.Snapshot, error) {
	var m *metrics.Snapshot
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := d.on(ctx, func() { m = d.metrics() })
	return m, err
}

// serveSocket serves requests until the daemon closes.
func (d *Daemon) serveSocket() error {
	s, err := ctl.Listen(d.o.Socket, d)
	if err != nil {
		return err
	}
	d.socket = s
	go func() {
		if err := s.Serve(); err != nil {
			d.log.Error("the control socket", "err", err)
		}
	}()
	return nil
}

// resident is how much memory the daemon has, bytes.
func resident() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	if f := strings.Fields(string(b)); len(f) > 1 {
		n, _ := strconv.ParseUint(f[1], 10, 64)
		return n * uint64(os.Getpagesize())
	}
	return 0
}

// serveMetrics serves Prometheus until the daemon closes.
func (d *Daemon) serveMetrics() error {
	d.methods = metrics.NewMethods(0)
	s, err := metrics.Listen(d.o.Config.Metrics.Address, d, d.methods, metrics.Options{Version: d.o.Version})
	if err != nil {
		return err
	}
	d.scraped = s
	d.log.Info("metrics", "address", s.Addr())
	go func() {
		if err := s.Serve(); err != nil {
			d.log.Error("metrics", "err", err)
		}
	}()
	return nil
}
