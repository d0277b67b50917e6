package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// RecordBytes is what a record takes in the ring buffer: 16 bytes and the kernel's head of 8.
const RecordBytes = 24

// atReturn is AT_RETURN of trace.bpf.c.
const atReturn = 1 << 63

// Options say what a Tracer does.
type Options struct {
	Kind Kind
	// Record writes a record for each event. Otherwise each is only counted.
	Record bool
	// RingBytes is how large the ring buffer is; the next power of two is taken, a page at least. Events that find it full
	// are dropped and counted.
	RingBytes uint64
}

// Counts are events since they were last taken.
type Counts struct {
	Events           uint64 // counted, or read from the ring buffer
	Entries, Returns uint64 // of Events, where records tell them apart
	Dropped          uint64 // because the ring buffer was full
}

// Tracer is probes' programs in the kernel, and the probes that they are attached to. It belongs to the caller, who closes
// it. It is used by one goroutine.
type Tracer struct {
	options  Options
	programs map[string]*ebpf.Program
	maps     map[string]*ebpf.Map
	cookies  bool
	reader   *ringbuf.Reader
	links    []io.Closer // in the order of attaching
	seen     [2]uint64   // what the kernel's counters had when they were last taken
	known    map[uint64]bool
}

// The kernel's counters, enum counter of trace.bpf.c.
const (
	countEvents = iota
	countDropped
)

// Open loads what a kind of probes needs. Nothing is attached. It fails with ErrNoKind if the kernel lacks it.
func Open(o Options) (*Tracer, error) {
	if err := Supported(o.Kind); err != nil {
		return nil, err
	}
	t, err := load(program(o), o.RingBytes)
	if err != nil {
		return nil, err
	}
	t.options = o
	if o.Record {
		if t.reader, err = ringbuf.NewReader(t.maps["records"]); err != nil {
			return nil, errors.Join(fmt.Errorf("open the ring buffer of probes: %w", err), t.Close())
		}
		t.reader.SetDeadline(time.Unix(1, 0)) // never wait: nobody is woken
	}
	return t, nil
}

// program says which program the kind needs; one serves entries and returns.
func program(o Options) string {
	name := map[bool]string{false: "count_", true: "write_"}[o.Record]
	switch {
	case o.Kind == Session:
		return name + "session"
	case o.Kind == Multi, o.Kind == Static && Supported(Multi) == nil:
		return name + "multi"
	}
	return name + "single"
}

func load(name string, ringBytes uint64) (*Tracer, error) {
	fail := func(err error) (*Tracer, error) { return nil, fmt.Errorf("load the program of probes: %w", err) }
	if err := rlimit.RemoveMemlock(); err != nil {
		return fail(err)
	}
	spec, err := loadTrace()
	if err != nil {
		return fail(err)
	}
	t := &Tracer{cookies: haveCookie()}
	if !t.cookies {
		if err := spec.Variables["have_cookie"].Set(uint32(0)); err != nil {
			return fail(err)
		}
	}
	maps.DeleteFunc(spec.Programs, func(n string, _ *ebpf.ProgramSpec) bool { return n != name })
	size := uint64(os.Getpagesize())
	for size < ringBytes && size < 1<<30 {
		size *= 2
	}
	spec.Maps["records"].MaxEntries = uint32(size)
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return fail(err)
	}
	t.programs, t.maps = c.Programs, c.Maps
	return t, nil
}

// Attach puts probes on sites of the file at path, in one process. Those that are there already stay. If it fails, it leaves
// none of its own behind.
func (t *Tracer) Attach(pid int, path string, sites []Site) error {
	if pid <= everyone {
		return fmt.Errorf("put probes (%s): %d is no process", t.options.Kind, pid)
	}
	before := len(t.links)
	if err := t.attach(pid, path, sites); err != nil {
		return errors.Join(fmt.Errorf("put probes (%s) into process %d: %w", t.options.Kind, pid, err), t.detach(before))
	}
	return nil
}

// AttachFile is Attach for all processes that run the file, now and later.
func (t *Tracer) AttachFile(path string, sites []Site) error {
	before := len(t.links)
	if err := t.attach(everyone, path, sites); err != nil {
		return errors.Join(fmt.Errorf("put probes (%s) into %s: %w", t.options.Kind, path, err), t.detach(before))
	}
	return nil
}

// everyone is what the kernel takes for all processes.
const everyone = 0

func (t *Tracer) attach(pid int, path string, sites []Site) error {
	if len(sites) == 0 {
		return errors.New("there is no place for any")
	}
	if t.known == nil {
		t.known = map[uint64]bool{}
	}
	switch kind := t.options.Kind; kind {
	case Multi, Session:
		return t.attachMulti(pid, path, sites)
	case Static:
		if Supported(Multi) == nil {
			return t.attachMulti(pid, path, sites)
		}
		return t.attachSingle(pid, path, sites, false)
	case Pair:
		// Returns first: no entry is seen whose return is not.
		return errors.Join(t.attachSingle(pid, path, sites, true), t.attachSingle(pid, path, sites, false))
	default:
		return t.attachSingle(pid, path, sites, kind == Return)
	}
}

