package steptest

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// target is a function of targets.c or thrown.cc.
type target struct {
	name string
	tree string // its records
	flat string // without tail calls and inlining, as at -O0, if that differs
	// What holds the result: a is rax, d is rdx, x is xmm0, s is st0.
	result string
	gcc    bool // gcc's extensions
	thrown bool // exceptions
}

var targets = []target{
	{name: "plain", tree: "plain -", result: "a"},
	{name: "many", tree: "many -", result: "a"},
	{name: "variadic", tree: "variadic -", result: "a"},
	{name: "pair", tree: "pair -", result: "ad"},
	{name: "real", tree: "real -", result: "x"},
	{name: "wide", tree: "wide -", result: "s"},
	{name: "tail_many", tree: "tail_many - pair -", flat: "tail_many pair - -", result: "ad"},
	{name: "tail_indirect", tree: "tail_indirect - many -", flat: "tail_indirect many - -", result: "a"},
	{name: "tail_maybe", tree: "tail_maybe - plain -", flat: "tail_maybe plain - -", result: "a"},
	{name: "twice", tree: "twice ~twice leap ~twice -", result: "a"},
	{name: "recursive", tree: "recursive - fib fib fib - fib - - fib - -", flat: "recursive fib fib fib - fib - - fib - - -", result: "a"},
	{name: "nesting", tree: "nesting nested - nested - -", result: "a", gcc: true},
	{name: "microsoft", tree: "microsoft -", result: "a"},
	{name: "frames", tree: "frames -", result: "a"},
	{name: "catcher", tree: "catcher cleaning thrower ~cleaning ~catcher -",
		flat: "catcher cleaning thrower ~cleaning _ZN7cleanerD2Ev - ~catcher -", result: "a", thrown: true},
	{name: "passer", tree: "passer again cleaning thrower ~cleaning ~again ~again ~passer -",
		flat: "passer again cleaning thrower ~cleaning _ZN7cleanerD2Ev - ~again ~again ~passer -", result: "a", thrown: true},
}

// compilers are what the program is built with.
var compilers = []struct {
	name, cc, plus, level string
	some                  bool // only some of the modes, and every third instruction: the stubs are the same
}{
	{"gcc-O2", "gcc", "g++", "-O2", false},
	{"gcc-O0", "gcc", "g++", "-O0", true},
	{"clang-O2", "clang", "clang++", "-O2", true},
}

const (
	onStack = 0x08000000 // SA_ONSTACK
	noDefer = 0x40000000 // SA_NODEFER
)

// modes are all ways of being interrupted.
var modes = []mode{
	{name: "untraced"},
	{name: "traced", handler: handlerTraced},
	{name: "traced, first call", handler: handlerTraced, cold: true, once: true},
	{name: "traced, new thread", handler: handlerTraced, cold: true, thread: true},
	{name: "own stack", handler: handlerTraced, flags: onStack, once: true},
	{name: "nested", handler: handlerTraced, flags: noDefer, again: true, once: true},
	{name: "nested on own stack", handler: handlerTraced, flags: noDefer | onStack, again: true},
	{name: "wrapping", handler: handlerTraced, wrap: 510},
	{name: "wrapping later", handler: handlerTraced, wrap: 508, once: true},
	{name: "stop", handler: handlerTraced, stop: true},
	{name: "stop without a signal", silent: true, stop: true, once: true},
	{name: "jump", handler: handlerJump, land: true},
	{name: "traced jump", handler: handlerTracedJump, land: true, once: true},
	{name: "traced jump from own stack", handler: handlerTracedJump, flags: onStack, land: true, once: true},
	{name: "exit", handler: handlerExit, thread: true},
	{name: "traced exit", handler: handlerTracedExit, thread: true},
}

// calls are the records of the handlers that have trace points.
var calls = map[int64]string{
	handlerTraced: "on_signal inner - inner - -", handlerTracedJump: "on_traced_jump inner -", handlerTracedExit: "on_traced_exit inner -",
}

