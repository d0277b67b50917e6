/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that is on, a signal handler of its with trace points, and a recorder that asks it to stop and copies its ring,
 * whether it has answered, does not answer, or was killed. docs/model.md maps each step to the code.
 *
 * Checked:
 *   - every slot that is copied is the record that it must be, whole (C2, C4, C8), or was left out;
 *   - nothing is left out unless a stub stands between reservation and done, or a handler has been within one;
 *   - a thread that has answered writes no cursor again, and where the cursor stands is its end;
 *   - after the stop bit is cleared it reserves at most two records (C4), and the second or third turns it off: no lost stop;
 *   - the thread and its handler reach their ends: no step waits for the recorder, not even for one that has died.
 *
 * Broken on purpose: -DNO_DONE (done is not looked at), -DNO_BARRIER, -DNO_FIRST
 * (a barrier behind the look at done, but none before it), -DNO_DROP (the oldest slots of a thread
 * that has not answered are kept), -DNO_EDGE (the same in a
 * ring that has not wrapped but is nearly full), -DDONE_FIRST (done is stored before
 * the record), -DNO_MONITOR (the reservation is a load and a store, so that a signal handler fits in between),
 * -DNO_AHEAD (a record under way is taken
 * for one of an earlier lap), -DNO_MASK (the advanced cursor is not anded with the mask's tag), -DNO_OR (the second slot's tag is not put back).
 * A limit, not an error of the model: -DSTRICT (a slot whose stub a handler has interrupted must be whole as well).
 */
#define N 8
#define SLOTS 8
#define BASE 128
#include "memory.pmh"

#ifndef POINTS
#define POINTS 3
#endif

/* How many records may follow the request. On arm the mask may have been loaded early once more; two follow the barrier. */
#ifdef ARM
#define LATEST 3
#else
#define LATEST 2
#endif

byte reserved;           /* ghost: slots reserved since the thread started */
byte after;              /* ghost: records reserved since the stop bit was cleared */
bool asked, killed, inhandler, recorderdead;
byte openfrom, opento;   /* ghost: slots of the thread's stub that stands between reservation and done */
byte hopenfrom, hopento; /* ghost: the same of the handler's */
bool nested;             /* ghost: the handler has recorded within a stub, */
byte nfrom, nto;         /* and the slots of both */
byte lfrom, lto;         /* ghost: the slots that were reserved last */

#ifdef NO_MONITOR
#define DIVIDED true
#else
#define DIVIDED false
#endif
#ifdef NO_MASK
#define NOMASK next = next | 7;
#else
#define NOMASK
#endif

/* A slot is written by one store. But arm writes two halves, and amd64 too for the first of two slots. */
#ifdef ARM
#define first(i, v) store_lo(i, v)
#define second(i, v) atomic { store_hi(i, v) };
#define halves(i, v) atomic { store_lo(i, v) }; atomic { store_hi(i, v) }
#else
#define first(i, v) store_slot(i, v)
#define second(i, v)
#ifdef TSO
#define halves(i, v) atomic { store_hi(i, v) }; atomic { store_lo(i, v) }
#else
#define halves(i, v) atomic { store_slot(i, v) }
#endif
#endif

inline reserve(isthread) {
	assert(now == reserved); /* the time was read after all records before */
	assert(TAG(tcursor) == ON);
	store_cursor(next, reserved + k);
	if
	:: isthread -> openfrom = reserved + 1; opento = reserved + k
	:: else -> hopenfrom = reserved + 1; hopento = reserved + k; if
		:: openfrom != 0 && !nested -> nested = true; nfrom = openfrom; nto = hopento
		:: else
		fi
	fi;
	lfrom = reserved + 1; lto = reserved + k;
	reserved = reserved + k;
	if
	:: asked -> after++
	:: else
	fi;
	assert(after < LATEST || TAG(next) == OFF); /* C4; and the last of them has answered */
	assert(after <= LATEST)
}

/* A trace point. c: the cursor as loaded; m: the mask; k: slots of this record. Each atomic is one access to shared memory,
 * or one instruction that a signal can't divide, with what the thread then does alone. */
