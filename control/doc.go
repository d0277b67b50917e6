// Package control starts, stops, drains and watches the threads of traced programs from outside, through memory that it
// shares with them. It uses no signal, no ptrace and never stops a thread; the traced thread executes no lock, no atomic
// read-modify-write and no fence on its hot path.
//
// Two words of each thread's control block carry the protocol:
//
//	cursor   address of the next slot, with a tag in its low bits: on (1), attend (3), off (0)
//	mask     ~ring size; the trace point ands it into the advanced cursor, which wraps the ring
//
// The trace point is: load cursor; leave if off; write the record; cursor = (cursor+8) & mask; store cursor.
//
// To stop a thread, this package clears bit 0 of mask. The next trace point writes its record, advances, and by the same
// "and" loses the on bit: the stored cursor is off and says exactly where the thread ended. So stopping costs the hot
// path no instruction.
//
// Invariants, with what would happen otherwise:
//
//	C1  While a cursor is on, only its thread stores it. The recorder stores a cursor only after it has read it as off.
//	    Otherwise a store of the thread that is under way would bring the old value back and the stop or start be lost.
//	C2  A record is written before the cursor that covers it is stored. Otherwise the recorder could read a slot that is
//	    not there yet. (amd64 keeps stores in order; a weakly ordered processor needs a release store.)
//	C3  mask is written before the cursor that starts a thread. Otherwise the thread could advance by an old mask.
//	C4  After the stop bit is cleared, a thread that has not answered can publish at most two more records: one whose
//	    mask was loaded before, and the one that answers. A record has at most two slots. So the four slots behind the
//	    cursor are the only ones that can change; in a wrapped ring they hold the four oldest, which are dropped.
//	    Otherwise a copy could hold torn records.
//	C5  A request to stop is never taken back before it was answered, unless the thread is to go on in the same ring.
//	    Otherwise the answer to the first request could be taken for one to a second.
//	C6  A ring is given to another thread only after its thread is gone (no /proc/PID/task/TID). Otherwise an unanswered
//	    thread could write into it.
//	C7  Nothing read from a program is trusted: offsets, sizes and cursors are checked against the memory file before
//	    use. The file is sealed against shrinking. Otherwise a program could make its recorder read out of bounds.
package control
