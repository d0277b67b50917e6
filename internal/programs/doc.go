// Package programs holds no code, only tests of braid on programs that nobody here wrote: built unmodified from their
// Debian sources with stubs, by gcc and by clang, they must behave as they do without, recorded or not, and what is
// recorded must be what they did.
//
// The judge of the second is callgrind. It runs a program on a simulated processor, stubs and all, so that braid and
// callgrind see the very same run, and their counts must be equal: of each function's calls, and of each pair of
// caller and callee. Both are compared by address within the file, since names need not be unique.
//
// Slow programs are built only if BRAID_TEST_PROGRAMS=all is in the environment (make test-programs).
package programs
