package trigger

import "strings"

// Match reports whether a pattern fits the whole of a text: * stands for any number of characters, ? for one byte,
// everything else for itself. It takes time in proportion to the product of both lengths at most.
func Match(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0 // the last *, and where it ends for now
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// MatchMethod reports whether a pattern fits a method's demangled name, with or without its parameters: "a::f" fits
// "a::f(int) const".
func MatchMethod(pattern, name string) bool {
	return Match(pattern, name) || Match(pattern, bare(name))
}

// bare is a demangled name without its parameters: what stands before the last parenthesis that is opened outside of all
// others, and outside of <>.
func bare(name string) string {
	const unnamed = "(anonymous namespace)"
	depth, cut := 0, len(name)
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '(':
			if depth == 0 && strings.HasPrefix(name[i:], unnamed) {
				i += len(unnamed) - 1
				continue
			}
			if depth == 0 && !strings.HasSuffix(name[:i], "operator") {
				cut = i
			}
			depth++
		case ')':
			depth--
		case '<':
			if !strings.HasSuffix(name[:i], "operator") && !strings.HasSuffix(name[:i], "operator<") {
				depth++
			}
		case '>':
			if depth > 0 && !strings.HasSuffix(name[:i], "operator-") {
				depth--
			}
		}
	}
	return name[:cut]
}
