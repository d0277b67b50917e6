package watch

import (
	"context"
	"time"

	"braid/internal/trigger"
	"braid/internal/trigger/source"
)

// levelPeriod is how often temperatures and frequency caps are read. They change slowly.
const levelPeriod = time.Second

// openSources starts watching the system for the rules that need it. A system that can't tell something is no reason not
// to watch the rest: it is said once.
func (d *Daemon) openSources(ctx context.Context) {
	needs := d.o.Config.System()
	report := func(o trigger.Observation) {
		select {
		case d.seen <- o:
		case <-ctx.Done():
		}
	}
	for _, c := range needs.Pressure {
		go func() {
			if err := source.Pressure(ctx, "", c, report); err != nil && ctx.Err() == nil {
				d.log.Warn("a trigger can't fire", "condition", c.Kind, "line", c.Line, "why", err)
			}
		}()
	}
	levels := append(append([]*trigger.Condition(nil), needs.Thermal...), needs.CPUFrequency...)
	if len(levels) == 0 {
		return
	}
	for _, c := range source.Missing("", levels) {
		d.log.Warn("a trigger can't fire", "condition", c.Kind, "line", c.Line, "why", "this machine has no such thing under /sys")
	}
	go func() {
		if err := source.Levels(ctx, "", levels, levelPeriod, report); err != nil && ctx.Err() == nil {
			d.log.Warn("temperatures and frequency caps are not watched", "why", err)
		}
	}()
}