inline point(isthread) {
	k = 0;
again:
	atomic {                                                     /* the test in line */
		c = tcursor;
		if
		:: TAG(c) == OFF -> goto leave
		:: else
		fi;
		if
		:: k = 1
		:: k = 2
		fi
	};
retry:
#ifdef TSO
	atomic {                                                     /* movq (%r11); rdtsc */
		c = tcursor; now = reserved;
		if
		:: (c & 4) == 0 -> goto again
		:: else
		fi
	};
	atomic { load_mask(m); next = (c + 8) & m; NOMASK };
	if
	:: atomic { k == 2 -> next = next | 7; load_mask(m); next = (next + 8) & m; NOMASK }
	:: atomic { else }
	fi;
	atomic {                                                     /* cmpxchgq */
		if
		:: tcursor != c && !DIVIDED -> goto retry
		:: else
		fi;
		reserve(isthread);
		i = INDEX(c); g = now; j = c
	};
#else
	atomic {                                                     /* the counter, then ldxp: cursor and mask at once */
		now = reserved; monitor = true;
		if
		:: tcursor != c -> goto again
		:: else
		fi;
#ifdef ARM
	};
	atomic {                                                     /* ldrex was the one before, this is ldr */
#endif
		load_mask(m);
		next = (c + 8) & m; NOMASK
		if
		:: k == 2 -> next = next | 7; next = (next + 8) & m; NOMASK
		:: else
		fi
	};
	atomic {                                                     /* stxp, strex */
		if
		:: !monitor && !DIVIDED -> goto again
		:: else
		fi;
		reserve(isthread);
		i = INDEX(c); g = now; j = c
	};
#endif
#ifdef DONE_FIRST
	atomic { store_done(j) };
#endif
	if
	:: atomic { k == 2 ->
#ifdef NO_OR
		j = (c + 8) & mask;
		assert(TAG(j) == ON);
#else
		j = ((c + 8) & (mask | 7)) | 7;
#endif
		first(INDEX(j), g + 2) };
		second(INDEX(j), g + 2)
	   halves(i, g + 1)
	:: atomic { else -> first(i, g + 1) };
		second(i, g + 1)
	fi;
	atomic {
#ifndef DONE_FIRST
		store_done(j);
#endif
		if
		:: isthread -> openfrom = 0; opento = 0
		:: else -> hopenfrom = 0; hopento = 0
		fi
	};
leave:
	skip
}

proctype Thread() provided (!inhandler) {
	byte c, m, k, now, next, i, j, g, n;
	{
		do
		:: n < POINTS -> point(true); atomic { n++; c = 0; m = 0; k = 0; now = 0; next = 0; i = 0; j = 0; g = 0 }
		:: n == POINTS -> break
		od;
		skip
	} unless { killed }
}

/* A signal handler that runs once, between any two instructions of the thread, with one trace point. Or never. */
proctype Handler() {
	byte c, m, k, now, next, i, j, g;
	{
		if
		:: atomic { inhandler = true; monitor = false }; point(false); atomic { inhandler = false; monitor = false }
		:: skip
		fi
	} unless { killed }
}

/* SIGKILL, at any point, or never. The kernel orders what was stored before what /proc says. */
proctype Killer() {
	if
	:: atomic { killed = true; inhandler = false; drain() }
	:: skip
	fi
}


/* The slots of the interrupted stub, of the handler's within it, and of the one that follows: done may be too far behind to tell. */
#define LATE(w) ((w >= nfrom && w <= nto) || (w >= lfrom && w <= lto))

byte cgone, ccur, cat, cdone, missing, size, from, v, want, i_;
bool exact, wrapped, found;

inline miss() {
	missing = (INDEX(ccur) < 2 -> INDEX(ccur) : 2);
	if
	:: done != 0 -> missing = (INDEX(ccur) + N - 1 - INDEX(done)) % N
	:: else
	fi;
	if
	:: missing > 2 -> missing = 0
	:: else
	fi;
#ifdef NO_DONE
	missing = 0
#endif
}

