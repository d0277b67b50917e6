package launcher

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"braid/inline/stub"
)

// insertion is how to put stubs into a text. It travels from the launcher to the assembler wrapper as JSON.
type insertion struct {
	Choose  chooser `json:"choose"`
	Arch    string  `json:"arch"`            // in Go's names
	Block   string  `json:"block,omitempty"` // see parseBlock
	Verbose bool    `json:"verbose,omitempty"`
}

// stubs returns the compiler's output with stubs in all functions that are chosen and not excluded. Verbose, it says on
// log what it did. The error is stub.ErrNotCompilerOutput for text that must stay as it is.
//
// A defect of the inserter must not break a build, so a panic is an error here.
func (in *insertion) stubs(source []byte, excluded map[string]bool, subject string, log io.Writer) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("the inserter failed: %v; please report this", p)
		}
	}()
	var out bytes.Buffer
	out.Grow(len(source) + len(source)/2)
	result, err := stub.Insert(&out, source, in.options(excluded))
	if err != nil {
		return nil, err
	}
	if in.Verbose {
		fmt.Fprintf(log, "braid cc: %s: stubs in %d functions, at %d exits\n", subject, result.Entries, result.Exits)
		for _, s := range result.Skipped {
			fmt.Fprintf(log, "braid cc: %s: no stub in %s\n", subject, s)
		}
	}
	return out.Bytes(), nil
}

// options are the inserter's.
func (in *insertion) options(excluded map[string]bool) stub.Options {
	return stub.Options{
		Arch: in.Arch, Block: in.Block,
		Trace: func(symbol string) bool {
			return !excluded[wholeFunction(symbol)] && in.Choose.trace(symbol)
		},
	}
}

// wholeFunction is the symbol of the function that a part which the compiler split off belongs to.
func wholeFunction(symbol string) string {
	whole, _, _ := strings.Cut(symbol, ".cold")
	return whole
}

// sourceName is the file that the first .file directive without a number names.
func sourceName(assembly []byte) string {
	const directive = "\t.file\t\""
	head := assembly[:min(len(assembly), 4096)]
	start := bytes.Index(head, []byte(directive))
	if start < 0 {
		return ""
	}
	quoted := head[start+len(directive)-1:]
	end := bytes.IndexByte(quoted, '\n')
	if end < 0 {
		return ""
	}
	name, err := strconv.Unquote(string(bytes.TrimRight(quoted[:end], " \t\r")))
	if err != nil {
		return ""
	}
	return name
}
