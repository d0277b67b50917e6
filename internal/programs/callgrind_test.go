package programs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// place is an address in a file as it was linked.
type place struct {
	object string // as of objectName
	addr   uint64
}

// arc is what callgrind counted of one call instruction, or jump that leaves a function, to one target.
type arc struct {
	site, target place
	caller       string // callgrind's name of the function that site is in
	count        uint64
}

// callgrindOptions make callgrind write addresses, and everything in full.
var callgrindOptions = []string{"-q", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no"}

// readCallgrind reads the calls in a file that callgrind wrote with callgrindOptions. The format is described in
// "Callgrind Format Specification" in Valgrind's manual. A call is written as
//
//	cob=OBJECT             only if it is not the caller's
//	cfn=FUNCTION
//	calls=COUNT TARGET LINE
//	SITE LINE COST
func readCallgrind(r io.Reader) ([]arc, error) {
	var arcs []arc
	var object, callee, function string
	var call *arc
	positions := false
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		line := in.Text()
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "positions: instr line":
			positions = true
		case call != nil:
			site, err := field(line, 0)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			call.site = place{object, site}
			arcs = append(arcs, *call)
			call = nil
		case !ok:
		case key == "ob":
			object = objectName(value)
			callee = object
		case key == "fn":
			function, callee = value, object
		case key == "cob":
			callee = objectName(value)
		case key == "calls":
			count, err := strconv.ParseUint(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			target, err := field(value, 1)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			call = &arc{target: place{callee, target}, caller: function, count: count}
			callee = object
		}
	}
	if !positions {
		return nil, fmt.Errorf("no addresses in it: was it written with %q?", callgrindOptions)
	}
	return arcs, in.Err()
}

// field is the i-th word of a line, an address.
func field(line string, i int) (uint64, error) {
	f := strings.Fields(line)
	if len(f) <= i {
		return 0, fmt.Errorf("%q: no word %d", line, i)
	}
	return strconv.ParseUint(f[i], 0, 64)
}

func TestReadCallgrind(t *testing.T) {
	const text = `version: 1
positions: instr line
events: Ir

ob=/x/prog
fl=a.c
fn=main
0x1000 1 1
cfn=f
calls=3 0x2000 9
0x1004 2 33
cob=/y/libz.so.1
cfn=g
calls=4 0x300 0
0x1008 3 44
cfn=f'2
calls=5 0x2000 9
0x100c 3 55
fn=f
0x2000 9 1
ob=/y/libz.so.1
fn=g
cob=/x/prog
cfn=f
calls=1 0x2000 9
0x304 0 1
`
	got, err := readCallgrind(strings.NewReader(text))
	f := place{"prog", 0x2000}
	want := []arc{{place{"prog", 0x1004}, f, "main", 3}, {place{"prog", 0x1008}, place{"libz.so.1", 0x300}, "main", 4},
		{place{"prog", 0x100c}, f, "main", 5}, {place{"libz.so.1", 0x304}, f, "g", 1}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("error %v\ngot  %v\nwant %v", err, got, want)
	}
	if _, err := readCallgrind(strings.NewReader("version: 1\npositions: line\n")); err == nil {
		t.Error("a file without addresses was taken")
	}
}

// underCallgrind runs a command under callgrind, and returns what it printed and the calls of the process. Options of
// a recording make it run under braid record as well; then file is the trace.
func underCallgrind(t *testing.T, dir string, env, options []string, words ...string) (o outcome, arcs []arc, file string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "callgrind.out")
	words = append(append(append([]string{"valgrind"}, callgrindOptions...), "--callgrind-out-file="+out), words...)
	if options != nil {
		o, file = recorded(t, dir, env, options, words...)
	} else {
		o = run(t, dir, env, words...)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, o.stdout, o.stderr)
	}
	defer f.Close()
	if arcs, err = readCallgrind(f); err != nil {
		t.Fatalf("reading callgrind's file: %v", err)
	}
	return o, arcs, file
}
