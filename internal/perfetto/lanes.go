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
	l.w.End(l.tracks[i], end)
}
