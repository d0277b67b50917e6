// Package capture keeps what a trace file needs of the processes that are recorded, and writes it: descriptions, modules
// and the names of methods, rings. Recordings and flushes use it alike.
package capture
