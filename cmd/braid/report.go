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
	var asJSON bool
	c := &cobra.Command{
		Use:   "report [options] FILE",
		Short: "Show threads and methods, with where their time went",
		Long: `Show the threads of a trace and its methods, with their time divided into
running, runnable (waiting for a CPU), sleeping and blocked: for each method
itself (self) and with the methods that it called (total).`,
		Example: `  braid report app.braid
  braid report --sort blocked --top 20 app.braid
  braid report --thread 'worker-*' --json app.braid`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && !cmd.Flags().Changed("top") {
				o.Top = 0
			}
			if o.Top < 0 {
				return usageError("--top %d: must not be negative", o.Top)
			}
			return withTrace(args[0], st.err, func(tr *timeline.Trace) error {
				r, err := report.Build(tr, o)
				if errors.Is(err, report.ErrOption) {
					return usageError("%w", err)
				}
				if err != nil {
					return err
				}
				w := bufio.NewWriter(st.out)
				write := r.WriteText
				if asJSON {
					write = r.WriteJSON
				}
				if err := write(w); err != nil {
					return err
				}
				return w.Flush()
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Sort, "sort", "self", "order of methods: self, total, calls, running, runnable, sleeping, blocked or name")
	f.IntVar(&o.Top, "top", 30, "show at most this many methods and threads; 0: all, as --json does")
	f.StringVar(&o.Thread, "thread", "", "only threads with this id, or whose name matches this pattern")
	f.BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
