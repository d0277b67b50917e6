package control

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"braid/inline/runtime"
)

// keptFrom is the lowest descriptor that the runtime keeps of its memory file: own_area in inline/runtime/src/area.c.
const keptFrom = 230

// Keeps reports whether a process keeps a descriptor of an area of its own, as one does that has begun to be traced outside
// a session. It is much cheaper than Attach, which reads all mappings, and so is for asking again and again. False does not
// say that there is no area: the program may have closed the descriptor, or may not be looked at.
func Keeps(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, n := range names {
		if fd, err := strconv.Atoi(n); err != nil || fd < keptFrom {
			continue
		}
		if to, err := os.Readlink(filepath.Join(dir, n)); err == nil && strings.HasPrefix(to, runtime.MemoryName) {
			return true
		}
	}
	return false
}
