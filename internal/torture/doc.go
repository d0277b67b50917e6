// Package torture runs other people's compiler test suites with stubs.
//
// A Case is one program of a suite, one compiler and one level of optimisation. Judge compiles it with braid cc, runs it
// with tracing off, runs it again with every thread recording, decodes what was recorded, and compares exit status and
// standard output. What the program does without stubs is looked at only where it can make a difference: a self-checking
// program that ends with 0 and prints nothing has told enough. If anything is wrong, the program is built and run
// without stubs, and is a failure of ours only if it passes then.
//
// What was recorded must be whole: no damaged record, no resumed record or exit without its entry, each method a function
// of the program. And it must fit how the program ended, which a small object linked beside it tells (testdata/end.c):
// if main returned, nothing is open; if exit was called, the function that called it is the innermost that is open.
//
// The suites come from Debian's packages, and none of their code is in this repository: see Suites.
package torture
