package recorder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"time"

	"braid/control"
	"braid/internal/capture"
	"braid/internal/counter"
	"braid/internal/cpus"
	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// pollPeriod is how often the rings are looked at: many times in 2^32 ticks of any counter that braid knows (the fastest
// wraps its low half in about a second).
const pollPeriod = 50 * time.Millisecond

// samplePeriod is how often counter and clock are related. In between, CLOCK_BOOTTIME strays from the line by what NTP
// slews it, at most 500 ppm.
const samplePeriod = 200 * time.Millisecond

// samplesKept is how many samples are held before they are written, so that a long recording does not gather them.
const samplesKept = 1024

// patience is how long a thread may take to answer a request to stop before its ring is read without an answer.
const patience = 20 * time.Millisecond

// Result is what a recording came to.
type Result struct {
	Exited       bool // the target has ended
	ExitCode     int  // as a shell reports it: 128+n for signal n
	Signal       int
	Records      uint64 // slots written to the file
	Threads      int    // threads with records
	Wrapped      int    // rings that were overwritten at their old end
	KernelEvents uint64
	Samples      uint64
	Incomplete   uint64 // of the samples, those whose user stack does not reach its outermost frame
	Bytes        uint64 // of the trace file
	Lost         map[string]uint64
	Notes        []string
	wait         func() (int, int)
}

// Wait waits for a launched target that outlived the recording, and returns its exit code. It returns at once if the
// target has ended or was not launched here.
func (r *Result) Wait() int {
	if r.wait != nil {
		r.ExitCode, r.Signal = r.wait()
		r.wait = nil
	}
	return r.ExitCode
}

// StartError says that the target could not be started; Code is what a shell would exit with.
type StartError struct {
	Code int
	Err  error
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// session of one recording.
type recording struct {
	o        Options
	out      *capture.Output
	w        *tracefile.Writer
	rings    *rings
	kernel   *kernelSide
	sampling *sampling // nil: none
	target   *launched
	chooser  *chooser      // nil but with Options.Choose
	ended    chan struct{} // the target has ended
	clock    []tracefile.ClockSample
	initial  tracefile.Processes
	meta     tracefile.Meta
	hooks    []string // that the kernel does not have
	res      Result
}

// Run records until the target ends, Options.For is over or Options.Interrupt is closed, and writes the trace file. If
// the file can't be written, the target is left alone and its exit code is still in the Result.
func Run(o Options) (*Result, error) {
	if o.RingBytes == 0 {
		o.RingBytes = DefaultRing
	}
	w, err := tracefile.Create(o.Output)
	if err != nil {
		return nil, err
	}
	r := &recording{o: o, out: capture.NewOutput(w), w: w, ended: make(chan struct{})}
	r.rings = newRings(r.out, o)
	r.res.Lost = map[string]uint64{}
	if err := r.begin(); err != nil {
		r.abandon()
		return nil, err
	}
	if err := r.loop(); err != nil {
		r.abandon()
		return nil, err
	}
	err = r.end()
	return &r.res, err
}

// begin starts both sides and the target. On an error everything is undone by abandon.
func (r *recording) begin() error {
	r.describeMachine()
	if err := r.sample(); err != nil {
		return err
	}
	if len(r.o.Units) > 0 {
		k, err := loadKernel(&r.o)
		switch {
		case err == nil:
			r.kernel, r.rings.told = k, true
			go k.pump(r.out)
		case r.o.Demand:
			return err
		default:
			r.note("no kernel events: " + err.Error())
		}
	}
	if err := r.beginSampling(); err != nil {
		return err
	}
	switch {
	case r.o.Choose != nil:
		return r.choose()
	case r.o.Pid != 0:
		return r.attach()
	}
	return r.start()
}

func (r *recording) note(s string) { r.meta.Notes = append(r.meta.Notes, s) }

func (r *recording) attach() error {
	pid := r.o.Pid
	if capture.Gone(pid) {
		return fmt.Errorf("process %d does not exist", pid)
	}
	if r.kernel != nil {
		if err := r.kernel.rec.AddTarget(pid); err != nil {
			return err
		}
	}
	if err := r.sampleRunning(pid); err != nil {
		return err
	}
	r.initial.Processes = []tracefile.Process{capture.Describe(pid)}
	r.initial.Threads = capture.ThreadsOf(pid)
	err := r.rings.attach(pid)
	if errors.Is(err, control.ErrNoStubs) {
		if r.kernel == nil && r.sampling == nil {
			return fmt.Errorf("%w; there is nothing to record without kernel events", err)
		}
		r.rings.seek(pid) // it may load a traced library yet
		err = nil
	}
	if err != nil {
		return err
	}
	go func() {
		for !capture.Gone(pid) {
			time.Sleep(20 * time.Millisecond)
		}
		close(r.ended)
	}()
	return nil
}

func (r *recording) noStubs() {
	if r.kernel == nil && r.o.Sample == nil {
		r.note("the target carries no stubs and there are no kernel events: nothing was recorded. Build it with braid cc to see its methods")
		return
	}
	if r.kernel == nil {
		r.note("the target carries no stubs: samples only. Build it with braid cc to see its methods")
		return
	}
	if r.o.Sample != nil {
		r.note("the target carries no stubs: kernel events and samples only. Build it with braid cc to see its methods")
		return
	}
	r.note("the target carries no stubs: kernel events only. Build it with braid cc to see its methods")
}

func (r *recording) start() error {
	if err := r.rings.open(r.o); err != nil {
		return err
	}
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	t, err := launch(r.o, append(slices.Clone(env), r.rings.session.Env()))
	if err != nil {
		code := 126
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = 127
		}
		return &StartError{code, err}
	}
	r.target = t
	r.meta.Pid = t.cmd.Process.Pid
	if r.kernel != nil {
		if err := r.kernel.rec.AddPending(r.meta.Pid); err != nil {
			t.drop()
			return err
		}
	}
	if err := r.samplePending(r.meta.Pid); err != nil {
		t.drop()
		return err
	}
	if err := t.release(); err != nil {
		t.cmd.Wait()
		return &StartError{t.cmd.ProcessState.ExitCode(), err} // 126 or 127, as Launched chose
	}
	r.initial.Processes = []tracefile.Process{capture.Describe(r.meta.Pid)}
	go func() {
		t.cmd.Wait()
		close(r.ended)
	}()
	return nil
}

