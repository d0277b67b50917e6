package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
