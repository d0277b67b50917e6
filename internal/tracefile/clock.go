package tracefile

import "fmt"

// Counter says which counter the stubs read.
type Counter uint32

// The counters. Their values never change meaning.
const (
	CounterUnknown Counter = 0
	CounterTSC     Counter = 1 // amd64: rdtsc
	CounterCNTVCT  Counter = 2 // arm64: cntvct_el0, arm: CNTVCT
)

// String is the counter's name in text output.
func (c Counter) String() string {
	switch c {
	case CounterTSC:
		return "tsc"
	case CounterCNTVCT:
		return "cntvct"
	}
	return fmt.Sprintf("counter %d", uint32(c))
}

// ClockSample is one reading of CLOCK_BOOTTIME between two readings of the counter on the same processor.
type ClockSample struct {
	Before uint64 // the counter just before
	After  uint64 // the counter just after
	BootNs uint64 // CLOCK_BOOTTIME, ns
}

// Clock is the clock section. Several sections add samples to each other, in order of time.
type Clock struct {
	Counter   Counter
	Frequency uint64 // nominal, in Hz; 0 if unknown
	Samples   []ClockSample
}

const (
	clockHeaderSize = 24
	clockSampleSize = 24
)

// AppendClock appends a clock section's content.
func AppendClock(b []byte, c *Clock) []byte {
	b = le.AppendUint32(b, uint32(c.Counter))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, c.Frequency)
	b = le.AppendUint64(b, uint64(len(c.Samples)))
	for _, s := range c.Samples {
		b = le.AppendUint64(b, s.Before)
		b = le.AppendUint64(b, s.After)
		b = le.AppendUint64(b, s.BootNs)
	}
	return b
}

// DecodeClock decodes a clock section's content.
func DecodeClock(b []byte) (*Clock, error) {
	if len(b) < clockHeaderSize {
		return nil, fmt.Errorf("clock: %d bytes, shorter than its header", len(b))
	}
	c := &Clock{Counter: Counter(le.Uint32(b)), Frequency: le.Uint64(b[8:])}
	n := le.Uint64(b[16:])
	b = b[clockHeaderSize:]
	if n != uint64(len(b)/clockSampleSize) || len(b)%clockSampleSize != 0 {
		return nil, fmt.Errorf("clock: %d samples do not take %d bytes", n, len(b))
	}
	c.Samples = make([]ClockSample, n)
	for i := range c.Samples {
		c.Samples[i] = ClockSample{Before: le.Uint64(b), After: le.Uint64(b[8:]), BootNs: le.Uint64(b[16:])}
		b = b[clockSampleSize:]
	}
	return c, nil
}

// WriteClock appends a clock section.
func (w *Writer) WriteClock(c *Clock) error { return w.WriteSection(KindClock, AppendClock(nil, c)) }
