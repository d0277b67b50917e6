package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StartupFunctions returns the names of all functions of the start-up program, without those of the C library.
func (s *Set) StartupFunctions() ([]string, error) {
	_, names, err := s.startup(Plain)
	return names, err
}

// StartupCalls returns how many calls of them a run makes.
func (s *Set) StartupCalls() (int64, error) {
	n, _, err := s.startup(Plain)
	return n, err
}

// startup reads how many calls of its functions a run of Lua makes in a variant, and the functions' names. The numbers were
// counted when the programs were built, by a counter in each function.
func (s *Set) startup(v Variant) (int64, []string, error) {
	counts, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if err != nil {
		return 0, nil, err
	}
	names, err := os.ReadFile(filepath.Join(s.dir, "functions"))
	if err != nil {
		return 0, nil, err
	}
	for l := range strings.Lines(string(counts)) {
		name, number, _ := strings.Cut(strings.TrimSpace(l), " ")
		if name != string(v) {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		return n, strings.Fields(string(names)), err
	}
	return 0, nil, fmt.Errorf("nobody has counted the calls of Lua in the variant %q", v)
}