inline check() {
	if
	:: lo[i_] == want && hi[i_] == want
#ifndef STRICT
	:: nested && !(lo[i_] == want && hi[i_] == want) ->
		assert(LATE(want));
		assert(lo[i_] == want || lo[i_] == 0 || lo[i_] == want - N);
		assert(hi[i_] == want || hi[i_] == 0 || hi[i_] == want - N)
#endif
	:: else -> assert(lo[i_] == want && hi[i_] == want)
	fi
}
/* control.Thread.unwritten: looks again until nothing is missing or it has taken too long, which it does not if all stubs are through. */
inline unwritten() {
	atomic { see_done(); miss(); }
	atomic {
		if
		:: missing != 0 && openfrom == 0 && hopenfrom == 0 -> drain(); miss(); assert(missing == 0 || nested || !exact)
		:: else
		fi
	}
}
#ifdef NO_AHEAD
#define AHEAD
#else
#define AHEAD && (INDEX(ccur) + N - 1 - INDEX(done)) % N <= 2
#endif

proctype Recorder() {
	{
		/* RequestStop */
		atomic { see_cursor(); if :: TAG(cursor) == ON -> and_mask(248); asked = true :: else fi };
		/* StopAll waits. What was stored before the request becomes visible in the meantime; that is all that time does. */
		atomic { drain() };
		/* settleAll */
#ifndef NO_BARRIER
#ifndef TSO
		atomic { barrier() };
#endif
#endif
		/* Collect */
		cgone = killed;
		atomic { see_cursor(); ccur = cursor; cat = at; exact = cgone || TAG(ccur) == OFF };
#ifndef NO_FIRST
#ifndef TSO
		atomic { if :: !cgone -> barrier() :: else fi };
#endif
#endif
		unwritten();
#ifndef NO_BARRIER
#ifndef TSO
		atomic { if :: !cgone -> barrier() :: else fi };
#endif
#endif
		atomic { see_slot(N-1); wrapped = lo[N-1] != 0 || hi[N-1] != 0 };
		atomic {
			see_done(); wrapped = wrapped || (done != 0 && INDEX(done) >= INDEX(ccur) AHEAD);
			size = INDEX(ccur);
			from = 0;
			if
			:: wrapped ->
				size = N; from = INDEX(ccur);
				if
#ifndef NO_DROP
				:: !exact -> size = N - 4; from = (from + 4) % N
#endif
				:: else
				fi
#ifndef NO_EDGE
			:: !wrapped && !exact && size + 4 > N -> from = size + 4 - N; size = size - from
#endif
			:: else
			fi;
			if
			:: missing > size -> missing = size
			:: else
			fi;
			size = size - missing;
			assert(cat >= missing + size || wrapped);
			assert(!exact || cat == reserved);
			v = 0
		};
		/* The copy: any one slot stands for all, because each is read once and at any time. */
		atomic {
			if
			:: size == 0
			:: size != 0 -> select(v : 0 .. size - 1)
			fi
		};
		atomic {
			if
			:: v < size ->
				i_ = (from + v) % N; want = cat - missing - size + v + 1;
				see_slot(i_);
				check()
			:: else
			fi
		};
		assert(!exact || cat == reserved)
	} unless { recorderdead }
}

/* kill -9 of the recorder, at any point, or never. */
proctype RecorderKiller() {
	if
	:: recorderdead = true
	:: skip
	fi
}

init {
	byte k;
	atomic {
		mask = FULL; tcursor = BASE | ON;
		if
#ifdef EARLY
		:: reserved = 0
		:: reserved = 6
#else
		:: reserved = 8
		:: reserved = 13
#endif
		fi;
		do
		:: k < reserved -> lo[k % N] = k + 1; hi[k % N] = k + 1; tlo[k % N] = k + 1; thi[k % N] = k + 1; done = (BASE + 8 * (k % N)) | ON; k++
		:: else -> break
		od;
		tcursor = (BASE + 8 * (reserved % N)) | ON;
		cursor = tcursor; tdone = done; at = reserved; tat = reserved; k = 0;
		run Thread();
		run Recorder();
#ifdef DEATH
		run RecorderKiller();
#endif
#ifdef HANDLER
		run Handler();
#endif
#ifdef KILL
		run Killer();
#endif
	}
}
