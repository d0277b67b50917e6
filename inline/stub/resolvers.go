package stub

import (
	"bytes"
	"strings"
)

// resolvers finds the functions that choose an ifunc's implementation. They run while the program is being loaded: in a
// static one before thread-local storage exists, in others before it is filled. So they must not hold a trace point.
func resolvers(src []byte) map[string]bool {
	if !bytes.Contains(src, []byte("gnu_indirect_function")) {
		return nil
	}
	ifuncs, set := map[string]bool{}, map[string]string{}
	for l := range bytes.Lines(src) {
		s := strings.TrimSpace(string(l))
		if a, ok := strings.CutPrefix(s, ".type"); ok && strings.Contains(a, "gnu_indirect_function") {
			name, _, _ := strings.Cut(a, ",")
			ifuncs[strings.TrimSpace(name)] = true
		} else if a, ok := strings.CutPrefix(strings.Replace(s, ".thumb_set", ".set", 1), ".set"); ok {
			if name, target, ok := strings.Cut(a, ","); ok {
				set[strings.TrimSpace(name)] = strings.TrimSpace(target)
			}
		}
	}
	out := map[string]bool{}
	for name := range ifuncs {
		out[name] = true
		if t := set[name]; t != "" {
			out[t] = true
		}
	}
	return out
}

// resolversCalls adds what resolvers call to them, as far as it is in this file.
func (in *inserter) resolversCalls() {
	if len(in.resolvers) == 0 {
		return
	}
	parts := map[string][]*part{}
	for _, p := range in.parts {
		parts[p.base] = append(parts[p.base], p)
	}
	var work []*part
	for name := range in.resolvers {
		work = append(work, parts[name]...)
	}
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		for _, i := range p.body {
			if !i.kind.is(kindCall | kindTail) {
				continue
			}
			callee := symbolIn(i.args)
			if callee != "" && !in.resolvers[callee] && parts[callee] != nil {
				in.resolvers[callee] = true
				work = append(work, parts[callee]...)
			}
		}
	}
}
