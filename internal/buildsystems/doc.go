// Package buildsystems holds no code, only tests of braid cc within build systems: each builds a small project
// (testdata/pantry: C, C++, a static and a shared library) from scratch, runs what was built, records it, and counts the
// calls in the trace. docs/cc.md shows the same commands.
package buildsystems
