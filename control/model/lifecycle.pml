/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one control block: two threads that want it one after the other, a recorder that starts, stops and releases
 * them, is killed, and another recorder. docs/model.md maps each step to the code.
 *
 * Checked:
 *   - no lost stop: once a thread was seen stopped, and once StopAll was done, none reserves a slot before it is started again;
 *   - no lost start: a thread that was started records at its next trace point but one, unless it was stopped meanwhile;
 *   - a block has one owner: it is claimed, and freed, only when no living thread holds it;
 *   - a ring is never given away while its thread may write, and never cleared for a thread that no longer has it;
 *   - what is collected are the records of the thread that the handle names, since it was turned on last, and all of them;
 *   - a thread never goes on without a ring;
 *   - threads and recorders reach their ends: no step waits for another.
 *
 * A thread's plain and release stores go through a buffer: one in order (-DTSO), or in any order but for stores to the same place,
 * and a release store after all before it. Compare-and-swaps act on memory, after what was stored before.
 *
 *   -DAPI    threads also turn themselves on and off (inline/runtime/src/api.c)
 *   -DNONE   the recorder's policy is that no thread starts by itself
 *   -DKILL   the program is killed at any point
 *   -DDEATH  the recorder is killed at any point, and another takes over
 *   -DONE    there is one thread
 *
 * Broken on purpose: -DSTORE_ON (a thread turns itself on by a store, not a compare-and-swap), -DNO_RECHECK (a claim does not look
 * whether the area is still armed), -DNO_FENCE (it looks without a barrier), -DFREE_EARLY (a release does not look whether the
 * thread is gone), -DCLEAR_ONCE (nor clears the rings again once it is), -DMASK_FIRST (a thread that turns itself on looks
 * at the mask before it says so in the cursor).
 * Not found within the bounds so far: -DSTART_ONCE (start is not written again), -DFREE_OWN (a thread whose ring is empty frees its
 * block itself), -DNO_USES (nobody looks how often the block was used), -DNO_OWNER (nor behind a copy), -DWANT_TWICE (want
 * is read once more), -DNO_AGAIN (a start that has overtaken the answer to a stop is not looked for).
 */
#define FREE 0
#define CLAIMING 1
#define READY 2
#define EXITING 3

#define ON 7
#define ATTEND 3
#define OFF 0
#define TAG(c) ((c) & 7)
#define POS(c) ((c) >> 3) /* 0: no address; 1: the ring's beginning */
#define AT(p) ((p) << 3)

#ifndef POINTS
#define POINTS 3 /* trace points of a thread before its exit hook */
#endif
#ifndef OPS
#define OPS 3 /* what a recorder does before the end */
#endif
#define SLOTS (POINTS + 3)

/* The block, and of the area's header what matters. A mask has its low bits (7) or has lost them (0). */
byte cursor, mask, want, state, uses, start, tid;
bool ring;
byte armed, dummy;
byte slot[SLOTS];

/* Ghosts. */
byte holds[2];    /* the thread's pointer: 0 a dummy, 1 the block, 2 parked */
bool gone[2], killed, dead;
bool stopped[2];  /* seen stopped, and not started again */
bool quiet;       /* StopAll is done, and nothing was armed or started since */
bool must[2];     /* started, and nothing came between */
byte period[2];   /* how often it was turned on: what it writes into its slots, with its number */
bool ison[2];     /* as the thread sees it */
byte api[2];      /* 1: it has asked to be on, 2: off */
bool busy[2];     /* with its claim, at whose end it may still turn itself off */
bool open[2];     /* between reservation and write */
bool released;    /* and given back since the thread was turned on */
bool lossy;       /* cleared while the thread turned itself on: what it had written is lost */
byte owner;       /* of the block: thread + 1, or 0 */
#define MARK(i) (((period[i] & 15) << 1) | (i) | 32)

#define CURSOR 0
#define STATE 1
#define START 2
#define WANT 3
#define SLOT 4
#define ROOM 4
chan q[2] = [ROOM] of { byte, byte, byte };

hidden byte k_;
#define put(l, p, v) q[i] ! l, p, v
#define DRAINED(i) (len(q[i]) == 0)
#ifdef TSO
#define RELEASED(i) true
#else
#define RELEASED(i) DRAINED(i)
#endif

