package stub

import (
	"fmt"
	"strconv"
	"strings"
)

// door is where a stub finds the address of its thread's control block (docs/protocol.md, "Doors"): the zero value is the
// thread-local variable, otherwise a word of memory that belongs to the thread.
type door struct {
	slot   bool
	reg    string // a reserved register that points near the word; "" with slot: the thread pointer
	offset int    // of the word, in bytes
}

// word reports whether the address is in a word that the slow path fills in, and not in the thread-local variable.
func (d door) word() bool { return d.slot || d.reg != "" }

// parseDoor reads Options.Block. Words have size bytes, offsets go up to limit, and registers are those that usable knows.
func parseDoor(block string, size, limit int, usable func(reg string) bool) (door, error) {
	kind, rest, _ := strings.Cut(block, ":")
	switch kind {
	case "", "tls":
		if rest == "" {
			return door{}, nil
		}
	case "slot":
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && n*size <= limit {
			return door{slot: true, offset: n * size}, nil
		}
	case "reg":
		name, offset, with := strings.Cut(rest, "+")
		n, err := 0, error(nil)
		if with {
			n, err = strconv.Atoi(offset)
		}
		if err == nil && n >= 0 && n <= limit && n%size == 0 && usable(name) {
			return door{reg: name, offset: n}, nil
		}
	}
	return door{}, fmt.Errorf("no stubs that find their control block by %q on this processor", block)
}

// slowSymbol is the slow path of this text's door.
func (in *inserter) slowSymbol() string {
	if in.door.word() {
		return symSlowWord
	}
	return symSlow
}

// arm64Reserved reports whether a compiler can be told to leave a register alone: x18 to x28 (-ffixed-x19).
func arm64Reserved(reg string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(reg, "x"))
	return strings.HasPrefix(reg, "x") && err == nil && n >= 18 && n <= 28
}

// amd64Reserved reports whether the register is one of those that calls keep: rbx, r12 to r15.
func amd64Reserved(reg string) bool {
	switch reg {
	case "rbx", "r12", "r13", "r14", "r15":
		return true
	}
	return false
}
