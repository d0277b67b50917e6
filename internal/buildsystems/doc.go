// Package buildsystems holds no code, only tests of braid cc within build systems: each builds a small project
// (testdata/pantry: C, C++, a static and a shared library) from scratch, runs what was built, records it, and counts the
// calls in the trace. docs/cc.md shows the same commands. The same is done with compiler options that change much of a
// program (sanitizers, coverage, profiling, link time optimisation), and with gcc's other languages.
package buildsystems