/* A thread's stores become visible. */
proctype Buffer(byte i) {
	byte l, p, v;
end:	do
#ifdef TSO
	:: atomic { len(q[i]) > 0 -> q[i] ? l, p, v;
#else
	:: atomic {
		if
		:: q[i] ?? CURSOR, p, v -> l = CURSOR
		:: q[i] ?? STATE, p, v -> l = STATE
		:: q[i] ?? START, p, v -> l = START
		:: q[i] ?? WANT, p, v -> l = WANT
		:: q[i] ?? SLOT, p, v -> l = SLOT
		fi;
#endif
		if
		:: l == CURSOR -> cursor = v
		:: l == STATE -> state = v
		:: l == START -> start = v
		:: l == WANT -> want = v
		:: l == SLOT -> slot[p] = v
		fi;
		l = 0; p = 0; v = 0 }
	od
}
/* A thread loads its own cursor: its newest store, if that is not visible yet. */
inline own_cursor() {
	if
	:: q[i] ?? [CURSOR, _, _] -> c = mine
	:: else -> c = cursor
	fi
}

/* A compare-and-swap of the cursor by its thread. */
inline exchange(from, to) {
	DRAINED(i);
	ok = cursor == from;
	if
	:: ok -> cursor = to; mine = to
	:: else
	fi
}

inline turned_on() {
	assert(ring);
	period[i]++; ison[i] = true; lossy = false; released = false
}

/* __braid_start. c0: the cursor, m: the mask, as seen. */
inline start_thread(c0) {
	atomic { w = want };
	if
	:: atomic { w && api[i] == 2 -> exchange(c0, AT(POS(c0))) }
	:: atomic { else -> if :: w -> ring = true :: else fi };
#ifdef WANT_TWICE
		atomic { w = want };
#endif
		atomic {
			ok = w && m == 7;
			if
			:: ok -> DRAINED(i); ok = mask == m
			:: else
			fi
		};
		if
		:: atomic { !ok -> exchange(c0, AT(POS(c0))) };
#ifndef NO_AGAIN
			if
			:: atomic { ok && TAG(c0) == ATTEND -> m = mask };
				atomic {
					if
					:: m == 7 && want -> exchange(AT(POS(c0)), ATTEND)
					:: else
					fi
				}
			:: atomic { else }
			fi
#endif
		:: atomic { else -> DRAINED(i); start = 1 };
			atomic {
#ifdef STORE_ON
				DRAINED(i); cursor = AT(1) | ON; mine = cursor; ok = true;
#else
				exchange(c0, AT(1) | ON);
#endif
				if
				:: ok -> turned_on();
#ifndef START_ONCE
					put(START, 0, 1)
#endif
				:: else
				fi
			}
		fi
	fi
}

/* __braid_leave */
inline leave() {
	atomic { own_cursor(); ok = TAG(c) == OFF };
	do
	:: atomic { !ok -> exchange(c, AT(POS(c))); if :: ok :: else -> c = cursor; ok = TAG(c) == OFF fi }
	:: atomic { ok -> ison[i] = false; break }
	od
}

/* __braid_claim */
inline claim() {
	atomic {
		
		if
		:: state == FREE ->
			assert(owner == 0); /* one owner */
			state = CLAIMING; owner = i + 1; holds[i] = 1; busy[i] = true
		:: else -> holds[i] = 2
		fi
	};
	if
	:: holds[i] == 1 ->
		atomic { mask = 7; tid = i + 1 };
		atomic { uses++ };
		atomic {
#ifdef NONE
			want = 0;
#else
			want = armed;
#endif
			cursor = OFF; mine = OFF; m = mask
		};
		start_thread(OFF);
		atomic { RELEASED(i); put(STATE, 0, READY) };
#ifndef NO_FENCE
		DRAINED(i);
#endif
#ifndef NO_RECHECK
		if
		:: atomic { !armed -> skip }; leave()
		:: atomic { else }
		fi;
#endif
		busy[i] = false
	:: else
	fi
}

/* A trace point, with the slow path. */
inline point() {
	atomic { due = must[i]; c = 0 };
	do
	:: atomic { holds[i] == 0 -> c = dummy; if :: c == ATTEND && armed :: else -> goto out fi }; claim()
	:: atomic { holds[i] == 2 -> break }
	:: atomic { holds[i] == 1 -> own_cursor() };
		if
		:: atomic { TAG(c) == OFF -> assert(!due || !must[i]); break }
		:: atomic { TAG(c) == ATTEND -> m = mask }; start_thread(ATTEND)
		:: atomic { TAG(c) == ON -> m = mask };
			atomic { /* reserves: a plain store */
				assert(!stopped[i] && !quiet);
				assert(owner == i + 1 && POS(c) != 0);
				mine = AT(POS(c) + 1) | m; open[i] = true; ison[i] = TAG(mine) == ON;
				put(CURSOR, 0, mine)
			};
			atomic { put(SLOT, POS(c), MARK(i)); open[i] = false; break }
		fi
	od;
out:
	atomic { c = 0; m = 0; w = 0; ok = false; due = false }
}

inline api_call() {
	if
	:: atomic { holds[i] == 1 -> api[i] = 2; must[i] = false }; leave()
	:: atomic { holds[i] == 1 -> api[i] = 1; own_cursor(); ok = TAG(c) == OFF && mask == 7 && armed };
		if
		:: atomic { ok -> RELEASED(i); put(WANT, 0, 1) };
#ifdef MASK_FIRST
			atomic { m = mask };
			atomic { exchange(c, c | ATTEND) };
#else
			atomic { exchange(c, c | ATTEND) };
			atomic { m = mask };
#endif
			atomic { c = c | ATTEND;
				if
				:: ok && m == 7 -> exchange(c, ATTEND); c = ATTEND
				:: else
				fi };
			if
			:: atomic { ok && m == 7 -> k_ = 1; do :: k_ < SLOTS -> slot[k_] = 0; k_++ :: else -> k_ = 0; break od }; start_thread(c)
			:: atomic { ok && m != 7 -> skip }; start_thread(c)
			:: atomic { !ok }
			fi
		:: atomic { else }
		fi
	:: skip
	fi;
	atomic { c = 0; m = 0; w = 0; ok = false }
}

proctype Thread(byte i) {
	byte c, m, w, mine, n;
	bool ok, due;
	{
		do
		:: n <= POINTS -> point(); n++;
#ifdef API
			if
			:: n < POINTS -> api_call()
			:: else
			fi
#endif
		:: atomic { n < POINTS -> n = POINTS };
			/* __braid_thread_exit, and one more trace point, in another exit hook */
			if
			:: atomic { holds[i] != 1 -> break }
#ifdef FREE_OWN
			:: atomic { holds[i] == 1 && ring && start != 0 -> RELEASED(i); put(STATE, 0, EXITING) }
			:: atomic { holds[i] == 1 && !(ring && start != 0) -> holds[i] = 2; owner = 0; RELEASED(i); put(STATE, 0, FREE); break }
#else
			:: atomic { holds[i] == 1 && ring -> RELEASED(i); put(STATE, 0, EXITING) }
			:: atomic { holds[i] == 1 && !ring -> holds[i] = 2; owner = 0; RELEASED(i); put(STATE, 0, FREE); break }
#endif
			fi
		:: n > POINTS -> break
		od
	} unless { killed };
	atomic { DRAINED(i); gone[i] = true }
}

/* ---- the recorder ---- */

/* Area.Threads: a handle of the block's thread, if it is ready. */
inline list() {
	atomic { ok = state == READY || state == EXITING };
	if
	:: atomic { ok && uses != h -> h = uses; stopping = false };
		ht = tid
	:: atomic { ok && uses == h }
	:: atomic { !ok -> h = 0 }
	fi
}

/* Thread.has */
inline has() {
	atomic { ok = state == READY || state == EXITING };
#ifndef NO_USES
	atomic { ok = ok && uses == h }
#endif
}

/* Thread.forget. What follows is done only if ok. */
inline forget() {
	r = ring;
	has();
	atomic {
		if
		:: ok ->
			if
			:: r -> drain_slots()
			:: else
			fi;
			stopping = false
		:: else
		fi
	}
}

/* Punches a hole. */
inline drain_slots() {
	assert(owner == ht);
	lossy = lossy || ison[ht - 1]; released = true;
	k_ = 0;
	do
	:: k_ < SLOTS -> slot[k_] = 0; k_++
	:: else -> break
	od
}

/* Not Thread.On */
#define STILL(c) (TAG(c) == OFF || (c) == ATTEND)

inline start_it() {
	atomic { e = busy[ht - 1]; c = cursor; ok = TAG(c) == OFF || TAG(c) == ATTEND && stopping };
	if
	:: ok -> forget();
		if
		:: ok ->
			atomic { if :: owner == ht -> stopped[ht - 1] = false; quiet = false :: else fi; want = 1 };
			mask = 7;
			atomic { ok = cursor == c; if :: ok -> cursor = ATTEND :: else fi };
			atomic { if :: !ok -> if :: cursor == AT(POS(c)) -> cursor = ATTEND :: else fi :: else fi;
				if :: owner == ht && !gone[ht - 1] && api[ht - 1] != 2 && !e -> must[ht - 1] = true :: else fi }
		:: else
		fi
	:: else
	fi
}

inline request_stop() {
	atomic { stopping = true; must[0] = false; must[1] = false };
#ifndef WANT_LAST
	atomic { want = 0 };
#endif
	mask = 0;
	do
	:: atomic { c = cursor; if :: TAG(c) != ATTEND -> break :: else fi };
		atomic { if :: cursor == c -> cursor = AT(POS(c)); break :: else fi }
	od;
#ifdef WANT_LAST
	atomic { want = 0 };
#endif
}

/* Thread.Collect of a thread that is stopped or gone. One slot, chosen freely, stands for all. */
inline collect() {
	atomic { DRAINED(ht - 1); c = cursor; r = ring && POS(c) > 1; g = start != 0; n_ = 0 };
	atomic {
		if
		:: r -> select(n_ : 1 .. POS(c) - 1); DRAINED(ht - 1);
			g = g && (slot[n_] == MARK(ht - 1) || slot[n_] == 0 && lossy || open[ht - 1] && n_ == POS(c) - 1 &&
				(slot[n_] == 0 || (slot[n_] & 1) == ht - 1)) /* done says that it is not written (trace.pml); but it is no other's */
		:: else
		fi;
		n_ = 0
	};
#ifdef NO_OWNER
	ok = true;
#else
	has();
#endif
	atomic {
		if
		:: ok && r && !released -> assert(g) /* all of its records, and no other's */
		:: else
		fi
	}
}

inline release_it() {
	e = gone[ht - 1];
	forget();
	if
	:: ok -> atomic { s0 = start };
#ifdef FREE_EARLY
		g = true;
#else
		g = e || gone[ht - 1];
#endif
		has();
		if
		:: atomic { ok && !g -> ok = TAG(cursor) != ON };
			atomic { if :: ok -> if :: start == s0 -> start = 0 :: else fi :: else fi }
		:: atomic { ok && g;
#ifndef CLEAR_ONCE
			if :: !e && ring -> drain_slots() :: else fi
#endif
			};
			atomic { start = 0 };
			atomic { cursor = OFF };
			atomic {
				
				assert(owner == 0 || gone[owner - 1]); /* no ring is given away while its owner may write */
				state = FREE; owner = 0; h = 0 }
		:: atomic { !ok }
		fi
	:: else
	fi
}

#define LOOK 0
#define START_IT 1
#define STOP 2
#define STOP_ALL 3

proctype Recorder() {
	byte h, ht, c, n, n_, s0, what;
	bool ok, stopping, r, g, e;
	{
		do
		:: atomic { n <= OPS; n++; quiet = false; armed = 1 };
			dummy = ATTEND;
			if
			:: atomic { n <= OPS; what = LOOK }
			:: atomic { n <= OPS; what = START_IT }
			:: atomic { n <= OPS; what = STOP }
			:: atomic { what = STOP_ALL; must[0] = false; must[1] = false; dummy = OFF };
				armed = 0
			fi;
			list();
			if
			:: atomic { h == 0 -> quiet = what == STOP_ALL }
			:: atomic { h != 0 && what == START_IT -> skip };
				start_it()
			:: atomic { h != 0 && what != START_IT -> ok = gone[ht - 1] };
				/* RequestStop, and Stopped, which asks again */
				do
				:: atomic { what >= STOP && n_ < 2 -> n_++; what = what | 4 };
					request_stop();
					atomic {
						ok = STILL(cursor);
						if
						:: ok && owner == ht && uses == h -> stopped[ht - 1] = true
						:: else
						fi;
						ok = ok || gone[ht - 1];
						quiet = ok && what == STOP_ALL + 4
					}
				:: atomic { what == LOOK || what & 4 -> break }
				od;
				if
				:: ok -> collect(); release_it()
				:: else
				fi
			fi;
			atomic { c = 0; n_ = 0; s0 = 0; ok = false; r = false; g = false; e = false; what = LOOK }
		:: n > OPS -> break
		od
	} unless { dead };
	if
	:: atomic { dead -> dead = false; run Recorder() }
	:: else
	fi
}

proctype Killer() {
	if
	:: killed = true
	:: skip
	fi
}

proctype RecorderKiller() {
	if
	:: dead = true
	:: skip
	fi
}

init {
	atomic {
		run Thread(0);
#ifndef ONE
		run Thread(1);
#endif
		run Recorder();
		run Buffer(0);
#ifndef ONE
		run Buffer(1);
#endif
#ifdef KILL
		run Killer();
#endif
#ifdef DEATH
		run RecorderKiller();
#endif
	}
}
