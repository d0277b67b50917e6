package launcher

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRepairs bounds how often a text is assembled again without the stubs of some more functions.
const maxRepairs = 4

// repair is for a text that the assembler rejects. If it rejects the text without stubs too, that is the compiler's or
// the user's affair. Otherwise the stubs are at fault. Then the functions that the messages name get none, and if that
// does not help, the whole file.
func (w *wrapper) repair(source, text []byte, messages string) (exitCode int, err error) {
	var said bytes.Buffer
	status, err := w.assemblePlain(source, &said)
	if err != nil {
		return 1, err
	}
	if w.Replay && (!status.ok() || said.Len() > 0) {
		if err := w.askForReplay(); err != nil {
			return 1, err
		}
	} else if _, err := os.Stderr.Write(said.Bytes()); err != nil {
		return 1, err
	}
	if !status.ok() {
		return status.report(), nil
	}

	excluded := map[string]bool{}
	for range maxRepairs {
		var more []string
		for _, symbol := range faults(text, messages) {
			if !excluded[symbol] {
				excluded[symbol] = true
				more = append(more, symbol)
			}
		}
		if len(more) == 0 {
			break
		}
		for _, symbol := range more {
			w.say("%s: no stub in %s: the assembler does not take it; please report this", w.subject(source), symbol)
		}
		if text, err = w.insert(source, excluded); err != nil {
			break
		}
		var again bytes.Buffer
		status, err := w.assemble(bytes.NewReader(text), "", &again)
		if err != nil {
			return 1, err
		}
		if status.ok() {
			return 0, w.keep(text)
		}
		messages = again.String()
	}
	w.say("%s has no stubs: the assembler does not take them; please report this:\n%s", w.subject(source), messages)
	// Again: an assembler that fails takes the object away.
	status, err = w.assemblePlain(source, &said)
	return status.report(), err
}

// messageLine matches an assembler's error about a line of its standard input: GNU's and clang's.
var messageLine = regexp.MustCompile(`(?m)^(?:\{standard input\}|<stdin>):([0-9]+):(?:[0-9]+:)? *(?:[Ff]atal )?[Ee]rror`)

// faults are the functions, without what was split off them, that an assembler's messages about a text are in.
func faults(text []byte, messages string) []string {
	var lines []int
	for _, m := range messageLine.FindAllStringSubmatch(messages, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			lines = append(lines, n)
		}
	}
	slices.Sort(lines)
	var symbols []string
	functions := map[string]bool{}
	current := ""
	number := 0
	for line := range bytes.Lines(text) {
		if len(lines) == 0 {
			break
		}
		number++
		if symbol, ok := functionType(line); ok {
			functions[symbol] = true
		} else if label, _, ok := bytes.Cut(line, []byte(":")); ok && functions[unquoteSymbol(label)] {
			current = unquoteSymbol(label)
		}
		for len(lines) > 0 && lines[0] <= number {
			if lines = lines[1:]; current != "" && !slices.Contains(symbols, wholeFunction(current)) {
				symbols = append(symbols, wholeFunction(current))
			}
		}
	}
	return symbols
}

// functionType reads "\t.type\tSYMBOL, @function"; ARM's assembler wants a '%' in place of the '@'.
func functionType(line []byte) (symbol string, ok bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(".type"))
	if !ok {
		return "", false
	}
	name, kind, ok := bytes.Cut(rest, []byte(","))
	if kind = bytes.TrimSpace(kind); !ok || len(kind) == 0 || string(kind[1:]) != "function" {
		return "", false
	}
	return unquoteSymbol(name), true
}

// unquoteSymbol takes off the quotes that a symbol with unusual characters has.
func unquoteSymbol(name []byte) string {
	return strings.Trim(string(bytes.TrimSpace(name)), `"`)
}
