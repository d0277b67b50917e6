// Package demo holds the program that "braid demo" records, as source and as committed static executables with stubs.
package demo

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate ./generate.sh

//go:embed demo_*64
var programs embed.FS

// Steps is how often the program calls its method "step"; Calls is how often each method is called.
const Steps = 9973

// Calls returns how often the program calls each of its traced methods.
func Calls() map[string]uint64 {
	return map[string]uint64{"main": 1, "compute": 1, "step": Steps, "take_a_nap": 1, "hold_the_lock": 1, "wait_for_the_lock": 1,
		"rival": 2, "spin_among_rivals": 1, "write_and_sync": 1}
}

// ErrProcessor says that there is no demo program for this processor.
var ErrProcessor = errors.New("no demo program for this processor")

// Extract writes the program for a processor in Go's naming into a folder and returns its path.
func Extract(dir, goarch string) (string, error) {
	b, err := programs.ReadFile("demo_" + goarch)
	if err != nil {
		return "", fmt.Errorf("%w (%s): it is built for amd64; build a program of your own with braid cc, and record it", ErrProcessor, goarch)
	}
	path := filepath.Join(dir, "braid-demo")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		return "", fmt.Errorf("unpacking the demo program: %w", err)
	}
	return path, nil
}
