package live

import (
	"time"

	"braid/internal/counter"
)

// Clock converts counter values to CLOCK_BOOTTIME. Not for use by several goroutines at a time.
type Clock struct {
	base  counter.Sample
	first counter.Sample
	ns    float64 // of a tick
}

// calibration is how long a new clock watches the counter, where the processor does not state its frequency. It is then
// right to 1 in 10000 or so, and to more with each Update.
const calibration = 10 * time.Millisecond

// NewClock reads both clocks, which takes 10 ms.
func NewClock() (*Clock, error) {
	first, err := counter.Take()
	if err != nil {
		return nil, err
	}
	c := &Clock{first: first, base: first}
	time.Sleep(calibration)
	return c, c.Update()
}

// Update reads both clocks again. Call it now and then, such as once a second.
func (c *Clock) Update() error {
	s, err := counter.Take()
	if err == nil {
		c.add(s)
	}
	return err
}

func (c *Clock) add(s counter.Sample) {
	c.base = s
	if ticks := s.Before - c.first.Before; ticks > 0 && s.Boottime > c.first.Boottime {
		c.ns = float64(s.Boottime-c.first.Boottime) / float64(ticks)
	}
}

// Boottime is CLOCK_BOOTTIME in ns at a counter value.
func (c *Clock) Boottime(at uint64) uint64 {
	d := int64(at - c.base.Before)
	return c.base.Boottime + uint64(int64(float64(d)*c.ns))
}

// Ticks is how many ticks a duration has.
func (c *Clock) Ticks(d time.Duration) uint64 {
	if c.ns == 0 {
		return 0
	}
	return uint64(float64(d) / c.ns)
}

// since is the ns between two counter values.
func (c *Clock) since(from, to uint64) float64 { return float64(int64(to-from)) * c.ns }

// Duration is how long a number of ticks lasts.
func (c *Clock) Duration(ticks uint64) time.Duration { return time.Duration(float64(ticks) * c.ns) }
