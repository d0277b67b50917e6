package main

import (
	"braid/compare/probe"
	"braid/control"
	"braid/internal/doctor"

	"github.com/spf13/cobra"
)

func newDoctor(st streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this kernel and this user can do, and how to get the rest",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sys := doctor.Local()
			sys.Traced = control.Find
			sys.UprobeSession = func() error { return probe.Supported(probe.Session) }
			checks := doctor.Run(sys)
			if asJSON {
				return doctor.WriteJSON(st.out, checks)
			}
			return doctor.WriteText(st.out, checks)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
