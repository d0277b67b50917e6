// Package source watches the system for triggers: pressure (PSI), temperatures, caps of processors' frequencies. Each
// watcher runs in the caller's goroutine until its context ends, and hands observations to a function that it calls from
// there.
package source
