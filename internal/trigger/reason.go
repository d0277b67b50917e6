package trigger

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// describe says why a rule fires for a process.
func (s *ruleState) describe(i, sys *instance, cause *Observation) Fired {
	f := Fired{Rule: s.rule, Time: s.at, Target: i.target, Kind: s.rule.When.Kind, Values: map[string]float64{}}
	var newest Observation
	var reasons []string
	for k, c := range s.leaves {
		l := &i.leaf[k]
		if sys.leaf[k].on || l.last.Kind == "" {
			l = &sys.leaf[k]
		}
		if l.last.Kind == "" || !l.on && len(s.leaves) > 1 && addSat(l.until, s.slack) < s.at {
			continue
		}
		if newest.Kind == "" || l.last.Time >= newest.Time {
			newest = l.last
		}
		reasons = append(reasons, c.says(&l.last))
		c.values(&l.last, f.Values)
	}
	f.Reason = strings.Join(reasons, "; ")
	if cause != nil {
		newest, f.Time = *cause, cause.Time
	} else if s.rule.When.For > 0 {
		f.Reason += fmt.Sprintf("; for %s", brief(s.rule.When.For))
	}
	if newest.Kind != "" {
		f.Kind, f.Tid = newest.Kind, newest.Tid
	}
	switch f.Kind {
	case Method, Frame, Response, Stack, Unresponsive:
		f.Method = newest.Subject
	}
	return f
}

// says is a condition's part of the reason.
func (c *Condition) says(o *Observation) string {
	took := func(what string) string {
		return fmt.Sprintf("%s %s (limit %s)", what, short(o.Value), brief(c.Longer))
	}
	switch c.Kind {
	case Method:
		return took(or(o.Subject, c.Method) + " took")
	case Unresponsive:
		return took("the main thread has not been back in " + or(o.Subject, c.Method) + " for")
	case Frame:
		if c.Frozen != 0 && o.Value >= float64(c.Frozen) {
			return fmt.Sprintf("frozen frame: %s took %s (limit %s)", or(o.Subject, c.Method), short(o.Value), brief(c.Frozen))
		}
		return fmt.Sprintf("slow frame: %s took %s (limit %s)", or(o.Subject, c.Method), short(o.Value), brief(c.Slow))
	case Response:
		return took(fmt.Sprintf("from %s to %s:", or(o.Subject, c.Method), c.To))
	case RunQueue:
		return took("waited for a processor for")
	case OffCPU:
		return took("did not run for")
	case Fsync:
		return took("fsync took")
	case BlockIO:
		return took("a block request took")
	case Reclaim:
		return took("reclaimed memory for")
	case Stack:
		return took(strings.Join(c.Path, " > ") + " took on average")
	case MajorFaults:
		return fmt.Sprintf("%.0f major faults in a second (limit %d)", o.Value, c.PerSecond)
	case Pressure:
		kind := map[bool]string{true: "all", false: "some"}[c.Full]
		return fmt.Sprintf("%s pressure: %s tasks stalled for %s within %s", c.Resource, kind, short(o.Value), brief(c.Window))
	case Thermal:
		return fmt.Sprintf("thermal zone %s at %.1f °C (limit %g °C)", or(o.Subject, c.Zone), o.Value, c.Above)
	case CPUFrequency:
		return fmt.Sprintf("%s may run at %.0f %% of its frequency (limit %g %%)", or(o.Subject, "a processor"), o.Value, c.Below)
	case Crash:
		if o.Value > 0 {
			return fmt.Sprintf("killed by signal %.0f (%v)", o.Value, syscall.Signal(o.Value))
		}
		return "crashed"
	case Signal:
		return fmt.Sprintf("the daemon got signal %d", int(c.Sig))
	case Socket:
		return "asked on the socket" + because(o.Subject)
	case ProgramAsks:
		return "the program asked" + because(o.Subject)
	}
	return string(c.Kind)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// short writes a measured duration, of ns, with three digits or so.
func short(ns float64) string {
	d := time.Duration(ns)
	for unit := time.Nanosecond; unit <= 10*time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// values adds what was measured, and the limit.
func (c *Condition) values(o *Observation, to map[string]float64) {
	name := string(c.Kind)
	limit, _ := c.Limit()
	unit := "_ns"
	switch c.Kind {
	case MajorFaults:
		unit = "_per_second"
	case Pressure:
		name = c.Resource + "_pressure"
	case Thermal:
		unit = "_celsius"
	case CPUFrequency:
		unit = "_percent"
	case Crash, Signal:
		to[name+"_number"] = o.Value
		return
	case Socket, ProgramAsks:
		return
	case Frame:
		if c.Frozen != 0 && o.Value >= float64(c.Frozen) {
			limit = float64(c.Frozen)
		}
	}
	if _, twice := to[name+unit]; twice {
		name += fmt.Sprintf("_%d", c.ID)
	}
	to[name+unit], to[name+"_limit"+unit] = o.Value, limit
}
