package main

import (
	"bufio"
	"fmt"
	"strings"

	"braid/internal/tracefile"

	"github.com/spf13/cobra"
)

func newDump(st streams) *cobra.Command {
	var o tracefile.DumpOptions
	var kinds []string
	c := &cobra.Command{
		Use:   "dump [options] FILE",
		Short: "Show every section of a trace file as text",
		Example: `  braid dump app.braid
  braid dump --section ring --limit 20 app.braid`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, k := range kinds {
				kind, ok := sectionKinds()[k]
				if !ok {
					return usageError("--section %s: want meta, clock, processes, modules, symbols, ring, events, lost, snapshot, samples or frames", k)
				}
				o.Kinds = append(o.Kinds, kind)
			}
			r, err := tracefile.Open(args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			w := bufio.NewWriterSize(st.out, 1<<16)
			if err := tracefile.Dump(w, r, o); err != nil {
				return fmt.Errorf("reading %s: %w", args[0], err)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if len(r.Problems()) > 0 {
				return &codeError{exitDamaged, fmt.Errorf("%s is damaged: %w", args[0], r.Problems()[0])}
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&kinds, "section", nil, "only sections of this kind (may be repeated)")
	c.Flags().IntVar(&o.Limit, "limit", 0, "at most this many slots, events, symbols and samples for each section")
	return c
}

func sectionKinds() map[string]tracefile.Kind {
	m := map[string]tracefile.Kind{}
	for _, k := range []tracefile.Kind{tracefile.KindMeta, tracefile.KindClock, tracefile.KindProcesses, tracefile.KindModules,
		tracefile.KindSymbols, tracefile.KindRing, tracefile.KindEvents, tracefile.KindLost, tracefile.KindSnapshot,
		tracefile.KindSamples, tracefile.KindFrames} {
		words := strings.Fields(k.String()) // "kernel events" is events
		m[words[len(words)-1]] = k
	}
	return m
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("want one trace file, got %d arguments", len(args))
	}
	return nil
}
