// Package watch is the daemon behind `braid watch`. It finds the programs that its configuration names, as they start and
// end, keeps the rings of their threads and the kernel events of the last seconds, and writes both out when a trigger
// fires.
//
// One goroutine (Run) owns areas, threads, targets and the trigger engine. Others read kernel events, watch the system's
// pressure and temperature, serve the socket and the metrics, and write files. They pass what they have to that one
// goroutine. A flush copies rings on it, which takes milliseconds, and is written elsewhere.
//
// Nothing that the daemon knows has to survive it. A program that it watched goes on recording into its rings; a daemon
// that is started anew takes them over (package control), and the traces that are kept are found in their folder
// (package retain).
package watch
