// Package trigger decides when a flight recording is written out.
//
// Three things are kept apart:
//
//   - A [Config] is what a file says ([Parse], [ReadFile]): programs, output, and rules. It does not change.
//   - [Config.Needs] and [Config.System] say what has to be watched so that the rules can be decided: limits for the
//     kernel, methods, pressure, temperatures. Whoever watches reports an [Observation] where a limit was passed.
//   - An [Engine] takes observations and the time, and says which rules fire. It reads no clock and starts nothing, so
//     that the same observations always give the same result.
//
// All times are CLOCK_BOOTTIME in ns.
package trigger