// TestSignalAtEachInstruction goes through calls of functions with trace points of all kinds. For each instruction there
// is a pass with a signal there, in each mode. The result must be what the program without stubs computes, and the records
// those of the call, with the handler's at one place, which moves on from pass to pass.
func TestSignalAtEachInstruction(t *testing.T) {
	for _, c := range compilers {
		t.Run(c.name, func(t *testing.T) {
			stubs, bare := build(t, true, c.cc, c.plus, c.level), build(t, false, c.cc, c.plus, c.level)
			for _, m := range modes {
				if m.once && c.some {
					continue
				}
				t.Run(m.name, func(t *testing.T) {
					b := newBench(t, stubs)
					plain := results(t, bare)
					passes := 0
					for _, tg := range targets {
						if tg.gcc && c.cc != "gcc" || tg.thrown && m.handler >= handlerExit {
							continue // catch (...) without a rethrow ends a program whose thread is being ended
						}
						want := tg.tree
						if tg.flat != "" && c.level == "-O0" {
							want = tg.flat
						}
						passes += b.sweep(tg, m, want, plain[tg.name], c.some)
						if t.Failed() {
							return
						}
					}
					t.Logf("%d passes", passes)
				})
			}
		})
	}
}

// results calls each function in a program without stubs.
func results(t *testing.T, bin string) map[string]outcome {
	t.Helper()
	b := newBench(t, bin)
	all := map[string]outcome{}
	for _, tg := range targets {
		if b.symbols[tg.name] != 0 {
			all[tg.name] = b.pass(tg.name, mode{}, nil, 0)
		}
	}
	return all
}

// sweep makes the passes of one function in one mode, and returns their number. The last one is always made.
func (b *bench) sweep(tg target, m mode, tree string, plain outcome, some bool) (n int) {
	b.t.Helper()
	b.pass(tg.name, m, nil, 0) // library functions are found, and threads have had rings
	whole := b.pass(tg.name, m, nil, 0)
	path := whole.path
	b.compare(tg, plain, whole)
	inside, ok := m.inside(whole.records)
	if !ok || text(inside) != tree || whole.zeros+whole.dropped != 0 {
		b.t.Errorf("%s: recorded %q, want %q", tg.name, text(whole.records), tree)
		return 0
	}
	place := 0                 // how many of the call's records there were when the signal came
	every := 1 + len(path)/400 // where a thread registers itself, and only there, the path is long
	if some {
		every += 2
	}
	for i := 0; i < len(path) && !b.t.Failed(); i += every {
		if i+every >= len(path) {
			i = len(path) - 1
		}
		n++
		o := b.pass(tg.name, m, path, i)
		last := i == len(path)-1
		at, err := m.check(o, inside, last)
		if err == nil && (at < place || i == 0 && at != 0 || last && at != len(inside)) {
			err = fmt.Errorf("the signal came before record %d, that of the pass before came before record %d", at, place)
		}
		if err != nil {
			b.t.Errorf("%s, %s, before instruction %d, at %s: %v\nin %q, %d unwritten before %d, %d dropped", tg.name, m.name, i, b.place(path[i]), err,
				text(o.records), o.zeros, o.hole, o.dropped)
			for i, s := range o.slots[max(0, len(o.slots)-30):] {
				b.t.Logf("%3d %016x", i, s)
			}
		}
		place = at
		if !m.land && m.handler < handlerExit {
			b.compare(tg, whole, o)
		}
	}
	return n
}

// compare checks what a call left in registers.
func (b *bench) compare(tg target, want, got outcome) {
	b.t.Helper()
	kept := func(r *unix.PtraceRegs) [7]uint64 {
		return [7]uint64{r.Rbx, r.Rbp, r.R12, r.R13, r.R14, r.R15, r.Rsp - want.regs.Rsp}
	}
	w, g := kept(&want.regs), kept(&got.regs)
	g[6] = got.regs.Rsp - got.sp - (want.regs.Rsp - want.sp)
	if w != g {
		b.t.Errorf("%s: rbx, rbp, r12 to r15, rsp are %x, want %x", tg.name, g, w)
	}
	has := func(r string) bool { return strings.Contains(tg.result, r) }
	if has("a") && got.regs.Rax != want.regs.Rax || has("d") && got.regs.Rdx != want.regs.Rdx ||
		has("s") && got.floats[0] != want.floats[0] || has("x") && got.floats[1] != want.floats[1] {
		b.t.Errorf("%s: rax %x, rdx %x, st0 and xmm0 %x, want %x, %x, %x", tg.name, got.regs.Rax, got.regs.Rdx, got.floats[:2],
			want.regs.Rax, want.regs.Rdx, want.floats[:2])
	}
}

