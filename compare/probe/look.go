package probe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// State is what stands at a site in a running process.
type State string

// The states.
const (
	Untouched  State = "untouched"  // the program's own instruction
	Breakpoint State = "breakpoint" // the kernel's
	Called     State = "call"       // a call to a page of the kernel's
)

// Look says what stands at sites of a process, which runs the file at path, and whether the kernel has made room there to
// step instructions in. It makes that room when it first has to step one, or when the first function with a return probe is
// entered. It needs the right to trace the process.
func Look(pid int, path string, sites []Site) (states []State, stepping bool, err error) {
	fail := func(err error) ([]State, bool, error) {
		return nil, false, fmt.Errorf("look at probes in process %d: %w", pid, err)
	}
	maps, err := readMaps(pid, path)
	if err != nil {
		return fail(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return fail(err)
	}
	defer mem.Close()
	for _, s := range sites {
		address, ok := maps.address(s.Offset)
		if !ok {
			return fail(fmt.Errorf("%s is not mapped", s.Symbol))
		}
		code := make([]byte, len(s.Code))
		if _, err := mem.ReadAt(code, int64(address)); err != nil {
			return fail(fmt.Errorf("read the code of %s: %w", s.Symbol, err))
		}
		state, err := stateOf(code, s.Code)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", s.Symbol, err))
		}
		states = append(states, state)
	}
	return states, maps.stepping, nil
}

// breakpoints are int3 and arm64's brk #5: BRK64_OPCODE_UPROBES of arch/arm64/include/asm/uprobes.h.
var breakpoints = [][]byte{{0xcc}, {0xa0, 0x00, 0x20, 0xd4}}

func stateOf(now, own []byte) (State, error) {
	if bytes.Equal(now, own) {
		return Untouched, nil
	}
	for _, b := range breakpoints {
		if bytes.HasPrefix(now, b) && bytes.Equal(now[len(b):], own[len(b):]) {
			return Breakpoint, nil
		}
	}
	if now[0] == 0xe8 {
		return Called, nil
	}
	return "", fmt.Errorf("unknown code %x in place of %x", now, own)
}

// processMaps is where a process has the code of a file.
type processMaps struct {
	code     []codeMap
	stepping bool
}

type codeMap struct{ start, end, offset uint64 }

func (m processMaps) address(offset uint64) (uint64, bool) {
	for _, c := range m.code {
		if c.offset <= offset && offset-c.offset < c.end-c.start {
			return c.start + offset - c.offset, true
		}
	}
	return 0, false
}

func readMaps(pid int, path string) (m processMaps, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return m, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return m, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c codeMap
		var access, device string
		var inode uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d", &c.start, &c.end, &access, &c.offset, &device, &inode); err != nil {
			return m, fmt.Errorf("read the mappings: %q: %w", lines.Text(), err)
		}
		if inode == st.Ino && strings.Contains(access, "x") {
			m.code = append(m.code, c)
		}
		if strings.HasSuffix(lines.Text(), "[uprobes]") {
			m.stepping = true
		}
	}
	return m, errors.Join(lines.Err())
}
