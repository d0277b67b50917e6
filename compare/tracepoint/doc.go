// Package tracepoint measures what one trace point costs, against a bare read of the counter in the same place.
//
// One C program with an empty method is compiled once; its assembly is then made into variants that differ in nothing
// but what stands at the method's entry and return: nothing, a bare counter read, a stub. The variants run interleaved
// in one process each, pinned to one CPU, in many short rounds; the figures are medians over rounds with the spread of
// the middle half. The cost of a trace point is the difference to "nothing", halved (an entry and a return).
package tracepoint
