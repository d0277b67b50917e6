package main

import "github.com/spf13/cobra"

func newReport(st streams) *cobra.Command { return &cobra.Command{Use: "report"} }
func newExport(st streams) *cobra.Command { return &cobra.Command{Use: "export"} }
func newDoctor(st streams) *cobra.Command { return &cobra.Command{Use: "doctor"} }
func newDemo(st streams) *cobra.Command   { return &cobra.Command{Use: "demo"} }
