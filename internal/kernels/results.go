package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// results says of each test, by run and name, whether it passed.
type results map[string]map[string]bool

var (
	runLine  = regexp.MustCompile(`^` + regexp.QuoteMeta(markRun) + `(\S+)$`)
	testLine = regexp.MustCompile(`^--- (PASS|FAIL): (\w+) `)
)

// parse reads what test binaries print with -test.v. A test that never ended is in none.
func parse(text string) results {
	all := results{}
	var current map[string]bool
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := runLine.FindStringSubmatch(line); m != nil {
			if all[m[1]] == nil {
				all[m[1]] = map[string]bool{}
			}
			current = all[m[1]]
		} else if m := testLine.FindStringSubmatch(line); m != nil && current != nil {
			current[m[2]] = m[1] == "PASS"
		}
	}
	return all
}

// cell is what the table says of a feature under a kernel.
type cell string

const (
	works    cell = "yes"
	fails    cell = "no"
	nowhere  cell = "-" // there is nothing to try
	notTried cell = "?"
)

// judge returns a feature's cell: it works if all of its tests ran and passed.
func (r results) judge(f feature) cell {
	c := works
	for _, name := range f.tests {
		switch passed, tried := r[f.run][name]; {
		case !tried:
			c = notTried
		case !passed:
			return fails
		}
	}
	return c
}

// merge puts newer results over older ones, which a file keeps.
func (r results) merge(file string) error {
	old := results{}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &old); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	for run, tests := range old {
		if r[run] == nil {
			r[run] = map[string]bool{}
		}
		for name, passed := range tests {
			if _, newer := r[run][name]; !newer {
				r[run][name] = passed
			}
		}
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