// inside takes off the records that frame the call.
func (m mode) inside(all []record) (call []record, ok bool) {
	call = all
	if m.land {
		if n := len(call); n < 4 || text(call[:2]) != "landing ~landing" || text(call[n-2:]) != "- closing" {
			return nil, false
		}
		return call[2 : len(call)-2], true
	}
	if n := len(call); n > 0 && call[n-1].what == "closing" {
		return call[:n-1], true
	}
	return nil, false
}

// check compares a pass with the records of the call without a signal, and returns before which of them it came.
func (m mode) check(o outcome, whole []record, last bool) (at int, err error) {
	switch {
	case m.stop:
		return m.checkStop(o, whole)
	case m.land:
		return m.checkLeft(o, whole, "landing ~landing", "~landing - closing")
	case m.handler >= handlerExit:
		return m.checkLeft(o, whole, "", "")
	}
	if o.zeros+o.dropped != 0 {
		return 0, fmt.Errorf("slots are unwritten")
	}
	rest, ok := m.inside(o.records)
	if !ok {
		return 0, fmt.Errorf("the records of the pass's frame are missing")
	}
	want := calls[m.handler]
	var call []record
	at = -1
	if want != "" {
		rest, call, at = cut(rest, "on_signal")
	}
	if m.again { // within the first one's call, or before that has begun
		inner, second, place := cut(call[min(1, len(call)):], "on_signal")
		if call = append(call[:min(1, len(call)):1], inner...); place < 0 {
			rest, second, place = cut(rest, "on_signal")
			if place != at {
				return 0, fmt.Errorf("the second signal's records are elsewhere")
			}
		}
		if text(second) != want {
			return 0, fmt.Errorf("the second signal's records are %q, want %q", text(second), want)
		}
	}
	if text(call) != want {
		return 0, fmt.Errorf("the handler's records are %q, want %q", text(call), want)
	}
	if text(rest) != text(whole) {
		return 0, fmt.Errorf("the rest is %q, want %q", text(rest), text(whole))
	}
	if at < 0 { // the handler leaves no records
		if at = 0; last {
			at = len(whole)
		}
	}
	return at, nil
}

// checkLeft checks a pass that a handler has left for good. The record of the stub that was interrupted may be missing.
func (m mode) checkLeft(o outcome, whole []record, before, behind string) (int, error) {
	all := text(o.records)
	for at := 0; at <= len(whole); at++ {
		want := strings.Join(strings.Fields(before+" "+text(whole[:at])+" "+calls[m.handler]+" "+behind), " ")
		if all != want {
			continue
		}
		if o.zeros > 2 || o.dropped > 2 || o.zeros > 0 && o.hole != len(strings.Fields(before))+at {
			return 0, fmt.Errorf("%d slots are unwritten and %d dropped", o.zeros, o.dropped)
		}
		return at, nil
	}
	return 0, fmt.Errorf("want the beginning of %q, %q, %q", text(whole), calls[m.handler], behind)
}

// checkStop checks a pass in which the recorder had asked for a stop before the signal. One more record answers: the
// handler's first, or without a handler the next one.
func (m mode) checkStop(o outcome, whole []record) (int, error) {
	all := strings.Fields(text(whole) + " closing")
	for at := 0; at <= len(whole); at++ {
		answer := all[at]
		if !m.silent {
			answer, _, _ = strings.Cut(calls[m.handler], " ")
		}
		want := strings.TrimSpace(strings.Join(all[:at], " ") + " " + answer)
		// The recorder takes the handler's record for unwritten if the interrupted stub's is the one that was written last.
		if got := text(o.records); o.zeros == 0 && (got == want && o.dropped == 0 || !m.silent && got == strings.Join(all[:at], " ") && o.dropped == 1) {
			return at, nil
		}
	}
	return 0, fmt.Errorf("want the beginning of %q, and an answer", text(whole))
}
