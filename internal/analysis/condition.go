package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// times are the names of a condition's times, with their causes.
var times = map[string][]Cause{
	"total":    {Unknown, Running, Runnable, Sleeping, Lock, Binder, Poll, Stream, Timer, Fsync, MajorFault, Reclaim, Read, Write, OtherIO, Blocked},
	"blocked":  {Fsync, MajorFault, Read, Write, OtherIO, Blocked},
	"waiting":  {Runnable, Sleeping, Lock, Binder, Poll, Stream, Timer, Fsync, MajorFault, Read, Write, OtherIO, Blocked},
	"io":       {Fsync, MajorFault, Read, Write, OtherIO},
	"unknown":  {Unknown},
	"running":  {Running},
	"runnable": {Runnable}, "sleeping": {Sleeping, Lock, Binder, Poll, Stream, Timer},
	"lock": {Lock}, "binder": {Binder}, "poll": {Poll}, "stream": {Stream}, "timer": {Timer}, "fsync": {Fsync}, "major_fault": {MajorFault},
	"reclaim": {Reclaim}, "read": {Read}, "write": {Write}, "other_io": {OtherIO},
}

var points = map[string]metric{"fsyncs": metricFsyncs, "major_faults": metricFaults, "requests": metricRequests, "bytes": metricBytes}

const conditionForm = `want "METRIC > VALUE", as in "fsync > 50ms", "self.runnable > 30%" or "calls(name) >= 100"`

// parseCondition reads one condition.
func parseCondition(text string) (Condition, error) {
	c := Condition{text: text}
	i := strings.LastIndexAny(text, "<>")
	if i < 0 {
		return c, fmt.Errorf("%q has no comparison; %s", text, conditionForm)
	}
	left, value := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	c.less = text[i] == '<'
	if strings.HasPrefix(value, "=") {
		c.equal, value = true, strings.TrimSpace(value[1:])
	}
	if rest, ok := strings.CutPrefix(left, "self."); ok {
		c.self, left = true, rest
	} else if left == "self" {
		c.self, left = true, "total"
	}
	switch {
	case strings.HasPrefix(left, "calls(") && strings.HasSuffix(left, ")"):
		name := strings.TrimSpace(left[len("calls(") : len(left)-1])
		if name == "" || c.self {
			return c, fmt.Errorf("%q: give the called method, as in \"calls(name) >= 100\"", text)
		}
		c.metric, c.calls = metricCalls, compile(name)
	case times[left] != nil:
		c.causes = times[left]
	default:
		m, ok := points[left]
		if !ok {
			return c, fmt.Errorf("%q: %q is nothing that a call has; choose one of %s", text, left, metricNames())
		}
		c.metric = m
	}
	return c, c.value(value)
}

func metricNames() string {
	var names []string
	for n := range times {
		names = append(names, n)
	}
	for n := range points {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " or calls(METHOD)"
}

// value reads a condition's limit, in the unit that its metric has.
func (c *Condition) value(s string) error {
	switch c.metric {
	case metricTime:
		if n, ok := strings.CutSuffix(s, "%"); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err != nil || !(v >= 0 && v <= 100) {
				return fmt.Errorf("%q: %q is not a share of 0%% to 100%%", c.text, s)
			}
			c.share, c.limit = true, v
			return nil
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return fmt.Errorf("%q: %q is neither a time, as in 50ms, nor a share, as in 30%%", c.text, s)
		}
		c.limit = float64(d)
	case metricBytes:
		number, unit := s, 1.0
		for i, u := range []string{"KiB", "MiB", "GiB"} {
			if n, ok := strings.CutSuffix(s, u); ok {
				number, unit = strings.TrimSpace(n), math.Pow(1024, float64(i+1))
			}
		}
		v, err := strconv.ParseUint(number, 10, 53)
		if err != nil {
			return fmt.Errorf("%q: %q is not a number of bytes, as in 4096 or 4MiB", c.text, s)
		}
		c.limit = float64(v) * unit
	default:
		v, err := strconv.ParseUint(s, 10, 53)
		if err != nil {
			return fmt.Errorf("%q: %q is not a whole number", c.text, s)
		}
		c.limit = float64(v)
	}
	return nil
}
