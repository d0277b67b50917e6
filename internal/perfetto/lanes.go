package perfetto

// Lanes are tracks of one name for slices that overlap without nesting, such as I/O requests: each slice goes to the
// first track that is free. There are as many tracks as there were slices at one time.
type Lanes struct {
	w      *Writer
	parent *Track
	name   string
	tracks []*Track
	free   []uint64 // until when the track is taken
}

// Lanes makes lanes below a track. They appear with their first slice.
func (w *Writer) Lanes(parent *Track, name string) *Lanes {
	return &Lanes{w: w, parent: parent, name: name}
}

// Slice writes a whole slice. Slices come in the order of their starts.
func (l *Lanes) Slice(start, end uint64, name NameID, args ...Arg) {
	l.SliceMark(start, end, name, args, 0)
}

// SliceMark is Slice with an instant at its end, for a flow that begins or arrives there: the trace processor ties a flow
// to the slice as a whole, and lets it go from the slice that begins first. Mark 0 is none.
func (l *Lanes) SliceMark(start, end uint64, name NameID, args []Arg, mark NameID, markArgs ...Arg) {
	i := 0
	for i < len(l.free) && l.free[i] > start {
		i++
	}
	if i == len(l.free) {
		l.tracks = append(l.tracks, l.w.Child(l.parent, l.name))
		l.free = append(l.free, 0)
	}
	end = max(start, end)
	l.free[i] = end
	l.w.event(l.tracks[i], start, typeBegin, name, args)
	if mark != 0 {
		l.w.Instant(l.tracks[i], end, mark, markArgs...)
	}
	l.w.End(l.tracks[i], end)
}
