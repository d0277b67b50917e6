// Package live decides conditions on methods while a program runs: it follows the rings of its threads, keeps their open
// calls, and reports what passes a limit.
//
// A [Process] is polled. At each poll it takes the slots that threads have written since, decodes them, and keeps each
// thread's stack of open calls. All patterns of methods are states of one automaton: a call's state is one word, made of
// its caller's by a shift and a mask that depends on the method (Shift-And). So an entry costs a few instructions, however
// many conditions there are, and an exit one test unless the call is of interest.
//
// Where slots were skipped because there were more than the budget allows, the open calls are not known any more: the
// stack begins empty, and calls that were open then are not measured.
package live
