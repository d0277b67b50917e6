// Package analysis says what made a moment slow: which method, and what the kernel did to its thread meanwhile.
//
// It goes through a trace twice. The first pass builds each method's normal behaviour and finds the moment, which is one
// call; the second one builds the tree of calls within it, and what the other calls of its method do. A walker makes
// both passes: it sweeps over the ends of a thread's calls and over its states at the same time.
//
// Memory is bounded by the number of methods, by one ring being decoded, and by limits on the tree of calls; not by the
// number of calls. Quantiles come from a Sketch and are off by at most SketchError.
package analysis
