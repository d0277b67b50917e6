//go:build ignore

// Insert reads a compiler's assembly, and writes it with what a variant of the workloads has at entries and returns: see
// generate.sh. "plain" only takes the compiler's annotations out again. With "cc" it is braid cc; braid itself holds what is
// being made here, so it can't be what makes it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"

	"braid/inline/launcher"
	"braid/inline/stub"
)

func main() {
	if launcher.IsAssembler() {
		os.Exit(launcher.AssemblerMain())
	}
	if len(os.Args) > 1 && os.Args[1] == "cc" {
		os.Exit(launcher.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	arch := flag.String("arch", "amd64", "processor")
	mode := flag.String("mode", "plain", "plain, stub or clock")
	flag.Parse()
	if err := run(*arch, *mode); err != nil {
		fmt.Fprintln(os.Stderr, "insert:", err)
		os.Exit(1)
	}
}

func run(arch, mode string) error {
	asm, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	o := stub.Options{Arch: arch, ClockOnly: mode == "clock"}
	if mode == "plain" {
		o.Trace = func(string) bool { return false }
	}
	var b bytes.Buffer
	res, err := stub.Insert(&b, asm, o)
	if err != nil {
		return err
	}
	if mode != "plain" && res.Entries == 0 {
		return fmt.Errorf("no function got anything")
	}
	_, err = os.Stdout.Write(b.Bytes())
	return err
}
