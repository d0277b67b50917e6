package perfetto

// Scheduling events are written as the kernel's ftrace events, so that Perfetto derives its CPU and thread-state
// tracks from them: switches and wake-ups in columns (compact_sched), the rest as single events. One bundle is built
// for each CPU at a time.
//
// In the columns a switch does not say which thread it takes off the CPU; that is the thread that the switch before
// brought there. A recording of some threads only knows some switches, so wherever the two differ a switch between
// them is put in at the same time.

// bundleEvents is after how many events a CPU's bundle is written. Names are repeated in each bundle.
const bundleEvents = 4096

// cpu is a bundle under construction, and what is known of its CPU.
type cpu struct {
	id      uint64
	known   bool
	running int // the thread that the newest switch brought, if known
	events  int
	full    buffer // FtraceEvent messages

	switches, wakings column
	comms             map[[16]byte]uint64
	table             buffer // their names, as intern_table fields
}

// column holds the columns of one kind of event.
type column struct {
	n, last                                  uint64
	time, pid, prio, comm, state, cpu, flags buffer
}

func (c *column) add(ns uint64) {
	c.time.varint(ns - c.last)
	c.last = ns
	c.n++
}

func (c *column) reset() {
	*c = column{time: c.time[:0], pid: c.pid[:0], prio: c.prio[:0], comm: c.comm[:0], state: c.state[:0], cpu: c.cpu[:0], flags: c.flags[:0]}
}

// maxCPU bounds CPU numbers, far above NR_CPUS.
const maxCPU = 1 << 16

// onCPU returns the bundle of a CPU, with room for an event at a time; nil for a number that no CPU has.
func (w *Writer) onCPU(id int, ns uint64, col func(*cpu) *column) *cpu {
	if id < 0 || id >= maxCPU {
		return nil
	}
	for id >= len(w.cpus) {
		w.cpus = append(w.cpus, nil)
	}
	c := w.cpus[id]
	if c == nil {
		c = &cpu{id: uint64(id), comms: map[[16]byte]uint64{}}
		w.cpus[id] = c
	}
	// Times within a column only go forward.
	if c.events >= bundleEvents || col != nil && ns < col(c).last {
		w.flushCPU(c)
	}
	c.events++
	return c
}

func switchesOf(c *cpu) *column { return &c.switches }
func wakingsOf(c *cpu) *column  { return &c.wakings }

// Switch says that a CPU went from thread prev, left in a state, to thread next. Tid 0 is the idle thread. Events of
// one CPU come in order of time, and a CPU number is below 65536; others are left out.
func (w *Writer) Switch(id int, ns uint64, prev int, state State, next, nextPrio int, nextComm [16]byte) {
	c := w.onCPU(id, ns, switchesOf)
	if c == nil {
		return
	}
	switch {
	case !c.known:
		w.first(c, ns, prev)
	case c.running != prev:
		// Who left the CPU meanwhile, and in which state, is not known.
		c.switchTo(ns, Runnable, prev, 0, [16]byte{})
	}
	c.switchTo(ns, state, next, nextPrio, nextComm)
}

// first says which thread is known first on the CPU. It takes an event of its own, as the trace processor drops the
// first switch in the columns, and a bundle before theirs, as it takes events of one time from the columns first.
func (w *Writer) first(c *cpu, ns uint64, tid int) {
	e := c.event(ns, 0)
	m := c.full.open(tagSchedSwitch)
	c.full.uint(tagPrevPid, 0)
	c.full.uint(tagPrevState, 0)
	c.full.uint(tagNextPid, uint64(tid))
	c.full.close(m)
	c.full.close(e)
	w.flushCPU(c)
	c.known, c.running = true, tid
}

// Gap says that the recording does not know what a CPU did from this time on, as after lost events: the thread that
// runs there is shown up to here.
func (w *Writer) Gap(id int, ns uint64) {
	c := w.onCPU(id, ns, switchesOf)
	if c != nil && c.known && c.running != 0 {
		c.switchTo(ns, Runnable, 0, 0, [16]byte{})
	}
}

func (c *cpu) switchTo(ns uint64, state State, next, prio int, comm [16]byte) {
	s := &c.switches
	s.add(ns)
	s.state.varint(uint64(state))
	s.pid.varint(uint64(next))
	s.prio.varint(uint64(prio))
	s.comm.varint(c.commIndex(comm))
	c.known, c.running = true, next
}

