package perfetto

// Arg is one argument of an event, shown when it is selected.
type Arg struct {
	key   KeyID
	tag   uint16
	value uint64
	text  string
}

// Int makes an argument of a signed number.
func Int(key KeyID, v int64) Arg { return Arg{key: key, tag: tagArgInt, value: uint64(v)} }

// Uint makes an argument of an unsigned number.
func Uint(key KeyID, v uint64) Arg { return Arg{key: key, tag: tagArgUint, value: v} }

// Pointer makes an argument that is shown in hexadecimal.
func Pointer(key KeyID, v uint64) Arg { return Arg{key: key, tag: tagArgPointer, value: v} }

// String makes an argument of text.
func String(key KeyID, s string) Arg { return Arg{key: key, tag: tagArgString, text: s} }

// Bool makes an argument that is true or false.
func Bool(key KeyID, v bool) Arg {
	a := Arg{key: key, tag: tagArgBool}
	if v {
		a.value = 1
	}
	return a
}

// FlowOut makes the event one end of an arrow; every event with the same id is connected, in order of time. Ids are
// for the whole trace and not 0.
func FlowOut(id uint64) Arg { return Arg{tag: tagFlow, value: id} }

// FlowIn ends the arrow of this id.
func FlowIn(id uint64) Arg { return Arg{tag: tagTerminatingFlow, value: id} }

// Begin opens a slice on t at a time in CLOCK_BOOTTIME ns.
func (w *Writer) Begin(t *Track, ns uint64, name NameID) {
	if !t.names.has(uint32(name)) {
		w.addName(t, name)
	}
	w.room()
	b := w.buf
	// No field of this packet can make it longer than one byte of length says.
	b = append(b, tagPacket, 0)
	start := len(b)
	b = t.appendTime(b, ns)
	b = append(b, t.prefix[:t.prefixLen]...)
	b = append(b, tagTrackEvent, 0, tagType, typeBegin, tagNameIID)
	event := len(b) - 3
	id := uint32(name)
	for id >= 0x80 {
		b = append(b, byte(id)|0x80)
		id >>= 7
	}
	b = append(b, byte(id))
	b[event-1] = byte(len(b) - event)
	b[start-1] = byte(len(b) - start)
	w.buf = b
}

// End closes the innermost open slice of t. Where none is open, the trace processor passes over it.
func (w *Writer) End(t *Track, ns uint64) {
	w.begin(t)
	w.room()
	b := w.buf
	b = append(b, tagPacket, 0)
	start := len(b)
	b = t.appendTime(b, ns)
	b = append(b, t.prefix[:t.prefixLen]...)
	b = append(b, tagTrackEvent, 2, tagType, typeEnd)
	b[start-1] = byte(len(b) - start)
	w.buf = b
}

// appendTime appends the packet's timestamp: the difference to the one before, or the absolute one if it is earlier.
func (t *Track) appendTime(b buffer, ns uint64) buffer {
	d := ns - t.last
	if ns < t.last {
		b.uint(tagTimestamp, ns)
		b.uint(tagClockID, clockBoottime)
		return b
	}
	t.last = ns
	b = append(b, tagTimestamp)
	for d >= 0x80 {
		b = append(b, byte(d)|0x80)
		d >>= 7
	}
	return append(b, byte(d))
}

// addName writes a name before its first use on t.
func (w *Writer) addName(t *Track, name NameID) {
	t.names.add(uint32(name))
	w.intern(t, tagEventNames, uint32(name), w.names.strings[name])
}

// BeginArgs opens a slice with arguments. The arguments are not kept.
func (w *Writer) BeginArgs(t *Track, ns uint64, name NameID, args ...Arg) {
	w.event(t, ns, typeBegin, name, args)
}

// EndArgs closes the innermost open slice of t and adds arguments to it.
func (w *Writer) EndArgs(t *Track, ns uint64, args ...Arg) { w.event(t, ns, typeEnd, 0, args) }

// Instant marks a moment on t.
func (w *Writer) Instant(t *Track, ns uint64, name NameID, args ...Arg) {
	w.event(t, ns, typeInstant, name, args)
}

// Counter says the value from this time on, on a track that CounterTrack made.
func (w *Writer) Counter(t *Track, ns uint64, value int64) {
	w.begin(t)
	p := w.packet()
	w.buf = t.appendTime(w.buf, ns)
	w.buf = append(w.buf, t.prefix[:t.prefixLen]...)
	e := w.buf.open(tagTrackEvent)
	w.buf.uint(tagType, typeCounter)
	w.buf.uint(tagCounterValue, uint64(value))
	w.buf.close(e)
	w.buf.close(p)
}

func (w *Writer) event(t *Track, ns uint64, kind uint64, name NameID, args []Arg) {
	w.begin(t)
	if name != 0 && !t.names.has(uint32(name)) {
		w.addName(t, name)
	}
	for i := range args {
		if key := args[i].key; key != 0 && !t.keys.has(uint32(key)) {
			t.keys.add(uint32(key))
			w.intern(t, tagArgNames, uint32(key), w.keys.strings[key])
		}
	}
	p := w.packet()
	w.buf = t.appendTime(w.buf, ns)
	w.buf = append(w.buf, t.prefix[:t.prefixLen]...)
	e := w.buf.open(tagTrackEvent)
	w.buf.uint(tagType, kind)
	if name != 0 {
		w.buf.uint(tagNameIID, uint64(name))
	}
	for i := range args {
		w.buf.arg(&args[i])
	}
	w.buf.close(e)
	w.buf.close(p)
}

func (b *buffer) arg(a *Arg) {
	switch a.tag {
	case tagFlow, tagTerminatingFlow:
		b.fixed64(uint64(a.tag), a.value)
		return
	}
	m := b.open(tagAnnotation)
	b.uint(tagArgNameIID, uint64(a.key))
	if a.tag == tagArgString {
		b.string(tagArgString, a.text)
	} else {
		b.uint(uint64(a.tag), a.value)
	}
	b.close(m)
}
