package symbols

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// Limits on names.
const (
	maxName     = 8 << 10 // bytes of a raw name; the rest is cut off
	maxMangled  = 4 << 10 // bytes of a raw name that is still demangled
	maxDemangle = 12      // the demangled name has at most 2^12 bytes
)

// Demangle returns the name to show for a symbol: C++ (Itanium ABI) and Rust (legacy and v0) names demangled, with
// parameters and with suffixes such as [clone .cold]; a symbol version (name@@VERSION) left out; characters that a
// terminal might obey replaced by "?". A name that is not mangled, or mangled wrongly or beyond the limits, is
// returned as it is but for the replaced characters.
func Demangle(raw string) string {
	name := raw
	if i := strings.IndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	if strings.HasPrefix(name, "_") && len(name) <= maxMangled {
		name = demangled(name)
	}
	return printable(name)
}

// demangled returns name itself if it cannot be demangled. The library recovers from its own parse errors only, and a
// name is not worth a crash.
func demangled(name string) (out string) {
	defer func() {
		if recover() != nil {
			out = name
		}
	}()
	return demangle.Filter(name, demangle.MaxLength(maxDemangle))
}

// printable replaces invalid UTF-8 and characters that do not print.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