func (r *recording) abandon() {
	if r.kernel != nil {
		r.kernel.finish()
	}
	r.closeSampling()
	r.rings.close()
	r.w.Abort()
}

// loop runs until the recording is over. An error means that there is nothing to write.
func (r *recording) loop() error {
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	var polled, sampled time.Time
	var over <-chan time.Time
	var notices <-chan notice
	if r.kernel != nil {
		notices = r.kernel.notices
	}
	for {
		if over == nil && r.o.For > 0 && (r.chooser == nil || r.chooser.found > 0) {
			over = time.After(r.o.For)
		}
		select {
		case <-r.ended:
			r.res.Exited = true
			return nil
		case <-r.o.Interrupt:
			if r.chooser != nil && r.chooser.found == 0 {
				return fmt.Errorf("%w: no %s before the interrupt", ErrNobody, r.o.Choose)
			}
			return nil
		case <-over:
			return nil
		case s := <-r.o.Kill:
			if r.target != nil {
				r.target.cmd.Process.Signal(s)
			}
			continue
		case n := <-notices:
			if err := r.announced(n); err != nil {
				return err
			}
			r.rings.find(time.Now())
			tick.Reset(quickPeriod)
			continue
		case <-tick.C:
		}
		if r.out.Failed() != nil {
			return nil // the disk is full, say: stop disturbing the target
		}
		now := time.Now()
		if done, err := r.search(now); err != nil {
			return err
		} else if done {
			r.res.Exited = true
			return nil
		}
		tick.Reset(r.period(now))
		if now.Sub(polled) < pollPeriod {
			continue
		}
		polled = now
		if err := r.rings.poll(); err != nil {
			r.out.Do(func(*tracefile.Writer) error { return err })
			return nil
		}
		if now.Sub(sampled) >= samplePeriod {
			sampled = now
			if err := r.sample(); err != nil {
				r.out.Do(func(*tracefile.Writer) error { return err })
				return nil
			}
		}
	}
}

