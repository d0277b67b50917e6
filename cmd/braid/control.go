package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"braid/internal/ctl"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// selectionFlags are those that choose targets on the control socket.
func selectionFlags(c *cobra.Command, s *ctl.Selection, thread bool) {
	f := c.Flags()
	f.IntVarP(&s.PID, "pid", "p", 0, "the process PID alone")
	f.StringVar(&s.Program, "name", "", "programs of this name, * and ? stand for parts of it")
	if thread {
		f.StringVar(&s.Thread, "thread", "", "the thread with this id, or threads of this name")
	}
}

// newControl returns the commands that talk to a running braid watch.
func newControl(st streams) []*cobra.Command {
	return []*cobra.Command{newStatus(st), newTurn(st, "start", "Let threads of watched programs record again"),
		newTurn(st, "stop", "Turn the recording of threads of watched programs off"), newFlush(st), newTrigger(st)}
}

func socketFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "socket", ctl.DefaultPath(), "control socket of braid watch")
}

func newTurn(st streams, name, short string) *cobra.Command {
	var s ctl.Selection
	var socket string
	c := &cobra.Command{
		Use: name + " [options]", Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDaemon(cmd.Context(), socket, func(ctx context.Context, d *ctl.Client) error {
				r, err := d.Do(ctx, ctl.Request{Command: ctl.Command(name), Selection: s})
				if err == nil {
					fmt.Fprintf(st.out, "%d threads\n", r.Threads)
				}
				return err
			})
		},
	}
	selectionFlags(c, &s, true)
	socketFlag(c, &socket)
	return c
}

func newFlush(st streams) *cobra.Command {
	var s ctl.Selection
	var socket, why string
	c := &cobra.Command{
		Use: "flush [options]", Short: "Write out what braid watch has of its programs", Args: cobra.NoArgs,
		Example: "  braid flush --name app --why 'it felt slow'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDaemon(cmd.Context(), socket, func(ctx context.Context, d *ctl.Client) error {
				return flushed(ctx, st, d, ctl.Request{Command: ctl.CmdFlush, Selection: s, Why: why})
			})
		},
	}
	selectionFlags(c, &s, false)
	c.Flags().StringVar(&why, "why", "", "a reason, for the trace")
	socketFlag(c, &socket)
	return c
}

func newTrigger(st streams) *cobra.Command {
	var s ctl.Selection
	var socket string
	c := &cobra.Command{
		Use: "trigger [options] [NAME [WHY...]]", Short: "Fire a trigger of braid watch",
		Long: `Fire a trigger by its name in the configuration, at once: its severity and the
limits on how many traces are kept apply, its cooldown does not. Without a name,
the trace is kept as one that was asked for.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, why := "", ""
			if len(args) > 0 {
				name, why = args[0], strings.Join(args[1:], " ")
			}
			return withDaemon(cmd.Context(), socket, func(ctx context.Context, d *ctl.Client) error {
				return flushed(ctx, st, d, ctl.Request{Command: ctl.CmdTrigger, Selection: s, Name: name, Why: why})
			})
		},
	}
	selectionFlags(c, &s, false)
	socketFlag(c, &socket)
	return c
}

// flushed asks for traces, prints where each one is, and fails if one was not written.
func flushed(ctx context.Context, st streams, d *ctl.Client, r ctl.Request) error {
	resp, err := d.Do(ctx, r)
	if err != nil {
		return err
	}
	failed := 0
	for _, f := range resp.Flushed {
		if f.Error != "" {
			failed++
			fmt.Fprintf(st.err, "braid: %s (%d): %s\n", f.Name, f.PID, f.Error)
			continue
		}
		fmt.Fprintf(st.out, "%s\n", f.Path)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d traces were not written", failed, len(resp.Flushed))
	}
	return nil
}

// withDaemon calls f with a connection to the running braid watch.
func withDaemon(ctx context.Context, socket string, f func(context.Context, *ctl.Client) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	d, err := ctl.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(ctx, d)
}

func newStatus(st streams) *cobra.Command {
	var socket string
	var asJSON bool
	var every time.Duration
	c := &cobra.Command{
		Use: "status [options]", Short: "Show what braid watch watches, has counted and has kept", Args: cobra.NoArgs,
		Example: "  braid status\n  braid status --every 1s\n  braid status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every != 0 && (every < 100*time.Millisecond || every > time.Minute) {
				return usageError("--every %s: from 100ms to 1m", every)
			}
			show := func(s *ctl.Status) error {
				if asJSON {
					return json.NewEncoder(st.out).Encode(s)
				}
				if every != 0 && st.outFile != nil && term(st.outFile) {
					fmt.Fprint(st.out, "\x1b[H\x1b[2J") // cursor home, clear
				}
				return ctl.Render(st.out, s)
			}
			return withDaemon(cmd.Context(), socket, func(ctx context.Context, d *ctl.Client) error {
				if every != 0 {
					ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
					defer stop()
					err := d.Subscribe(ctx, every, show)
					if ctx.Err() != nil {
						return nil
					}
					return err
				}
				r, err := d.Do(ctx, ctl.Request{Command: ctl.CmdStatus})
				if err != nil {
					return err
				}
				return show(r.Status)
			})
		},
	}
	socketFlag(c, &socket)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, one object a line")
	c.Flags().DurationVar(&every, "every", 0, "again and again, such as 1s, until Ctrl-C")
	return c
}

// term reports whether a file is a terminal.
func term(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
