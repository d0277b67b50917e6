package tracefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"braid/internal/kevent"
)

// DumpOptions choose what Dump renders. The zero value renders everything.
type DumpOptions struct {
	Kinds []Kind // empty: all
	Limit int    // of slots, events, symbols and samples for each section; 0: none
}

// Dump renders the sections of r as text in the order of the file, then what is wrong with it. It holds one section
// at a time, and the symbols' names. The error is one of reading or of w; damage is part of the text.
func Dump(w io.Writer, r *Reader, o DumpOptions) error {
	d := &dumper{w: bufio.NewWriterSize(w, 64<<10), r: r, o: o}
	if err := d.loadNames(); err != nil {
		return err
	}
	fmt.Fprintf(d.w, "braid trace, format version %d\n", r.Version())
	for s := range r.Sections(o.Kinds...) {
		if err := d.section(s); err != nil {
			return err
		}
	}
	fmt.Fprintln(d.w)
	if r.Complete() {
		fmt.Fprintf(d.w, "end: complete, %d sections\n", r.Len())
	} else {
		fmt.Fprintf(d.w, "end: missing, %d sections were read\n", r.Len())
	}
	for _, p := range r.Problems() {
		fmt.Fprintf(d.w, "problem: %v\n", p)
	}
	return d.w.Flush()
}

type dumper struct {
	w      *bufio.Writer
	r      *Reader
	o      DumpOptions
	wide   map[uint64]string // address to name
	narrow map[uint32]string // low half of the address to name; empty: several
	bit0   uint64            // what of a method pointer is no address
	table  *FrameTable       // names of samples' frames
	buf    []byte
	line   []byte
	module int // index of the next module
}

func (d *dumper) loadNames() error {
	symbols, err := d.r.Symbols()
	if err != nil {
		return err
	}
	frames, err := d.r.Frames()
	if err != nil {
		return err
	}
	d.table = frames.Table()
	if m, err := d.r.Meta(); err == nil && m.Thumb() {
		d.bit0 = 1
	}
	d.wide = make(map[uint64]string, len(symbols))
	d.narrow = make(map[uint32]string, len(symbols))
	for _, s := range symbols {
		d.wide[s.Addr] = s.Name
		if name, ok := d.narrow[uint32(s.Addr)]; ok && name != s.Name {
			d.narrow[uint32(s.Addr)] = ""
		} else {
			d.narrow[uint32(s.Addr)] = s.Name
		}
	}
	return nil
}

func (d *dumper) section(s *Section) error {
	fmt.Fprintf(d.w, "\n%v, %d bytes at offset %d\n", s.Kind, s.Length, s.Offset)
	b, err := d.r.Content(s, d.buf)
	if errors.Is(err, ErrChecksum) {
		fmt.Fprintf(d.w, "  damaged, skipped\n")
		return nil
	}
	if err != nil {
		return err
	}
	d.buf = b
	switch s.Kind {
	case KindClock:
		err = d.clock(b)
	case KindModules:
		err = d.modules(b)
	case KindSymbols:
		err = d.symbols(b)
	case KindRing:
		err = d.ring(b)
	case KindEvents:
		err = d.events(b)
	case KindSamples:
		err = d.samples(b)
	case KindFrames:
		err = d.frames(b)
	default:
		err = d.json(b)
	}
	if err != nil {
		_ = d.r.damaged(s, ErrContent, "%v", err)
		fmt.Fprintf(d.w, "  damaged: %v\n", err)
	}
	return nil
}

// limit returns how many of n items are shown.
func (d *dumper) limit(n int) int {
	if d.o.Limit > 0 {
		return min(n, d.o.Limit)
	}
	return n
}

func (d *dumper) more(shown, n int, what string) {
	if shown < n {
		fmt.Fprintf(d.w, "  ... %d more %s\n", n-shown, what)
	}
}

func (d *dumper) json(b []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(b), "  ", "  "); err != nil {
		return err
	}
	fmt.Fprintf(d.w, "  %s\n", out.Bytes())
	return nil
}

func (d *dumper) modules(b []byte) error {
	var modules []Module
	if err := decodeJSON(b, &modules); err != nil {
		return err
	}
	for _, m := range modules {
		fmt.Fprintf(d.w, "  [%d] %012x-%012x bias %x %s", d.module, m.Start, m.End, m.Bias, printable(m.Path))
		d.module++
		if m.Pid != 0 {
			fmt.Fprintf(d.w, " pid %d", m.Pid)
		}
		if m.BuildID != "" {
			fmt.Fprintf(d.w, " build id %s", printable(m.BuildID))
		}
		if m.Instrumented {
			fmt.Fprint(d.w, " instrumented")
		}
		if m.Loaded != 0 {
			fmt.Fprintf(d.w, " loaded at counter %d", m.Loaded)
		}
		if m.Unloaded != 0 {
			fmt.Fprintf(d.w, " unloaded at counter %d", m.Unloaded)
		}
		if m.UnloadedNs != 0 {
			fmt.Fprintf(d.w, " unloaded at %s", seconds(m.UnloadedNs))
		}
		if m.Unresolved != "" {
			fmt.Fprintf(d.w, " unresolved: %s", printable(m.Unresolved))
		}
		fmt.Fprintln(d.w)
	}
	return nil
}

func (d *dumper) clock(b []byte) error {
	c, err := DecodeClock(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "  %v, %d Hz, %d samples\n", c.Counter, c.Frequency, len(c.Samples))
	n := d.limit(len(c.Samples))
	for _, s := range c.Samples[:n] {
		fmt.Fprintf(d.w, "  %d..%d boot %s\n", s.Before, s.After, seconds(s.BootNs))
	}
	d.more(n, len(c.Samples), "samples")
	return nil
}

func (d *dumper) symbols(b []byte) error {
	symbols, err := DecodeSymbols(b)
	if err != nil {
		return err
	}
	n := d.limit(len(symbols))
	for _, s := range symbols[:n] {
		fmt.Fprintf(d.w, "  %016x %6d ", s.Addr, s.Size)
		if s.Module == NoModule {
			fmt.Fprintf(d.w, "[-] %s", printable(s.Name))
		} else {
			fmt.Fprintf(d.w, "[%d] %s", s.Module, printable(s.Name))
		}
		if s.Raw != s.Name {
			fmt.Fprintf(d.w, " (%s)", printable(s.Raw))
		}
		fmt.Fprintln(d.w)
	}
	d.more(n, len(symbols), "symbols")
	return nil
}

func (d *dumper) events(b []byte) error {
	shown, count := 0, 0
	for len(b) > 0 {
		h, body, rest, err := kevent.Next(b)
		if err != nil {
			return err
		}
		b = rest
		if count++; count > d.limit(count) {
			continue
		}
		shown++
		d.line = append(d.line[:0], "  "...)
		d.line = kevent.AppendText(d.line, h, body)
		d.line = append(d.line, '\n')
		d.w.Write(d.line)
	}
	d.more(shown, count, "events")
	return nil
}

// seconds renders nanoseconds as seconds, exactly.
func seconds(ns uint64) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// printable keeps control characters of foreign names away from a terminal.
func printable(s string) string {
	for _, c := range s {
		if !strconv.IsPrint(c) || c == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}
