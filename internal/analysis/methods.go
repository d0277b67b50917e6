package analysis

import (
	"strings"

	"braid/internal/timeline"
)

// methods numbers methods by name over all address spaces of a trace, as the report does.
type methods struct {
	names  []timeline.MethodName
	ids    map[timeline.MethodName]uint32
	spaces map[*timeline.Space]*spaceIDs
}

func newMethods() *methods {
	return &methods{ids: make(map[timeline.MethodName]uint32), spaces: make(map[*timeline.Space]*spaceIDs)}
}

// spaceIDs are the numbers of one address space's methods, by its own index. 0 is not asked for yet.
type spaceIDs struct {
	all   *methods
	space *timeline.Space
	ids   []uint32 // number + 1
}

func (m *methods) space(sp *timeline.Space) *spaceIDs {
	s := m.spaces[sp]
	if s == nil {
		s = &spaceIDs{all: m, space: sp}
		m.spaces[sp] = s
	}
	return s
}

func (s *spaceIDs) id(method uint32) uint32 {
	if int(method) < len(s.ids) {
		if id := s.ids[method]; id != 0 {
			return id - 1
		}
	}
	if n := max(s.space.Methods.Len(), int(method)+1); n > len(s.ids) {
		s.ids = append(s.ids, make([]uint32, n-len(s.ids))...)
	}
	name := s.space.Name(method)
	id, ok := s.all.ids[name]
	if !ok {
		id = uint32(len(s.all.names))
		s.all.names = append(s.all.names, name)
		s.all.ids[name] = id
	}
	s.ids[method] = id + 1
	return id
}

// pattern is a pattern of method names: * is any text, \* is a star. A name matches with and without its parameters.
type pattern []string

// compile never fails: every text is a pattern.
func compile(s string) pattern {
	parts := []string{""}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '*' || s[i+1] == '\\'):
			i++
			parts[len(parts)-1] += s[i : i+1]
		case s[i] == '*':
			parts = append(parts, "")
		default:
			parts[len(parts)-1] += s[i : i+1]
		}
	}
	return parts
}

func (p pattern) matches(name string) bool {
	return p.glob(name) || p.glob(bare(name))
}

func (p pattern) glob(s string) bool {
	if len(p) == 1 {
		return s == p[0]
	}
	if !strings.HasPrefix(s, p[0]) {
		return false
	}
	s = s[len(p[0]):]
	for _, part := range p[1 : len(p)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, p[len(p)-1])
}

// bare is a C++ name without its parameters.
func bare(name string) string {
	name = strings.TrimSuffix(name, " const")
	if !strings.HasSuffix(name, ")") {
		return name
	}
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return name[:i]
			}
		}
	}
	return name
}
