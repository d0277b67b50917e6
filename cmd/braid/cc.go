package main

import (
	"braid/inline/launcher"

	"github.com/spf13/cobra"
)

func newCC(st streams) *cobra.Command {
	return &cobra.Command{
		Use:                "cc [options] [--] COMPILER ARGS...",
		Short:              "Compile and link with trace stubs: put it before gcc or clang",
		DisableFlagParsing: true, // the arguments are the compiler's
		RunE: func(_ *cobra.Command, args []string) error {
			if code := launcher.Main(args, st.in, st.outFile, st.errFile); code != 0 {
				return &codeError{code: code}
			}
			return nil
		},
	}
}
