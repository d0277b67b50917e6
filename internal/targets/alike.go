package targets

import (
	"bufio"
	"cmp"
	"os"
	"path"
	"slices"
	"strings"
)

// packagesList is where Android keeps which packages are installed, one a line: name, user id, and more. Root may read it.
var packagesList = "/data/system/packages.list"

// Installed looks a package up. known: this is Android, and the list may be read.
func Installed(name string) (installed, known bool) {
	f, err := os.Open(packagesList)
	if err != nil {
		return false, false
	}
	defer f.Close()
	name, _, _ = strings.Cut(name, ":")
	for sc := bufio.NewScanner(f); sc.Scan(); {
		known = true
		if first, _, _ := strings.Cut(sc.Text(), " "); first == name {
			return true, true
		}
	}
	return false, known
}

// Alike lists running processes whose names look like the one that is wanted, the likest first, at most n.
func (c *Choice) Alike(running []Process, n int) []string {
	if c.Package == "" {
		return nil
	}
	best := map[string]int{}
	for i := range running {
		p := &running[i]
		name := path.Base(p.Name)
		if name == "." || name == "" {
			name = p.Comm
		}
		if s := likeness(c.Package, name); s > 0 {
			best[name] = s
		}
	}
	names := make([]string, 0, len(best))
	for name := range best {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(best[b], best[a]), cmp.Compare(a, b)) })
	return names[:min(n, len(names))]
}

// Running reads all processes that may be read.
func Running() []Process {
	pids, _ := All()
	var out []Process
	for _, pid := range pids {
		if p, ok := Read(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// likeness is the longest run of bytes that two names share, without regard to case, if that is most of the shorter one's
// last part; else 0. The beginning that half of all packages share does not count.
func likeness(want, have string) int {
	w, h := strings.ToLower(trimDomain(want)), strings.ToLower(trimDomain(have))
	if w == "" || h == "" {
		return 0
	}
	run := longestCommon(w, h)
	last := w[strings.LastIndexAny(w, ".:")+1:]
	if run < 3 || run < (min(len(last), len(h))+1)/2 {
		return 0
	}
	return run
}

func trimDomain(s string) string {
	for _, d := range []string{"com.android.", "com.google.android.", "com.", "org.", "net.", "io.", "android."} {
		if rest, ok := strings.CutPrefix(s, d); ok {
			return rest
		}
	}
	return s
}

func longestCommon(a, b string) (most int) {
	row := make([]int, len(b)+1) // row[j]: the run that ends before a[i] and b[j]
	for i := range len(a) {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] != b[j] {
				row[j+1] = 0
				continue
			}
			row[j+1] = row[j] + 1
			most = max(most, row[j+1])
		}
	}
	return most
}
