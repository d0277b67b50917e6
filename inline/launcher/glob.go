package launcher

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrPattern is returned for a pattern that can match nothing because it is malformed.
var ErrPattern = errors.New("malformed pattern")

// checkGlob says whether pattern is well formed: every '[' is closed and no '\' ends it.
func checkGlob(pattern string) error {
	for rest := pattern; rest != ""; {
		switch rest[0] {
		case '\\':
			if len(rest) == 1 {
				return fmt.Errorf("%w %q: nothing follows the last \\", ErrPattern, pattern)
			}
			rest = rest[2:]
		case '[':
			_, after, ok := matchSet(rest, 0)
			if !ok {
				return fmt.Errorf("%w %q: [ without ]", ErrPattern, pattern)
			}
			rest = after
		default:
			rest = rest[1:]
		}
	}
	return nil
}

// matchGlob says whether all of name matches pattern: '*' stands for any characters, '?' for one, '[a-z]' for one of a
// set, '[!a-z]' or '[^a-z]' for one outside it, '\' takes the next character as it is. A malformed pattern matches
// nothing. Unlike path.Match, '*' crosses '/', which C++ names contain (operator/). Time is at most the product of both
// lengths: on a mismatch only the last '*' is widened.
func matchGlob(pattern, name string) bool {
	starPattern, starName := "", ""
	star := false
	for {
		if pattern != "" && pattern[0] == '*' {
			pattern = pattern[1:]
			star, starPattern, starName = true, pattern, name
			continue
		}
		if name == "" && pattern == "" {
			return true
		}
		if pattern != "" && name != "" {
			if p, n, ok := matchOne(pattern, name); ok {
				pattern, name = p, n
				continue
			}
		}
		if !star || starName == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(starName)
		starName = starName[size:]
		pattern, name = starPattern, starName
	}
}

// matchOne matches one character of name with the first element of pattern, which is no '*', and returns what is left
// of both.
func matchOne(pattern, name string) (restPattern, restName string, ok bool) {
	r, size := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return pattern[1:], name[size:], true
	case '[':
		matched, rest, wellFormed := matchSet(pattern, r)
		return rest, name[size:], wellFormed && matched
	case '\\':
		if len(pattern) == 1 {
			return "", "", false
		}
		pattern = pattern[1:]
	}
	p, patternSize := utf8.DecodeRuneInString(pattern)
	if p != r || (r == utf8.RuneError && pattern[:patternSize] != name[:size]) {
		return "", "", false
	}
	return pattern[patternSize:], name[size:], true
}

// matchSet matches r with the set at the start of pattern, which begins with '[', and returns what follows its ']'. A
// ']' directly after the '[' or the negation is a member.
func matchSet(pattern string, r rune) (matched bool, rest string, ok bool) {
	rest = pattern[1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	for first := true; ; first = false {
		if rest == "" {
			return false, "", false
		}
		if rest[0] == ']' && !first {
			return matched != negated, rest[1:], true
		}
		var low rune
		if low, rest, ok = setMember(rest); !ok {
			return false, "", false
		}
		high := low
		if len(rest) >= 2 && rest[0] == '-' && rest[1] != ']' {
			if high, rest, ok = setMember(rest[1:]); !ok {
				return false, "", false
			}
		}
		if low <= r && r <= high {
			matched = true
		}
	}
}

// setMember reads one, possibly escaped, character of a set.
func setMember(s string) (r rune, rest string, ok bool) {
	if s[0] == '\\' {
		s = s[1:]
	}
	if s == "" {
		return 0, "", false
	}
	r, size := utf8.DecodeRuneInString(s)
	return r, s[size:], true
}
