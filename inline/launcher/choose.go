package launcher

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxListFile bounds the file that --list names, in bytes.
const maxListFile = 16 << 20

// chooser decides which functions get stubs. Its zero value chooses all. It travels from the launcher to the assembler
// wrapper as JSON.
type chooser struct {
	Only words `json:"only,omitempty"`
	Skip words `json:"skip,omitempty"`
}

// check returns an error for the first malformed pattern.
func (c *chooser) check() error {
	for _, patterns := range [][]string{c.Only, c.Skip} {
		for _, p := range patterns {
			if err := checkGlob(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// trace says whether the function with this symbol is to be traced: it matches a pattern of Only, or there is none,
// and matches no pattern of Skip.
func (c *chooser) trace(symbol string) bool {
	if len(c.Only) == 0 && len(c.Skip) == 0 {
		return true
	}
	names := functionNames(symbol)
	return (len(c.Only) == 0 || matchesAny(c.Only, names)) && !matchesAny(c.Skip, names)
}

// functionNames are the names under which a user may know a symbol: itself, without the suffix of a part or clone that
// the compiler made (f.part.0, f.constprop.0), and for C++ demangled with and without template arguments and
// parameters.
func functionNames(symbol string) []string {
	names := []string{symbol}
	base := symbol
	if dot := strings.IndexByte(symbol, '.'); dot > 0 {
		base = symbol[:dot]
		names = append(names, base)
	}
	if strings.HasPrefix(base, "_Z") {
		if full, err := demangle.ToString(base); err == nil {
			names = append(names, full)
		}
		if short, err := demangle.ToString(base, demangle.NoParams); err == nil {
			names = append(names, short)
		}
		if short, err := demangle.ToString(base, demangle.NoParams, demangle.NoTemplateParams); err == nil {
			names = append(names, short)
		}
	}
	return names
}

func matchesAny(patterns, names []string) bool {
	for _, p := range patterns {
		for _, n := range names {
			if matchGlob(p, n) {
				return true
			}
		}
	}
	return false
}

// splitPatterns splits the value of BRAID_CC_ONLY or BRAID_CC_SKIP at commas and line ends, but not at commas within
// parentheses, so that "f(int, char),g" is two patterns.
func splitPatterns(s string) []string {
	var patterns []string
	depth, start := 0, 0
	add := func(end int) {
		if p := strings.TrimSpace(s[start:end]); p != "" {
			patterns = append(patterns, p)
		}
		start = end + 1
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		case ',':
			if depth == 0 {
				add(i)
			}
		case '\n':
			depth = 0
			add(i)
		}
	}
	if start < len(s) {
		add(len(s))
	}
	return patterns
}

// readList reads a file of patterns, one a line; empty lines and lines that begin with '#' are ignored.
func readList(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the list of functions not to be traced: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxListFile {
		return nil, fmt.Errorf("reading the list of functions not to be traced: %s is larger than %d bytes", name, maxListFile)
	}
	var patterns []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if p := strings.TrimSpace(lines.Text()); p != "" && p[0] != '#' {
			patterns = append(patterns, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the list of functions not to be traced: %s: %w", name, err)
	}
	return patterns, nil
}
