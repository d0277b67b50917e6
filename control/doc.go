// Package control starts, stops, drains and watches the threads of traced programs from outside, through memory that it
// shares with them. It uses no signal, no ptrace and never stops a thread; the traced thread executes no lock, no fence,
// and no read-modify-write that other processors take part in.
//
// Three words of each thread's control block carry the protocol:
//
//	cursor   address of the next slot, with a tag in its low bits: on (7), attend (3), off (0)
//	mask     ~ring size; the trace point ands it into the advanced cursor, which wraps the ring
//	done     address of the last slot that was written
//
// The trace point is: load cursor; leave if off; read the counter; next = (cursor+8) & mask; move cursor from what was
// loaded to next, or begin again; write the record; store done. The move is one instruction to the thread's own signal
// handlers (cmpxchg without a lock prefix on amd64) and a plain store to everyone else.
//
// To stop a thread, this package clears bits 0 to 2 of mask. The next trace point reserves its slot, and by the same
// "and" loses the tag: the stored cursor is off and says exactly where the thread ends. To have it go on in another ring,
// this package names that ring in the block and clears bit 2 alone: the stored cursor attends, and the trace point after
// it takes the slow path into the next ring. So neither costs the hot path an instruction.
//
// Invariants, with what would happen otherwise:
//
//	C1  While a cursor is on, only its thread stores it. The recorder stores a cursor only after it has read it as off, or
//	    turns one that attends off by compare-and-swap. Otherwise a store of the thread that is under way would bring the
//	    old value back and the stop or start be lost.
//	C2  A slot is reserved (cursor) before it is written, and done is stored after it is written. So what is behind done
//	    is written, and between done and cursor is at most one record that is not, unless a signal handler has recorded
//	    within a stub. The recorder waits a moment for done to catch up; a record that a killed thread never wrote is
//	    left out. Otherwise a copy could hold what the slot held a lap before.
//	C3  mask is written before the cursor that starts a thread. Otherwise the thread could advance by an old mask.
//	C4  After bits of the mask are cleared, a thread that has not answered can publish at most two more records: one whose
//	    mask was loaded before, and the one that answers. A record has at most two slots. So the four slots behind the
//	    cursor are the only ones that can change; in a wrapped ring they hold the four oldest, which are dropped.
//	    Otherwise a copy could hold torn records.
//	C5  A request to stop is never taken back before it was answered, unless the thread is to go on in the same ring.
//	    Otherwise the answer to the first request could be taken for one to a second.
//	C6  A ring is given to another thread only after its thread is gone (no /proc/PID/task/TID). Otherwise an unanswered
//	    thread could write into it, or a stub that a signal handler interrupted could, long after a swap.
//	C7  Nothing read from a program is trusted: offsets, sizes and cursors are checked against its area before use, and
//	    that against the memory file and the next area. The file is sealed against shrinking. Otherwise a program could
//	    make its recorder read, write or take memory out of bounds.
//	C8  Stores of the program are plain. Where processors do not keep them in order, the recorder has every processor pass
//	    a barrier (membarrier) after it has seen where a thread is and before it reads the ring; StopAll and SwapAll once
//	    for all threads. Otherwise the cursor or done could be seen before the record.
//	C9  next_* are written before bit 2 of the mask is cleared, and nothing more is asked until the ring that was left is
//	    released. Otherwise the thread could go on in half a ring, or in the one that is being read.
//	C10 Of a ring that was left, done says nothing for sure: the thread goes on with another ring, and a stub that a signal
//	    handler interrupted stores its own done when it comes back. What it has not written is told by the slot's content.
//	    Otherwise a record that is only late would be left out, or one of a lap before be taken for it.
//	C11 A stop overtakes a swap. The recorder clears bits of the mask and moves the cursor by atomic read-modify-writes; so
//	    does the slow path, and leaves if either has changed. Otherwise it could bring back the bits that were cleared.
//	C12 A slot that was copied while its thread was on is kept only if the thread had not come round to it when the copy was
//	    done. That it has not come round more than once is told by the newest slot, which is still there. Otherwise a copy
//	    could hold records newer than those behind them.
//	C13 Where stores are not kept in order, Tail returns what a look of at least 2 ms before has seen. Otherwise it would
//	    return slots that are not written, as seen from here.
//	C14 All that matters of a swap is in the control block. Otherwise a recorder that is killed would leave threads behind
//	    that no other can take over.
//	C15 A block is released and started by a thread's handle only while it has that thread (state, uses). Otherwise a
//	    recorder that is late could clear, stop or free what is the next thread's.
package control