// end stops both sides and closes the file.
func (r *recording) end() error {
	rerr := r.rings.finish()
	var kerr error
	if r.kernel != nil {
		r.hooks = r.kernel.rec.Missing()
		for _, s := range r.kernel.rec.Fallbacks() {
			r.note(s)
		}
		var lost map[string]uint64
		var targets []int
		lost, targets, kerr = r.kernel.finish()
		r.initial.Processes = append(r.initial.Processes, r.kernel.partners.foreign(targets)...)
		r.res.KernelEvents = r.kernel.events
		maps.Copy(r.res.Lost, lost)
	}
	serr := errors.Join(r.endSampling(), r.sample())
	r.finishResult()
	werr := r.rings.names.Write(r.out)
	for _, s := range r.rings.names.Ambiguous {
		r.note(s)
	}
	r.res.Notes = r.meta.Notes
	r.rings.close()
	if werr == nil {
		werr = r.out.Do(r.writeRest)
	}
	if rerr != nil && errors.Is(werr, rerr) {
		werr = nil // say it once
	}
	if err := errors.Join(rerr, kerr, serr, werr); err != nil {
		r.w.Abort()
		return err
	}
	if err := r.w.Close(); err != nil {
		return err
	}
	r.res.Bytes = r.w.Size()
	return nil
}

func (r *recording) finishResult() {
	r.res.Records, r.res.Threads, r.res.Wrapped = r.rings.slots, len(r.rings.threads), r.rings.wrapped
	maps.Copy(r.res.Lost, r.rings.lost)
	if len(r.rings.names.Procs) == 0 {
		r.noStubs()
	}
	for pid, err := range r.rings.refused {
		if capture.Gone(pid) {
			continue
		}
		r.note(fmt.Sprintf("no methods of process %d: %v", pid, err))
	}
	if r.rings.late > 0 {
		r.note(fmt.Sprintf("%s waiting outside instrumented code when the recording ended, and will stop recording when waking", plural(r.rings.late, "thread")))
	}
	if r.target != nil {
		wait := func() (int, int) {
			<-r.ended
			return exitCode(r.target.cmd.ProcessState)
		}
		if r.res.Exited {
			r.res.ExitCode, r.res.Signal = wait()
			r.meta.Exit = &tracefile.Exit{Code: r.res.ExitCode, Signal: r.res.Signal}
		} else {
			r.res.wait = wait
		}
	}
}

func (r *recording) writeRest(w *tracefile.Writer) error {
	r.meta.End = instant()
	for _, p := range r.rings.names.Procs {
		known := slices.ContainsFunc(r.initial.Processes, func(q tracefile.Process) bool { return q.Pid == p.Pid })
		if p.Info.Name != "" || !known { // it had gone before it could be described
			r.initial.Processes = append(r.initial.Processes, p.Info)
		}
	}
	for _, step := range []func() error{
		func() error { return r.writeClock(w) },
		func() error { return w.WriteProcesses(&r.initial) },
		func() error { return w.WriteLost(&tracefile.Lost{Counts: r.res.Lost, Hooks: r.hooks}) },
		func() error { return w.WriteMeta(&r.meta) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sample relates the counter to CLOCK_BOOTTIME once more.
func (r *recording) sample() error {
	s, err := counter.Take()
	if err != nil {
		return err
	}
	r.clock = append(r.clock, tracefile.ClockSample{Before: s.Before, After: s.After, BootNs: s.Boottime})
	if len(r.clock) == samplesKept {
		return r.out.Do(r.writeClock)
	}
	return nil
}

func (r *recording) writeClock(w *tracefile.Writer) error {
	kind := tracefile.CounterTSC
	if counter.Name == "cntvct_el0" {
		kind = tracefile.CounterCNTVCT
	}
	c := &tracefile.Clock{Counter: kind, Frequency: counter.Hz(), Samples: r.clock}
	r.clock = r.clock[:0]
	return w.WriteClock(c)
}

func (r *recording) describeMachine() {
	var u unix.Utsname
	unix.Uname(&u)
	host, _ := os.Hostname()
	r.meta = tracefile.Meta{Braid: r.o.Version, Command: r.o.Command, Kernel: unix.ByteSliceToString(u.Release[:]),
		Machine: unix.ByteSliceToString(u.Machine[:]), Arch: goruntime.GOARCH, Host: host, CPUs: goruntime.NumCPU(),
		Processors: cpus.Read(os.DirFS("/")), Start: instant(), Options: r.o.Flags, Pid: r.o.Pid}
}

func instant() tracefile.Instant {
	b, _ := counter.Boottime()
	return tracefile.Instant{WallNs: time.Now().UnixNano(), BootNs: b}
}
