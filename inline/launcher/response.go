package launcher

import (
	"io"
	"os"
)

// Limits of response files. Beyond them the command line is not understood, and passed through untouched.
const (
	maxResponseBytes = 16 << 20 // in all
	maxResponseFiles = 2000     // files in all; gcc's own limit (libiberty/argv.c, GCC 12)
	maxArguments     = 1 << 20
)

// expandResponseFiles replaces each @FILE by the arguments in FILE, which may themselves be @FILE. As in gcc, a file
// that cannot be read stays as it is, as an ordinary argument. Not ok when a limit is exceeded.
func expandResponseFiles(args []string) (expanded []string, ok bool) {
	pending := make([]string, len(args))
	for i, a := range args { // a stack: the next argument is last
		pending[len(args)-1-i] = a
	}
	left := int64(maxResponseBytes)
	for files := 0; len(pending) > 0; {
		arg := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if len(arg) < 2 || arg[0] != '@' {
			if len(expanded) >= maxArguments {
				return nil, false
			}
			expanded = append(expanded, arg)
			continue
		}
		text, tooLarge, err := readBounded(arg[1:], left)
		if tooLarge {
			return nil, false
		}
		if err != nil {
			expanded = append(expanded, arg)
			continue
		}
		if files++; files > maxResponseFiles {
			return nil, false
		}
		left -= int64(len(text))
		more := splitResponse(string(text))
		if len(more)+len(pending) > maxArguments {
			return nil, false
		}
		for i := len(more) - 1; i >= 0; i-- {
			pending = append(pending, more[i])
		}
	}
	return expanded, true
}

// readBounded reads a regular file of at most limit bytes; anything else counts as too large.
func readBounded(name string, limit int64) (text []byte, tooLarge bool, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() { // what a pipe holds can be read once, and that is the compiler's
		return nil, true, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, limit+1))
	return text, int64(len(text)) > limit, err
}

// splitResponse splits a response file as buildargv of libiberty/argv.c (GCC 12) does: white space separates, single
// and double quotes group, and a backslash takes the next character as it is, within quotes too.
func splitResponse(text string) []string {
	var args []string
	var arg []byte
	inArg := false
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			inArg = true
			if i++; i < len(text) {
				arg = append(arg, text[i])
			}
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				arg = append(arg, c)
			}
		case c == '\'' || c == '"':
			quote, inArg = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r':
			if inArg {
				args = append(args, string(arg))
				arg, inArg = arg[:0], false
			}
		default:
			inArg = true
			arg = append(arg, c)
		}
	}
	if inArg {
		args = append(args, string(arg))
	}
	return args
}
