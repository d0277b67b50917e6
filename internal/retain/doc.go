// Package retain decides which traces `braid watch` keeps, and puts them where they belong.
//
// The folder of traces:
//
//	DIR/                 0711, of the daemon's user (0700 if that is not root)
//	DIR/.tmp/            0700, of the daemon's user: traces being written, and being removed
//	DIR/consent          consent for users that it names
//	DIR/UID/             0700, of the target's user
//	DIR/UID/consent      that user's own consent
//	DIR/UID/NAME/        0700, one trace: NAME is TIME_PROGRAM_TRIGGER
//	DIR/UID/NAME/NAME.json   0600, what it is about (Entry) and its summary
//	DIR/UID/NAME/NAME.braid  0600, the trace, unless only summaries are kept
//
// Invariants:
//
//  1. A trace appears, and goes, by one rename of its folder; otherwise a crash would leave a half. It is complete on the
//     disk (fsync) before it appears.
//  2. All writing is done below .tmp, where nobody but the daemon can put a symbolic link; otherwise a user could have a
//     daemon of root write elsewhere. Nothing in a user's folder is opened by a path that the user could redirect.
//  3. What lies under DIR is the only state: Open makes the index from it. Otherwise index and files could disagree.
//  4. Room is made before a trace appears, never after; otherwise the limits would be passed for a moment, or for good
//     after a crash.
//  5. Only what the index knows is ever removed; otherwise a file that a user put there would be lost.
package retain
