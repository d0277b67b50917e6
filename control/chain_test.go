package control

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"braid/inline"
)

// chain checks that the records of one thread of testdata/swaps.c follow each other without a gap, over segments.
type chain struct {
	names  names
	synced bool   // a block's beginning was seen
	inside int    // calls that are open in signal handlers
	open   bool   // a call of the counting is open
	digits int    // of the present block
	value  uint32 // of its digits
	last   int64  // the block before, -1 if none
	blocks int
	ended  bool // body has returned
}

func newChain(names names) *chain { return &chain{names: names, last: -1} }

// follow checks the next segment. One that is not complete has lost its oldest records, and the count begins anew.
func (c *chain) follow(s *Segment) error {
	if !s.Complete {
		*c = *newChain(c.names)
	}
	for i, v := range s.Slots {
		if err := c.record(v); err != nil {
			return fmt.Errorf("slot %d of %d (%#x, complete %v): %w", i, len(s.Slots), v, s.Complete, err)
		}
	}
	return nil
}

func (c *chain) record(v uint64) error {
	if v == 0 {
		return fmt.Errorf("a slot that was never written")
	}
	name := "exit"
	if uint32(v) != inline.WordExit {
		if name = c.names.of(uint32(v)); name == "" {
			return fmt.Errorf("no method at %#x", uint32(v))
		}
	}
	switch {
	case name == "handler" || name == "inner":
		c.inside++
	case name == "exit" && c.inside > 0:
		c.inside--
	case c.inside > 0:
		return fmt.Errorf("a call of %s in a signal handler", name)
	case name == "body":
		return nil
	case name == "exit" && c.open:
		c.open = false
	case name == "exit":
		if c.synced && (c.digits != 8 || c.ended) {
			return fmt.Errorf("an exit without an entry")
		}
		c.ended = c.synced
	case c.open && c.synced:
		return fmt.Errorf("%s within a call", name)
	case name == "mark":
		return c.block()
	default:
		c.open = true
		c.value |= uint32(name[1]-'0') << (3 * c.digits)
		if c.digits++; c.synced && c.digits > 8 {
			return fmt.Errorf("a ninth digit")
		}
	}
	return nil
}

func (c *chain) block() error {
	if c.synced {
		switch {
		case c.digits != 8:
			return fmt.Errorf("block of %d digits behind block %d", c.digits, c.last)
		case c.last >= 0 && c.value != uint32(c.last+1)&(1<<24-1):
			return fmt.Errorf("block %d behind block %d", c.value, c.last)
		}
		c.last = int64(c.value)
		c.blocks++
	}
	c.synced, c.open, c.digits, c.value = true, true, 0, 0
	return nil
}

// names are functions that lie close together.
type names struct {
	low  uint32
	name []string // of the function at low + index, or ""
}

func (n *names) of(word uint32) string {
	if i := word - n.low; i < uint32(len(n.name)) {
		return n.name[i]
	}
	return ""
}

// methods reads the functions' addresses out of a program that is not position-independent.
func methods(t *testing.T, bin string) names {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint32]string{}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			switch s.Name {
			case "mark", "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "inner", "handler", "body":
				v := uint32(s.Value)
				if f.Machine == elf.EM_ARM {
					v &^= 1 // says that it is T32 code; records have the address alone
				}
				at[v] = s.Name
			}
		}
	}
	all := slices.Sorted(maps.Keys(at))
	if len(all) != 12 || all[11]-all[0] > 1<<16 {
		t.Fatalf("functions in %s: %#x", bin, all)
	}
	n := names{low: all[0], name: make([]string, all[11]-all[0]+1)}
	for a, name := range at {
		n.name[a-n.low] = name
	}
	return n
}

// program is one that runs and reads what the test writes.
type program struct {
	*exec.Cmd
	in    *os.File
	out   *os.File
	names names
}

// run starts testdata/swaps.c and returns once it is ready. args are its own.
func run(t *testing.T, env string, args ...any) *program {
	t.Helper()
	bin := build(t, "swaps", "-no-pie")
	p := start(t, bin, env, strings.Fields(fmt.Sprintln(args...))...)
	p.names = methods(t, bin)
	return p
}

// start starts a program and returns once it is ready.
func start(t *testing.T, bin, env string, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(bin, args...)}
	if env != "" {
		p.Env = append(os.Environ(), env)
	}
	var err error
	var inR, outW *os.File
	if inR, p.in, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, outW, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	p.Stdin, p.Stdout = inR, outW
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	t.Cleanup(p.end)
	p.wait(t)
	return p
}

// wait waits for a word from the program.
func (p *program) wait(t *testing.T) {
	t.Helper()
	if _, err := p.out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
}

func (p *program) end() {
	p.Process.Kill()
	p.Wait()
	p.in.Close()
	p.out.Close()
}

// attach maps the program's area and waits until so many threads have registered.
func attach(t *testing.T, p *program, policy uint32, ring uint64, threads int) *Area {
	t.Helper()
	areas, err := Attach(p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	a := areas[0]
	t.Cleanup(a.Close)
	a.Arm(policy, ring)
	until(t, strconv.Itoa(threads)+" threads are registered", func() bool { return len(a.Threads()) >= threads })
	return a
}

// until waits for something that must come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in a minute it did not come to pass that %s", what)
		}
	}
}
