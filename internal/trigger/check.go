package trigger

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Check reads a file and says in plain words what each of its triggers does, and by which means. The error is that of
// ReadFile or of writing.
func Check(path string, to io.Writer) error {
	c, err := ReadFile(path)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range c.Rules {
		fmt.Fprintf(&b, "%s (severity %d): fires when %s", r.Name, r.Severity, r.When.words(""))
		if len(r.Programs) > 0 {
			fmt.Fprintf(&b, "\n  for programs named %s", strings.Join(r.Programs, ", "))
		}
		fmt.Fprintf(&b, "\n  then not again for the same program for %s", brief(r.Cooldown))
		if r.Settle > 0 {
			fmt.Fprintf(&b, "; goes on recording for %s", brief(r.Settle))
		}
		b.WriteString("\n")
	}
	_, err = io.WriteString(to, b.String())
	return err
}

// Means is how a condition is watched: ring, probe, kernel, poll, or ask for what comes unasked.
func (c *Condition) Means() string {
	switch {
	case c.ByRing():
		return "ring"
	case c.Kind == Method:
		return "probe"
	}
	switch c.Kind {
	case RunQueue, OffCPU, Fsync, BlockIO, Reclaim, MajorFaults, Crash:
		return "kernel"
	case Pressure, Thermal, CPUFrequency:
		return "poll"
	}
	return "ask"
}

// words says what a condition means.
func (c *Condition) words(indent string) string {
	s := c.what()
	if len(c.Members) > 0 {
		for _, m := range c.Members {
			s += "\n" + indent + "  - " + m.words(indent+"  ")
		}
	} else {
		s += " [" + c.Means() + "]"
	}
	var how []string
	if c.For > 0 {
		how = append(how, "all of this for "+brief(c.For)+" without a break")
	}
	if c.Within > 0 {
		how = append(how, "each occurrence counts for "+brief(c.Within))
	}
	if len(how) > 0 {
		s += "\n" + indent + "  (" + strings.Join(how, "; ") + ")"
	}
	return s
}

func (c *Condition) what() string {
	longer := brief(c.Longer)
	switch c.Kind {
	case All:
		return "all of these hold:"
	case Any:
		return "one of these holds:"
	case Method:
		return fmt.Sprintf("a call of %s takes %s or longer", c.Method, longer)
	case Unresponsive:
		return fmt.Sprintf("the main thread is not back in %s for %s", c.Method, longer)
	case Frame:
		var w []string
		if c.Slow > 0 {
			w = append(w, fmt.Sprintf("%d calls of %s in a row take %s or longer", c.Count, c.Method, brief(c.Slow)))
		}
		if c.Frozen > 0 {
			w = append(w, fmt.Sprintf("one call of %s takes %s or longer", c.Method, brief(c.Frozen)))
		}
		return strings.Join(w, ", or ")
	case Response:
		return fmt.Sprintf("from the beginning of %s to the end of %s it takes %s or longer", c.Method, c.To, longer)
	case RunQueue:
		return "a thread that could run waits for a processor for " + longer
	case OffCPU:
		return "a thread does not run for " + longer
	case Fsync:
		return "a call of fsync or one of its relatives takes " + longer
	case BlockIO:
		return "a request to a disk takes " + longer
	case Reclaim:
		return "a thread reclaims memory itself for " + longer
	case MajorFaults:
		return fmt.Sprintf("a process has %d major faults in a second", c.PerSecond)
	case Pressure:
		kind := map[bool]string{true: "all tasks that are not idle", false: "some tasks"}[c.Full]
		return fmt.Sprintf("%s wait for %s for %s within %s", kind, c.Resource, brief(c.Stall), brief(c.Window))
	case Thermal:
		return fmt.Sprintf("a thermal zone %s is at %g °C or hotter", c.Zone, c.Above)
	case CPUFrequency:
		return fmt.Sprintf("a processor may run at less than %g %% of its highest frequency", c.Below)
	case Crash:
		return "the program is killed by a signal"
	case Stack:
		return fmt.Sprintf("the last %d calls of %s take %s or longer on average", c.Count, strings.Join(c.Path, " > "), longer)
	case Signal:
		return fmt.Sprintf("the daemon gets signal %d", int(c.Sig))
	case Socket:
		return "somebody asks on the control socket" + matching(c.Why)
	case ProgramAsks:
		return "the program calls braid_trigger" + matching(c.Why)
	}
	return string(c.Kind)
}

func matching(why string) string {
	if why == "*" {
		return ""
	}
	return " with a text like " + why
}

// Poll is how often what has no event of its own is looked at.
const Poll = 500 * time.Millisecond