// Waking says that thread waker, on CPU id, made thread tid runnable and wants it to run on CPU target.
func (w *Writer) Waking(id int, ns uint64, waker, tid, target, prio int, comm [16]byte) {
	c := w.onCPU(id, ns, wakingsOf)
	if c == nil {
		return
	}
	if c.known && c.running == waker {
		k := &c.wakings
		k.add(ns)
		k.pid.varint(uint64(tid))
		k.cpu.varint(uint64(target))
		k.prio.varint(uint64(prio))
		k.comm.varint(c.commIndex(comm))
		k.flags.varint(0)
		return
	}
	// The columns have no place for the waker: it is who runs there.
	e := c.event(ns, waker)
	m := c.full.open(tagSchedWaking)
	c.full.bytes(tagWakeComm, commBytes(&comm))
	c.full.uint(tagWakePid, uint64(tid))
	c.full.uint(tagWakePrio, uint64(prio))
	c.full.uint(tagWakeSuccess, 1)
	c.full.uint(tagWakeCPU, uint64(target))
	c.full.close(m)
	c.full.close(e)
}

// BlockedReason says whether the last blocked state of a thread is a wait for I/O. It follows the switch.
func (w *Writer) BlockedReason(id int, ns uint64, tid int, ioWait bool) {
	c := w.onCPU(id, ns, nil)
	if c == nil {
		return
	}
	io := uint64(0)
	if ioWait {
		io = 1
	}
	w.internCaller()
	e := c.event(ns, tid)
	m := c.full.open(tagBlockedReason)
	c.full.uint(tagBlockedPid, uint64(tid))
	c.full.uint(tagBlockedCaller, callerIID)
	c.full.uint(tagBlockedIO, io)
	c.full.close(m)
	c.full.close(e)
}

// callerIID stands for the kernel function in which a thread blocked, which is not recorded. The trace processor
// counts an error where it is missing.
const callerIID = 1

func (w *Writer) internCaller() {
	if w.caller {
		return
	}
	w.caller = true
	p := w.globalPacket()
	w.buf.uint(tagSequenceFlags, sequenceNeedsState)
	d := w.buf.open(tagInternedData)
	m := w.buf.open(tagKernelSymbols)
	w.buf.uint(tagInternedIID, callerIID)
	w.buf.string(tagInternedName, "")
	w.buf.close(m)
	w.buf.close(d)
	w.buf.close(p)
}

// Frequency says that a CPU runs at a frequency from this time on.
func (w *Writer) Frequency(id int, ns uint64, kHz uint32) {
	c := w.onCPU(id, ns, nil)
	if c == nil {
		return
	}
	e := c.event(ns, 0)
	m := c.full.open(tagCPUFrequency)
	c.full.uint(tagFrequencyState, uint64(kHz))
	c.full.uint(tagFrequencyCPU, c.id)
	c.full.close(m)
	c.full.close(e)
}

// event begins an FtraceEvent.
func (c *cpu) event(ns uint64, tid int) int {
	e := c.full.open(tagBundleEvent)
	c.full.uint(tagFtraceTime, ns)
	c.full.uint(tagFtracePid, uint64(tid))
	return e
}

// commIndex returns the index of a name in the bundle's table.
func (c *cpu) commIndex(comm [16]byte) uint64 {
	i, ok := c.comms[comm]
	if !ok {
		i = uint64(len(c.comms))
		c.comms[comm] = i
		c.table.bytes(tagCommTable, commBytes(&comm))
	}
	return i
}

func commBytes(comm *[16]byte) []byte {
	for i, ch := range comm {
		if ch == 0 {
			return comm[:i]
		}
	}
	return comm[:]
}

// flushCPU writes a CPU's bundle. What is known of the CPU stays.
func (w *Writer) flushCPU(c *cpu) {
	if len(c.full) == 0 && c.switches.n == 0 && c.wakings.n == 0 {
		c.events = 0
		return
	}
	p := w.globalPacket()
	f := w.buf.open(tagFtraceEvents)
	w.buf.uint(tagBundleCPU, c.id)
	w.buf = append(w.buf, c.full...)
	s := w.buf.open(tagBundleCompact)
	w.buf = append(w.buf, c.table...)
	if c.switches.n > 0 {
		w.buf.bytes(tagSwitchTime, c.switches.time)
		w.buf.bytes(tagSwitchState, c.switches.state)
		w.buf.bytes(tagSwitchPid, c.switches.pid)
		w.buf.bytes(tagSwitchPrio, c.switches.prio)
		w.buf.bytes(tagSwitchComm, c.switches.comm)
	}
	if c.wakings.n > 0 {
		w.buf.bytes(tagWakingTime, c.wakings.time)
		w.buf.bytes(tagWakingPid, c.wakings.pid)
		w.buf.bytes(tagWakingCPU, c.wakings.cpu)
		w.buf.bytes(tagWakingPrio, c.wakings.prio)
		w.buf.bytes(tagWakingComm, c.wakings.comm)
		w.buf.bytes(tagWakingCommon, c.wakings.flags)
	}
	w.buf.close(s)
	w.buf.close(f)
	w.buf.close(p)
	c.events, c.full, c.table = 0, c.full[:0], c.table[:0]
	c.switches.reset()
	c.wakings.reset()
	clear(c.comms)
}
