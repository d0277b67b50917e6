package watch

import (
	"os"
	"slices"
	"strconv"
	"syscall"

	"braid/internal/counter"
	"braid/internal/tracefile"
	"braid/internal/trigger"
)

// flushTrigger is why a trace is written.
type flushTrigger struct {
	tracefile.Trigger
	severity int
}

func traceTrigger(f trigger.Fired) flushTrigger {
	return flushTrigger{tracefile.Trigger{Name: f.Rule.Name, Kind: string(f.Kind), Severity: strconv.Itoa(f.Rule.Severity), TimeNs: f.Time,
		Pid: f.Target, Tid: f.Tid, Method: f.Method, Reason: f.Reason, Values: f.Values}, f.Rule.Severity}
}

// askedSeverity is that of a trace that somebody asked for: they are waiting for it.
const askedSeverity = 5

// asked is the trigger of a request on the socket. If the configuration has a rule of that name, it is that rule's.
func (d *Daemon) asked(name string, t *target, why string) flushTrigger {
	now, _ := counter.Boottime()
	tr := flushTrigger{tracefile.Trigger{Name: name, Kind: string(trigger.Socket), TimeNs: now, Pid: t.pid, Reason: why}, askedSeverity}
	for _, r := range d.o.Config.Rules {
		if r.Name == name {
			tr.severity = r.Severity
		}
	}
	if tr.Reason == "" {
		tr.Reason = "asked for on the control socket"
	}
	tr.Severity = strconv.Itoa(tr.severity)
	return tr
}

// signalled passes a signal to the rules.
func (d *Daemon) signalled(s os.Signal) {
	if sig, ok := s.(syscall.Signal); ok {
		now, _ := counter.Boottime()
		d.fireAll(d.engine.Observe(trigger.Observation{Time: now, Kind: trigger.Signal, Value: float64(sig)}))
	}
}

// known reports whether the configuration has a rule of the name.
func known(c *trigger.Config, name string) bool {
	return slices.ContainsFunc(c.Rules, func(r *trigger.Rule) bool { return r.Name == name })
}
