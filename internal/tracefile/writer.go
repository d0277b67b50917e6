package tracefile

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrClosed is returned by a Writer that was closed or aborted, or that failed before.
var ErrClosed = errors.New("the trace file is closed")

// Writer writes one trace file. It may be used from one goroutine at a time.
//
// The file is written beside its destination, as .NAME.tmp-*, and takes its place at Close; until then an older file
// of that name is untouched. The first error removes the temporary file and stays: every later call returns it. A
// recorder that is killed leaves the temporary file behind, which reads like any file that was cut short.
type Writer struct {
	path  string // destination, symbolic links resolved
	file  *os.File
	buf   *bufio.Writer
	head  []byte // reused for headers
	count uint32 // sections written
	size  uint64
	err   error
}

// Create begins a trace file that will be at path. The file gets the mode of the one that it replaces, or 0600: a
// trace shows what a program did and with what arguments, and belongs to whoever recorded it.
func Create(path string) (*Writer, error) {
	mode := fs.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
		st, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("create trace file: %w", err)
		}
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("create trace file: %s is not a regular file; name a file to write to", path)
		}
		mode = st.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create trace file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, fmt.Errorf("create trace file: %w", err)
	}
	w := &Writer{path: path, file: f, buf: bufio.NewWriterSize(f, 256<<10)}
	if mode != 0o600 {
		if err := f.Chmod(mode); err != nil {
			return nil, w.fail("set the mode", err)
		}
	}
	w.head = appendFileHeader(w.head)
	w.size = uint64(len(w.head))
	if _, err := w.buf.Write(w.head); err != nil {
		return nil, w.fail("write the header", err)
	}
	return w, nil
}

// Size is the number of bytes written so far.
func (w *Writer) Size() uint64 { return w.size }

// WriteSection appends a section whose content is the parts, one after another. The parts are not kept. A content
// longer than MaxContent, or of KindEnd, is refused and harms nothing; any other error ends the file (see Writer).
func (w *Writer) WriteSection(kind Kind, parts ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	var length uint64
	var crc uint32
	for _, p := range parts {
		length += uint64(len(p))
	}
	switch {
	case kind == KindEnd:
		return errors.New("write trace section: the end section is written by Close")
	case length > MaxContent:
		return fmt.Errorf("write trace section: %d bytes of %v exceed the limit of %d; split them", length, kind, uint64(MaxContent))
	case w.count == maxSections:
		return fmt.Errorf("write trace section: the file holds %d sections already, the limit", w.count)
	}
	for _, p := range parts {
		crc = crc32.Update(crc, castagnoli, p)
	}
	return w.write(sectionHeader{kind: kind, index: w.count, length: length, crc: crc}, parts)
}

func (w *Writer) write(h sectionHeader, parts [][]byte) error {
	w.head = h.append(w.head[:0])
	if _, err := w.buf.Write(w.head); err != nil {
		return w.fail("write a section", err)
	}
	for _, p := range parts {
		if _, err := w.buf.Write(p); err != nil {
			return w.fail("write a section", err)
		}
	}
	var zero [8]byte
	pad := padding(h.length)
	if _, err := w.buf.Write(zero[:pad]); err != nil {
		return w.fail("write a section", err)
	}
	w.count++
	w.size += sectionHeaderSize + h.length + pad
	return nil
}

// Flush hands what is buffered to the operating system, so that it survives this process.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buf.Flush(); err != nil {
		return w.fail("write", err)
	}
	return nil
}

// Close ends the file, makes it durable and puts it in its place. After an error the old file, if any, is still
// there; a second Close returns ErrClosed or the first error.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	end := le.AppendUint64(nil, uint64(w.count))
	end = le.AppendUint64(end, w.size)
	h := sectionHeader{kind: KindEnd, index: w.count, length: endSize, crc: crc32.Checksum(end, castagnoli)}
	if err := w.write(h, [][]byte{end}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return w.fail("make it durable", err)
	}
	if err := w.file.Close(); err != nil {
		return w.fail("close", err)
	}
	if err := os.Rename(w.file.Name(), w.path); err != nil {
		return w.fail("put it in its place", err)
	}
	w.err = ErrClosed
	if err := syncDir(filepath.Dir(w.path)); err != nil {
		return fmt.Errorf("trace file %s is complete, but its folder could not be made durable: %w", w.path, err)
	}
	return nil
}

// Abort gives the file up: the temporary file is removed and an older file stays. After Close it does nothing, so it
// can be deferred.
func (w *Writer) Abort() {
	if w.err == nil {
		w.fail("abort", ErrClosed)
		w.err = ErrClosed
	}
}

// fail removes the temporary file and makes the error stay.
func (w *Writer) fail(step string, err error) error {
	w.file.Close()
	os.Remove(w.file.Name())
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the temporary file's name would only confuse
	}
	w.err = fmt.Errorf("trace file %s: %s: %w; nothing was changed there", w.path, step, err)
	return w.err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