// cookie is the value of a probe's attachment.
func (t *Tracer) cookie(s Site, atEnd bool) uint64 {
	c := s.Address
	if atEnd || s.Return {
		c |= atReturn
	}
	t.known[c] = true
	return c
}

func (t *Tracer) prog() *ebpf.Program { return t.programs[program(t.options)] }

func (t *Tracer) attachSingle(pid int, path string, sites []Site, atEnd bool) error {
	exe, err := link.OpenExecutable(path)
	if err != nil {
		return err
	}
	for _, s := range sites {
		o := &link.UprobeOptions{Address: s.Offset, PID: pid, RefCtrOffset: s.Semaphore}
		if c := t.cookie(s, atEnd); t.cookies {
			o.Cookie = c
		}
		attach := exe.Uprobe
		if atEnd {
			attach = exe.Uretprobe
		}
		l, err := attach("", t.prog(), o)
		if err != nil {
			return fmt.Errorf("%s at %#x: %w", s.Symbol, s.Address, err)
		}
		t.links = append(t.links, l)
	}
	return nil
}

func (t *Tracer) attachMulti(pid int, path string, sites []Site) error {
	ends := []bool{false}
	kind := uint32(unix.BPF_TRACE_UPROBE_MULTI)
	switch t.options.Kind {
	case Multi:
		ends = []bool{true, false} // see Pair
	case Session:
		kind = traceUprobeSession
	}
	for _, atEnd := range ends {
		m := multiLink{kind: kind, atEnd: atEnd, path: path, pid: pid, sites: sites}
		for _, s := range sites {
			m.cookies = append(m.cookies, t.cookie(s, atEnd))
			if t.options.Kind == Session {
				t.cookie(s, true) // the program adds it
			}
		}
		l, err := attachMulti(t.prog(), m)
		if err != nil {
			return err
		}
		t.links = append(t.links, l)
	}
	return nil
}

// Detach takes all probes out of the process. The kernel waits until nobody can be in their programs any more, some tens of
// milliseconds.
func (t *Tracer) Detach() error { return t.detach(0) }

// detach removes the links from one on. All at once, because the kernel waits for each by itself.
func (t *Tracer) detach(from int) error {
	links := t.links[from:]
	t.links = t.links[:from]
	errs := make([]error, len(links))
	var wait sync.WaitGroup
	turns := make(chan struct{}, 64) // each takes a thread while it waits
	for i, l := range links {
		turns <- struct{}{}
		wait.Go(func() {
			errs[i] = l.Close()
			<-turns
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Attached says how many links there are.
func (t *Tracer) Attached() int { return len(t.links) }

// Take returns the events since the last time, and empties the ring buffer. The traced program must not be running. A record
// that no probe can have written is an error.
func (t *Tracer) Take() (c Counts, err error) {
	for i := range t.seen {
		var each []uint64
		if err := t.maps["counters"].Lookup(uint32(i), &each); err != nil {
			return c, fmt.Errorf("read the counters of probes: %w", err)
		}
		var sum uint64
		for _, n := range each {
			sum += n
		}
		if i == countEvents {
			c.Events = sum - t.seen[i]
		} else {
			c.Dropped = sum - t.seen[i]
		}
		t.seen[i] = sum
	}
	if t.reader == nil {
		return c, nil
	}
	var r ringbuf.Record
	for {
		err := t.reader.ReadInto(&r)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read the records of probes: %w", err)
		}
		if err := t.accept(&c, r.RawSample); err != nil {
			return c, err
		}
	}
}

func (t *Tracer) accept(c *Counts, record []byte) error {
	if len(record) < 16 {
		return fmt.Errorf("a probe's record has %d bytes", len(record))
	}
	what, ns := binary.NativeEndian.Uint64(record), binary.NativeEndian.Uint64(record[8:])
	if ns == 0 || t.cookies && !t.known[what] {
		return fmt.Errorf("a probe's record is of %#x at %d ns, where no probe is", what, ns)
	}
	c.Events++
	if t.cookies && what&atReturn != 0 {
		c.Returns++
	} else if t.cookies {
		c.Entries++
	}
	return nil
}

// Close takes all probes out, and unloads the programs. Closing twice does nothing.
func (t *Tracer) Close() error {
	errs := []error{t.Detach()}
	if t.reader != nil {
		errs = append(errs, t.reader.Close())
		t.reader = nil
	}
	for _, p := range t.programs {
		errs = append(errs, p.Close())
	}
	for _, m := range t.maps {
		errs = append(errs, m.Close())
	}
	t.programs, t.maps = nil, nil
	return errors.Join(errs...)
}
