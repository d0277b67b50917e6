package constructs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/ianlancetaylor/demangle"

	"braid/control"
	"braid/inline"
	"braid/inline/runtime"
	"braid/symbols"
)

func signalOf(st *os.ProcessState) int {
	ws, ok := st.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return 0
	}
	return int(ws.Signal())
}

// ringBytes is each thread's ring: none of the programs here fills it.
const ringBytes = 1 << 20

// trace is what the threads of a program and of its children recorded.
type trace struct {
	threads []string // a tree each, sorted
	faults  []string // what must not be
	stats   inline.Stats
}

// traced runs a program with all threads recording, and decodes what they recorded.
func traced(dir string, env, spliced []string, words ...string) (outcome, *trace, error) {
	s, err := control.NewSession(runtime.PolicyAll, ringBytes)
	if err != nil {
		return outcome{}, nil, err
	}
	defer s.Close()
	o, err := run(dir, append([]string{s.Env()}, env...), words...)
	if err != nil {
		return o, nil, err
	}
	t, err := decode(s, spliced)
	return o, t, err
}

// decode collects the rings of a session whose processes are gone.
func decode(s *control.Session, spliced []string) (*trace, error) {
	areas, err := s.Areas()
	if err != nil {
		return nil, err
	}
	out := &trace{}
	for _, a := range areas {
		defer a.Close()
		methods, names := known(a)
		for _, th := range a.Threads() {
			if !th.Recorded() {
				continue
			}
			seg, err := th.Collect(nil)
			if err != nil {
				return nil, err
			}
			if !seg.Exact || !seg.Complete {
				out.faults = append(out.faults, fmt.Sprintf("thread %d: exact %v, complete %v", th.Tid, seg.Exact, seg.Complete))
			}
			nodes, err := out.thread(&seg, methods, names)
			if err != nil {
				return nil, err
			}
			if line := formatTrees(splice(nodes, spliced)); line != "" {
				out.threads = append(out.threads, line)
			}
		}
		for what, n := range a.Lost() {
			if n > 0 {
				out.faults = append(out.faults, fmt.Sprintf("process %d: %s %d", a.Pid(), what, n))
			}
		}
	}
	slices.Sort(out.threads)
	return out, nil
}

// thread decodes one ring and checks that nothing in it is in doubt.
func (t *trace) thread(seg *control.Segment, m *inline.Methods, names func(uint32) string) ([]*node, error) {
	d, err := (&inline.Decoder{Methods: m}).Decode(&seg.Segment, nil)
	if err != nil {
		return nil, err
	}
	t.stats.Add(d.Stats)
	if s := d.Stats; s.Damaged+s.Orphans+s.LostResumes+s.Ambiguous+s.StaleAnchors+s.Unwritten > 0 {
		t.faults = append(t.faults, fmt.Sprintf("%+v", s))
	}
	return calls(&d, seg, names), nil
}

// calls pairs a segment's events to trees. A slice comes when it ends, behind those of its callees.
func calls(d *inline.Decoded, seg *control.Segment, names func(uint32) string) []*node {
	pending := [][]*node{nil}
	d.Slices(seg.Begin, seg.End, func(s *inline.Slice) bool {
		for len(pending) < int(s.Depth)+2 {
			pending = append(pending, nil)
		}
		n := &node{name: names(s.Method), kids: pending[s.Depth+1], again: s.Flags&inline.Reentered != 0}
		switch {
		case s.Flags&inline.Unwound != 0:
			n.mark = '!'
		case s.Flags&inline.Suspended != 0:
			n.mark = ';'
		case s.Flags&inline.CutEnd != 0:
			n.mark = '~'
		}
		pending[s.Depth+1] = nil
		pending[s.Depth] = append(pending[s.Depth], n)
		return true
	})
	return pending[0]
}

// known gives the decoder all functions of a process's modules. The names are those of methods by their index.
func known(a *control.Area) (*inline.Methods, func(index uint32) string) {
	var mods []symbols.Module
	for _, m := range a.Modules() {
		s := symbols.Registered(m.Path, m.Bias, m.BuildID)
		s.Ranges = []symbols.Range{{Start: m.Low, End: m.High}}
		mods = append(mods, s)
	}
	methods, names := inline.NewMethods(256), map[uint64]string{}
	for f := range symbols.NewTable(mods, symbols.Options{}).Functions() {
		methods.Add(f.Addr)
		names[f.Addr] = display(f.Raw)
	}
	return methods, func(index uint32) string {
		r := methods.Row(index)
		if n := names[r.Addr]; n != "" {
			return n
		}
		return fmt.Sprintf("?%#x", r.Addr)
	}
}

var lambda = regexp.MustCompile(`\{lambda\(.*?\)#([0-9]+)\}`)

// display is a symbol as the trees have it: demangled without parameters, and without what has a meaning in trees.
// A number that the compiler has put behind a local function's name is left out.
func display(raw string) string {
	if !strings.HasPrefix(raw, "_Z") {
		if i := strings.LastIndexByte(raw, '.'); i > 0 && strings.Trim(raw[i+1:], "0123456789") == "" {
			raw = raw[:i]
		}
		return raw
	}
	s := demangle.Filter(raw, demangle.NoParams)
	s = lambda.ReplaceAllString(s, "lambda$1")
	return strings.NewReplacer(" ", "", "{", "(", "}", ")").Replace(s)
}
