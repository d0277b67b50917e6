package perfetto

// Track is a line of the timeline. Slices on one track nest. It belongs to the Writer that made it.
type Track struct {
	uuid  uint64
	begun bool
	last  uint64 // time of the last event on the incremental clock
	names idSet  // written for this track
	keys  idSet

	// prefix is what each of the track's packets carries: its sequence's id, and that it needs what came before.
	prefix    [12]byte
	prefixLen uint8
}

// Process describes a process. Times are CLOCK_BOOTTIME ns.
type Process struct {
	Pid, PPid int      // PPid 0: unknown
	Name      string   // comm
	Cmdline   []string // if known, Perfetto shows its first element as the name
	Start     uint64   // 0: unknown
}

// descriptor writes a TrackDescriptor whose own fields rest fills in.
func (w *Writer) descriptor(parent *Track, name string, rest func()) *Track {
	w.tracks++
	t := &Track{uuid: w.tracks}
	p := w.globalPacket()
	d := w.buf.open(tagTrackDescriptor)
	w.buf.uint(tagTrackUUID, t.uuid)
	if parent != nil {
		w.buf.uint(tagTrackParent, parent.uuid)
	}
	if name != "" {
		w.buf.string(tagTrackName, name)
	}
	rest()
	w.buf.close(d)
	w.buf.close(p)
	return t
}

// Process describes a process and returns its own track, for events that belong to no thread. Call it once for each
// process, and before its threads.
func (w *Writer) Process(p Process) *Track {
	t := w.descriptor(nil, "", func() {
		d := w.buf.open(tagProcess)
		w.buf.uint(tagProcessPid, uint64(p.Pid))
		w.buf.string(tagProcessName, p.Name)
		for _, arg := range p.Cmdline {
			w.buf.string(tagProcessCmdline, arg)
		}
		if p.Start != 0 {
			w.buf.uint(tagProcessStart, p.Start)
		}
		w.buf.close(d)
	})
	w.processTree(&p)
	return t
}

// processTree says what a descriptor can not: the parent, and the command line as a column of its own. Without a
// command line it would be passed over.
func (w *Writer) processTree(p *Process) {
	packet := w.globalPacket()
	w.buf.uint(tagTimestamp, w.start)
	tree := w.buf.open(tagProcessTree)
	d := w.buf.open(tagTreeProcess)
	w.buf.uint(tagTreePid, uint64(p.Pid))
	w.buf.uint(tagTreePPid, uint64(p.PPid))
	for _, arg := range p.Cmdline {
		w.buf.string(tagTreeCmdline, arg)
	}
	if len(p.Cmdline) == 0 {
		w.buf.string(tagTreeCmdline, p.Name)
		w.buf.uint(tagTreeIsComm, 1)
	}
	w.buf.close(d)
	w.buf.close(tree)
	w.buf.close(packet)
}

// Thread describes a thread and returns its track. Call it once for each thread: the trace processor takes a second
// track of the same thread for a reused tid.
func (w *Writer) Thread(pid, tid int, name string) *Track {
	return w.descriptor(nil, "", func() {
		d := w.buf.open(tagThread)
		w.buf.uint(tagThreadPid, uint64(pid))
		w.buf.uint(tagThreadTid, uint64(tid))
		if name != "" {
			w.buf.string(tagThreadName, name)
		}
		w.buf.close(d)
	})
}

// Child makes a track below another one, for slices that do not nest with the parent's. Children of one parent with
// the same name are shown as one group.
func (w *Writer) Child(parent *Track, name string) *Track {
	return w.descriptor(parent, name, func() {})
}

// CounterTrack makes a track of values below another one, for Counter.
func (w *Writer) CounterTrack(parent *Track, name, unit string) *Track {
	return w.descriptor(parent, name, func() {
		d := w.buf.open(tagCounter)
		if unit != "" {
			w.buf.string(tagCounterUnit, unit)
		}
		w.buf.close(d)
	})
}

// begin starts the track's packet sequence, once, with the defaults of its packets and its incremental clock.
func (w *Writer) begin(t *Track) {
	if t.begun {
		return
	}
	t.begun = true
	w.seqs++
	prefix := buffer(t.prefix[:0])
	prefix.uint(tagSequenceID, uint64(w.seqs))
	prefix.uint(tagSequenceFlags, sequenceNeedsState)
	t.prefixLen = uint8(len(prefix))
	t.last = w.start

	p := w.packet()
	w.buf.uint(tagSequenceID, uint64(w.seqs))
	w.buf.uint(tagSequenceFlags, sequenceCleared)
	w.buf.uint(tagFirstPacket, 1)
	d := w.buf.open(tagPacketDefaults)
	w.buf.uint(tagDefaultClockID, clockDelta)
	e := w.buf.open(tagDefaultEvent)
	w.buf.uint(tagDefaultTrack, t.uuid)
	w.buf.close(e)
	w.buf.close(d)
	s := w.buf.open(tagClockSnapshot)
	w.clock(clockBoottime, w.start)
	w.clock(clockDelta, w.start)
	w.buf.close(s)
	w.buf.close(p)
}
