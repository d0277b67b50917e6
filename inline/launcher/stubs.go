package launcher

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"braid/inline/stub"
)

// insertStubs returns the compiler's output with stubs. Verbose, it says on log what it did. The error is
// stub.ErrNotCompilerOutput for text that must stay as it is.
func insertStubs(source []byte, choose *chooser, verbose bool, subject string, log io.Writer) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(source) + len(source)/2)
	result, err := stub.Insert(&out, source, stub.Options{Trace: choose.trace})
	if err != nil {
		return nil, err
	}
	if verbose {
		fmt.Fprintf(log, "braid cc: %s: stubs in %d functions, at %d exits\n", subject, result.Entries, result.Exits)
		for _, s := range result.Skipped {
			fmt.Fprintf(log, "braid cc: %s: no stub in %s\n", subject, s)
		}
	}
	return out.Bytes(), nil
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
