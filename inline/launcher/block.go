package launcher

import (
	"fmt"
	"io"
	"regexp"
	"strconv"

	"braid/inline/stub"
)

// maxBlockOffset bounds the offset of --block reg:NAME+OFF, in bytes: what one load instruction reaches on each
// processor.
const maxBlockOffset = 4088

var (
	blockSlot     = regexp.MustCompile(`^slot:([0-9]+)$`)
	blockRegister = regexp.MustCompile(`^reg:([a-z][a-z0-9]*)(?:\+(0x[0-9a-fA-F]+|[0-9]+))?$`)
)

// parseBlock reads the value of --block: where a stub finds the address of its thread's control block. The result is ""
// for the thread-local variable, "slot:N" for the word N behind the thread pointer, or "reg:NAME+OFF" for the word OFF
// bytes behind what a register holds, with N and OFF in decimal. Whether the processor has the register is for the
// stub to say.
func parseBlock(kind string) (string, error) {
	if kind == "tls" {
		return "", nil
	}
	if m := blockSlot.FindStringSubmatch(kind); m != nil {
		n, err := strconv.ParseUint(m[1], 10, 32)
		if err != nil || n > maxBlockOffset/8 {
			return "", fmt.Errorf("%w: --block %s: the word can be 0 to %d", ErrUsage, kind, maxBlockOffset/8)
		}
		return fmt.Sprintf("slot:%d", n), nil
	}
	if m := blockRegister.FindStringSubmatch(kind); m != nil {
		var n uint64
		if m[2] != "" {
			var err error
			if n, err = strconv.ParseUint(m[2], 0, 32); err != nil || n > maxBlockOffset || n%4 != 0 {
				return "", fmt.Errorf("%w: --block %s: the offset can be 0 to %d, in steps of a word", ErrUsage, kind,
					maxBlockOffset)
			}
		}
		return fmt.Sprintf("reg:%s+%d", m[1], n), nil
	}
	return "", fmt.Errorf("%w: --block %s: not one of tls, slot:N, reg:NAME and reg:NAME+OFFSET", ErrUsage, kind)
}

// noFunctions is compiler output without any function.
var noFunctions = []byte("\t.text\n\t.addrsig\n")

// canInsert says why the inserter has no stubs for these settings, or nil.
func (in *insertion) canInsert() error {
	_, err := stub.Insert(io.Discard, noFunctions, in.options(nil))
	return err
}
