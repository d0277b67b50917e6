package main

import (
	"bufio"
	"errors"

	"braid/internal/report"
	"braid/internal/timeline"

	"github.com/spf13/cobra"
)

func newReport(st streams) *cobra.Command {
	var o report.Options
	var w whyOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "report [options] FILE",
		Short: "Show threads and methods, with where their time went",
		Long: `Show the threads of a trace and its methods, with their time divided into
running, runnable (waiting for a CPU), sleeping and blocked: for each method
itself (self) and with the methods that it called (total).

With --why, or if the trace was written because of a trigger, begin with what
made one moment slow: the call, which method's own time in it is more than
usual, and what the kernel did to its thread meanwhile. The moment is the
trigger's, or that of --around and --method, or else the call that is furthest
above its method's median.`,
		Example: `  braid report app.braid
  braid report --sort blocked --top 20 app.braid
  braid report --thread 'worker-*' --json app.braid
  braid report --why app.braid
  braid report --around +1.5s --method 'commit*' app.braid
  braid report --signatures slow.yaml app.braid`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && !cmd.Flags().Changed("top") {
				o.Top = 0
			}
			if o.Top < 0 {
				return usageError("--top %d: must not be negative", o.Top)
			}
			w.whyGiven = cmd.Flags().Changed("why")
			if err := w.read(); err != nil {
				return err
			}
			return withTrace(args[0], st.err, func(tr *timeline.Trace) error {
				var err error
				if o.Why, err = w.options(tr, o.Thread); err != nil {
					return err
				}
				r, err := report.Build(tr, o)
				if errors.Is(err, report.ErrOption) {
					return usageError("%w", err)
				}
				if err != nil {
					return err
				}
				out := bufio.NewWriter(st.out)
				write := r.WriteText
				if asJSON {
					write = r.WriteJSON
				}
				if err := write(out); err != nil {
					return err
				}
				return out.Flush()
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Sort, "sort", "self", "order of methods: self, total, calls, running, runnable, sleeping, blocked or name")
	f.IntVar(&o.Top, "top", 30, "show at most this many methods and threads; 0: all, as --json does")
	f.StringVar(&o.Thread, "thread", "", "only threads with this id, or whose name matches this pattern")
	f.BoolVar(&asJSON, "json", false, "as JSON")
	f.BoolVar(&w.why, "why", false, "explain what made the moment slow; the default if the trace has a trigger")
	f.StringVar(&w.around, "around", "", "the moment: trigger, a time in seconds, +TIME from the start, -TIME before the end, or A..B")
	f.StringVar(&w.method, "method", "", "the moment is the slowest call of this method; * is any text")
	f.StringVar(&w.signatures, "signatures", "", "look for the signatures in this file")
	return c
}
