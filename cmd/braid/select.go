package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"braid/internal/recorder"
	"braid/internal/targets"

	"github.com/spf13/pflag"
)

// choiceOptions are the flags that choose processes by what they are called or whom they belong to.
type choiceOptions struct {
	name       string
	components []string
	uid        string
	wait       time.Duration
	hasWait    bool
}

func (o *choiceOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.name, "package", "", "record the processes called NAME or NAME:component, now and later")
	f.StringSliceVar(&o.components, "component", nil, "of --package, these alone: :remote, or main for the one without")
	f.StringVar(&o.uid, "uid", "", "record the processes of this user: 10123, u0_a123, system")
	f.DurationVar(&o.wait, "wait", recorder.DefaultWait, "how long to wait for the first process to come")
}

func (o *choiceOptions) given() bool { return o.name != "" || o.uid != "" || len(o.components) > 0 }

// ways counts how many are true.
func ways(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

// resolve checks the flags and turns them into a recording's options.
func (o *choiceOptions) resolve(ro *recorder.Options, messages io.Writer) error {
	switch {
	case !o.given() && o.hasWait:
		return usageError("--wait goes with --package and --uid")
	case !o.given():
		return nil
	case o.wait <= 0:
		return usageError("--wait %s: must be more than nothing", o.wait)
	}
	c := &targets.Choice{Package: o.name, Components: o.components}
	if o.uid != "" {
		uid, err := targets.ParseUser(o.uid)
		if err != nil {
			return usageError("--uid: %w", err)
		}
		c.UID, c.HasUID = uid, true
	}
	if err := c.Check(); err != nil {
		return usageError("%w", err)
	}
	ro.Choose, ro.Wait = c, o.wait
	ro.Waiting = func() { fmt.Fprintf(messages, "braid: waiting for a %s\n", c) }
	return nil
}

// fileName is the trace file's if none was given.
func (o *choiceOptions) fileName() string {
	name := o.name
	if name == "" {
		name = "uid-" + o.uid
	}
	return strings.ReplaceAll(name, ":", "-") + ".braid"
}
