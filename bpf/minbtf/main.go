// Command minbtf writes what braid needs of a kernel's types, for --btf: kilobytes of megabytes.
//
//	minbtf KERNEL FILE     KERNEL is raw BTF, such as /sys/kernel/btf/vmlinux, or an ELF file with .BTF
package main

import (
	"fmt"
	"os"

	"braid/bpf"

	"github.com/cilium/ebpf/btf"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: minbtf KERNEL FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "minbtf:", err)
		os.Exit(1)
	}
}

func write(kernel, file string) error {
	spec, err := btf.LoadSpec(kernel)
	if err != nil {
		return fmt.Errorf("read %s: %w", kernel, err)
	}
	b, err := bpf.MinimizeBTF(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}
