// Package stub inserts trace points into a compiler's assembly output: one at each function's entry, one before each
// return and each tail call, and one behind each call that can return a second time (setjmp).
//
// Insertion happens after the compiler has finished, so that no optimisation can move, merge or drop a stub, and the
// stub is never called: it is a handful of instructions in place. The price is that the compiler does not know of
// it, so a stub may only touch what no code around it can hold a value in. For the amd64 psABI that is:
//
//	place          registers used      kept meanwhile                       argued by
//	entry          r10, r11, rax, rdx  rdx, rax if live: red zone; also r10 nothing of the function has run
//	return         r8 to r11, rax, rdx rax in r8, rdx in r9                 only rax, rdx, xmm0-1, st0-1 carry results
//	tail call      r10, r11, rax, rdx  rax, rdx: red zone; also r10, r11    the frame is gone, arguments are live
//	second return  rcx, r8 to r11,     rax in r8, rdx in r9                 a call has just clobbered the rest
//	               rax, rdx
//
// At entry and before a tail call, r10 is kept if it can hold a static chain, and r11 if the jump goes through it.
//
// Flags are dead at all four. The red zone (128 bytes below rsp) is free at entry, and at a return or a tail call the
// frame has been given back. gcc must run with -fno-ipa-ra, or a caller might rely on a callee leaving a call-clobbered
// register alone. rsi and rdi are never used, so functions of the Microsoft ABI survive too.
//
// In pseudocode, for every processor:
//
//	t = this thread's control block            (TLS; at first a dummy)
//	c = t.cursor
//	if c & 7 == 0: done                        (off)
//	if c & 7 == 6: call the slow path, again   (register this thread)
//	repeat
//	    now = counter
//	    next = (c + 8) & t.mask                (wraps the ring; clears bit 2 when a stop is asked for)
//	until t.cursor goes from c to next         (against this thread's own signal handlers only: no lock prefix)
//	[c-4] = now<<32 | method                   (0 for an exit)
//	t.done = c
//
// The cursor carries bit 2 while tracing is on, so that "on", "where" and "stopped, and exactly here" are one word
// that only its thread writes while it is on. See docs/protocol.md.
package stub
