package launcher

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrUsage is returned for a command line of braid cc itself that makes no sense.
var ErrUsage = errors.New("usage error")

// Usage is the help text of braid cc.
const Usage = `Usage: braid cc [options] [--] COMPILER ARGS...

Does what "COMPILER ARGS..." does, with trace stubs in the functions that it
compiles and braid's runtime in the programs and shared objects that it links.
COMPILER is gcc, g++, clang or clang++, with or without a version, a path or a
cross prefix, and "ccache COMPILER" too. Whatever is not understood is passed
on untouched.

Options:
  --only PATTERN   trace only functions that match (may be repeated)
  --skip PATTERN   do not trace functions that match (may be repeated)
  --list FILE      patterns not to be traced, one a line
  --block KIND     where a stub finds its thread's control block: tls (default),
                   slot:N or reg:NAME+OFFSET
  --no-runtime     do not link the runtime
  --verbose        say on stderr what is run and what got stubs
  -h, --help       show this help

PATTERN is a glob (* ? [a-z] [!a-z]) on a function's symbol or, in C++, its
demangled name with or without parameters: 'ns::*' or 'lua_*'.

Environment:
  BRAID_CC_ONLY, BRAID_CC_SKIP   more patterns, separated by commas
  BRAID_CC_VERBOSE               if not empty, as --verbose

Examples:
  braid cc gcc -O2 -o app app.c
  braid cc --skip 'hash_*' clang++ -O2 -c app.cc
  make CC="braid cc gcc"
  cmake -DCMAKE_C_COMPILER_LAUNCHER="braid;cc" \
        -DCMAKE_C_LINKER_LAUNCHER="braid;cc" ..
`

// options are those of braid cc itself.
type options struct {
	choose    chooser
	block     string // see parseBlock
	noRuntime bool
	verbose   bool
	help      bool
	command   []string // the compiler and its arguments
}

// parseOptions reads the command line after "braid cc" and the environment.
func parseOptions(args []string) (options, error) {
	var o options
	value := func(name string, i *int) (string, error) {
		if v, ok := strings.CutPrefix(args[*i], name+"="); ok {
			return v, nil
		}
		if *i++; *i >= len(args) {
			return "", fmt.Errorf("%w: %s needs a value", ErrUsage, name)
		}
		return args[*i], nil
	}
	i := 0
loop:
	for ; i < len(args); i++ {
		name, _, _ := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			i++
			break loop
		case args[i] == "" || args[i][0] != '-':
			break loop
		case name == "--only" || name == "--skip" || name == "--list" || name == "--block":
			v, err := value(name, &i)
			if err != nil {
				return o, err
			}
			switch name {
			case "--only":
				o.choose.Only = append(o.choose.Only, v)
			case "--skip":
				o.choose.Skip = append(o.choose.Skip, v)
			case "--block":
				if o.block, err = parseBlock(v); err != nil {
					return o, err
				}
			case "--list":
				patterns, err := readList(v)
				if err != nil {
					return o, err
				}
				o.choose.Skip = append(o.choose.Skip, patterns...)
			}
		case args[i] == "--no-runtime":
			o.noRuntime = true
		case args[i] == "--verbose":
			o.verbose = true
		case args[i] == "-h" || args[i] == "--help":
			o.help = true
			return o, nil
		default:
			return o, fmt.Errorf("%w: unknown option %s before the compiler; see braid cc --help", ErrUsage, args[i])
		}
	}
	o.command = args[i:]
	if len(o.command) == 0 {
		return o, fmt.Errorf("%w: no compiler given; try: braid cc gcc -O2 -o app app.c", ErrUsage)
	}
	o.choose.Only = append(o.choose.Only, splitPatterns(os.Getenv("BRAID_CC_ONLY"))...)
	o.choose.Skip = append(o.choose.Skip, splitPatterns(os.Getenv("BRAID_CC_SKIP"))...)
	o.verbose = o.verbose || os.Getenv("BRAID_CC_VERBOSE") != ""
	if err := o.choose.check(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return o, nil
}
