// Command braid records what a program's methods did and what the kernel did to them, on one timeline.
package main

import (
	"os"

	"braid/inline/launcher"
	"braid/internal/android"
	"braid/internal/recorder"
)

func main() {
	// Two ways in are not for users: as the assembler of braid cc, and as the child that becomes a recorded program.
	if launcher.IsAssembler() {
		os.Exit(launcher.AssemblerMain())
	}
	if len(os.Args) > 1 && os.Args[1] == recorder.LaunchArg {
		os.Exit(recorder.Launched(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] != "record" { // it needs none, and its program gets the environment as it is
		android.UseTemp()
	}
	os.Exit(run(os.Args[1:], systemStreams()))
}
