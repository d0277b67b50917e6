package control

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"braid/inline/runtime"
)

// Find lists the running programs that carry stubs, as "name (pid)". Processes that may not be looked at are left out.
func Find() ([]string, error) {
	es, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var out []string
	for _, e := range es {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !traced(pid) {
			continue
		}
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		out = append(out, fmt.Sprintf("%s (%d)", strings.TrimSpace(string(comm)), pid))
	}
	return out, nil
}

// traced reports whether a process maps an area of its own.
func traced(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.Contains(sc.Text(), runtime.MemoryName+" ") || strings.HasSuffix(sc.Text(), runtime.MemoryName) {
			return true
		}
	}
	return false
}
