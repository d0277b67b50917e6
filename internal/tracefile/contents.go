package tracefile

import (
	"errors"
	"iter"

	"braid/internal/kevent"
)

// ErrNoSection says that a file holds no whole section of a kind.
var ErrNoSection = errors.New("the trace file has no such section")

// The functions below read every section of one kind. A damaged one is skipped and becomes one of the Problems; the
// error is one of reading, or ErrNoSection where one says so.

// each hands the content of every undamaged section of a kind to f, valid during the call. An error of f makes the
// section a damaged one.
func (r *Reader) each(kind Kind, f func(b []byte) error) error {
	var buf []byte
	for s := range r.Sections(kind) {
		b, err := r.Content(s, buf)
		if errors.Is(err, ErrChecksum) {
			continue
		}
		if err != nil {
			return err
		}
		buf = b
		if err := f(b); err != nil {
			_ = r.damaged(s, ErrContent, "%v", err)
		}
	}
	return nil
}

// Meta returns the meta section; of several, the last one. ErrNoSection if there is none.
func (r *Reader) Meta() (*Meta, error) {
	var meta *Meta
	err := r.each(KindMeta, func(b []byte) error {
		m := new(Meta)
		if err := decodeJSON(b, m); err != nil {
			return err
		}
		meta = m
		return nil
	})
	if err == nil && meta == nil {
		err = ErrNoSection
	}
	return meta, err
}

// Clock returns the samples of all clock sections. ErrNoSection if there is none.
func (r *Reader) Clock() (*Clock, error) {
	var clock *Clock
	err := r.each(KindClock, func(b []byte) error {
		c, err := DecodeClock(b)
		if err != nil {
			return err
		}
		if clock != nil {
			c.Samples = append(clock.Samples, c.Samples...)
		}
		clock = c
		return nil
	})
	if err == nil && clock == nil {
		err = ErrNoSection
	}
	return clock, err
}

// Processes returns the process table.
func (r *Reader) Processes() (*Processes, error) {
	type id struct {
		id    int
		start uint64
	}
	all := new(Processes)
	processes, threads := map[id]int{}, map[id]int{}
	err := r.each(KindProcesses, func(b []byte) error {
		var p Processes
		if err := decodeJSON(b, &p); err != nil {
			return err
		}
		for _, p := range p.Processes {
			if i, ok := processes[id{p.Pid, p.StartNs}]; ok {
				all.Processes[i] = p
				continue
			}
			processes[id{p.Pid, p.StartNs}] = len(all.Processes)
			all.Processes = append(all.Processes, p)
		}
		for _, t := range p.Threads {
			if i, ok := threads[id{t.Tid, t.StartNs}]; ok {
				all.Threads[i] = t
				continue
			}
			threads[id{t.Tid, t.StartNs}] = len(all.Threads)
			all.Threads = append(all.Threads, t)
		}
		return nil
	})
	return all, err
}

// Modules returns all modules. A damaged modules section shifts the indexes of those after it, so that symbols of
// later sections lose their modules too: the result then ends at the damaged section.
func (r *Reader) Modules() ([]Module, error) {
	var all []Module
	whole := true
	for s := range r.Sections(KindModules) {
		b, err := r.Content(s, nil)
		if err != nil && !errors.Is(err, ErrChecksum) {
			return nil, err
		}
		var m []Module
		if err == nil {
			if err = decodeJSON(b, &m); err != nil {
				_ = r.damaged(s, ErrContent, "%v", err)
			}
		}
		whole = whole && err == nil
		if whole {
			all = append(all, m...)
		}
	}
	return all, nil
}

// Symbols returns all symbols, in the order of the file.
func (r *Reader) Symbols() ([]Symbol, error) {
	var all []Symbol
	err := r.each(KindSymbols, func(b []byte) error {
		s, err := DecodeSymbols(b)
		if len(all) == 0 {
			all = s
		} else {
			all = append(all, s...)
		}
		return err
	})
	return all, err
}

// Lost returns the sum of all lost sections.
func (r *Reader) Lost() (*Lost, error) {
	all := &Lost{Counts: map[string]uint64{}}
	err := r.each(KindLost, func(b []byte) error {
		var l Lost
		if err := decodeJSON(b, &l); err != nil {
			return err
		}
		for name, n := range l.Counts {
			all.Counts[name] += n
		}
		all.Hooks = append(all.Hooks, l.Hooks...)
		return nil
	})
	return all, err
}

// RingHeaders yields every ring segment without its slots and anchors, and its section for Ring. It reads the header
// only and can not tell whether the section is damaged.
func (r *Reader) RingHeaders() iter.Seq2[*Section, *Ring] {
	return func(yield func(*Section, *Ring) bool) {
		var b [ringHeaderSize]byte
		for s := range r.Sections(KindRing) {
			if s.Length < ringHeaderSize || r.readAt(b[:], s.Offset+sectionHeaderSize) != nil {
				continue
			}
			h, _, _ := decodeRingHeader(b[:])
			if !yield(s, h) {
				return
			}
		}
	}
}

// Ring reads one ring segment. buf is used for it if it is large enough; the slots alias it or a new buffer, which is
// returned for the next call. An ErrChecksum or ErrContent is one of the Problems too.
func (r *Reader) Ring(s *Section, buf []byte) (*Ring, []byte, error) {
	b, err := r.Content(s, buf)
	if err != nil {
		return nil, buf, err
	}
	ring, err := DecodeRing(b)
	if err != nil {
		return nil, b, r.damaged(s, ErrContent, "%v", err)
	}
	return ring, b, nil
}

// Rings yields every undamaged ring segment in the order of the file. Its slots are only valid until the next one.
// A second value that is not nil is an error of reading, and the last.
func (r *Reader) Rings() iter.Seq2[*Ring, error] {
	return func(yield func(*Ring, error) bool) {
		var buf []byte
		for s := range r.Sections(KindRing) {
			ring, next, err := r.Ring(s, buf)
			buf = next
			if errors.Is(err, ErrChecksum) || errors.Is(err, ErrContent) {
				continue
			}
			if !yield(ring, err) || err != nil {
				return
			}
		}
	}
}

// Events yields the kernel events of one section after another, each a run of whole events for kevent.Next in the
// order in which they were recorded. The bytes are only valid until the next one. An event that makes no sense ends
// its section, and becomes one of the Problems. A second value that is not nil is an error of reading, and the last.
func (r *Reader) Events() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var buf []byte
		for s := range r.Sections(KindEvents) {
			b, err := r.Content(s, buf)
			if errors.Is(err, ErrChecksum) {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			buf = b
			if n, err := wholeEvents(b); err != nil {
				_ = r.damaged(s, ErrContent, "after %d bytes: %v", n, err)
				b = b[:n]
			}
			if len(b) > 0 && !yield(b, nil) {
				return
			}
		}
	}
}

// wholeEvents returns how many bytes of b are whole events of known kinds, and why it is not all of them.
func wholeEvents(b []byte) (int, error) {
	rest := b
	for len(rest) > 0 {
		_, _, next, err := kevent.Next(rest)
		if err != nil {
			return len(b) - len(rest), err
		}
		rest = next
	}
	return len(b), nil
}

// WriteEvents appends a section of kernel events: whole events, one after another.
func (w *Writer) WriteEvents(events []byte) error { return w.WriteSection(KindEvents, events) }
