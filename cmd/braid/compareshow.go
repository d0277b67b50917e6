package main

import (
	"io"

	"braid/compare/estimate"
	"braid/compare/render"
	"braid/compare/result"

	"github.com/spf13/cobra"
)

// newCompareShow shows a result that was kept: text and page are made from it alone.
func newCompareShow(st streams) *cobra.Command {
	var html string
	c := &cobra.Command{
		Use:   "show STUDY.json",
		Short: "Show a result that was written with --json",
		Long: `Show a result that was written with --json: the same text, and the same page,
byte for byte. Nothing is measured.`,
		Example: `  braid compare show study.json
  braid compare show study.json --html study.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := result.ReadFile(args[0])
			if err != nil {
				return err
			}
			return show(st, s, html)
		},
	}
	c.Flags().StringVar(&html, "html", "", "write the page to this file, in place of the text")
	return c
}

func show(st streams, s *result.Study, html string) error {
	e := estimate.Of(s)
	if html != "" {
		return writeAside(html, func(w io.Writer) error { return render.HTML(w, s, e) })
	}
	return render.Text(st.out, s, e)
}

func newCompareDiff(st streams) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "diff A.json B.json",
		Short: "Compare two results: two machines, or two versions",
		Long: `Compare two results that were written with --json: what each arm costs in A
and in B, and whether the difference is more than chance.`,
		Example: `  braid compare diff phone.json server.json
  braid compare diff --json before.json after.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := result.ReadFile(args[0])
			if err != nil {
				return err
			}
			b, err := result.ReadFile(args[1])
			if err != nil {
				return err
			}
			write := render.Diff
			if json {
				write = render.DiffJSON
			}
			return write(st.out, a, estimate.Of(a), b, estimate.Of(b))
		},
	}
	c.Flags().BoolVar(&json, "json", false, "write the comparison as JSON, for programs")
	return c
}
