/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two rings into one endpoint that watches one of them at a time, or none: bells,
 * which ring is watched, going to sleep and being woken.
 *
 * What must hold: a ring with a message is watched, or its bell and the word that
 * says that a bell was rung are set, or it is on the look-again list, whenever the
 * buffers are drained and nobody is in the middle of a call. An endpoint does not sleep while a message waits that nobody
 * will wake it for.
 *
 * Models:
 *	src/shm/put.h: wf_shm_put_publish
 *	src/shm/put.c: wf_shm_out_ring
 *	src/shm/board.h: wf_shm_board_ring wf_shm_board_begin
 *	src/shm/board.h: wf_shm_board_answer
 *	src/shm/watch.c: set_bell answer_bells answer_line
 *	src/shm/watch.c: start_watching stop_watching promote look
 *	src/shm/watch.c: retire_idle look_again wf_shm_watch_settle
 *	src/shm/watch.c: wf_shm_watch_all_bells wf_shm_watch_few_bells
 *	src/shm/watch.c: wf_shm_watch_pending
 *	src/shm/doze.c: wf_shm_doze_begin wf_shm_doze_has_work wf_shm_doze_end
 *	src/core/sleep.c: wf_core_sleep wf_core_wake
 *	src/base/barrier.c: wf_base_barrier_all
 *
 * The look-again list waits for a time that is longer than any store stays in a
 * buffer. Here it waits for what that time is for: our store of bell_wanted is in
 * memory, and then all that the sender had stored by that moment. A poll may take
 * any number of messages, also none, as it does if the completion queue is full
 * or memory is short.
 *
 * Broken on purpose; each of these must be found:
 *	-DNO_BARRIER: a sleeper drains its own buffer only
 *	-DNO_LAST_LOOK: a sleeper does not look after it has announced its sleep
 *	-DLOOK_AT_ONCE: a ring that stops being watched is looked at again at once
 *	-DCLEAR_AFTER_LOOK: a bell is cleared after its ring was looked at
 *	-DNO_BELL_AGAIN: messages are left in a ring whose bell was cleared
 *	-DWAKE_FIRST: a sender looks whether we sleep before it rings
 *	-DRUNG_FIRST: a sender sets the word before its bell
 *	-DCLEAR_RUNG_LATE: the word is cleared after the bells were looked at
 *	-DNO_RUNG_AGAIN: we set a bell again, but not the word
 */
#define PROCS 3
#define BUFFERED 3
#define RINGS 2
/* Ring 0, which is watched at first, gets one message, ring 1 two. */
#define MESSAGES(r) ((r) + 1)

#define PUBLISHED(r) (r)
#define WANTED(r) (RINGS + (r))
#define BELL(r) (2 * RINGS + (r))
#define ASLEEP (3 * RINGS)
#define RUNG (3 * RINGS + 1)
#define ADDRS (3 * RINGS + 2)

#include "memory.pml"

/* The sender of ring r is process r. */
#define US RINGS

bool putting[RINGS];	/* its sender is in the middle of a call */
bool woken;		/* a byte stands in the socket */

byte taken[RINGS];
#define NONE RINGS
byte watched = 0;	/* which ring */

/* Where a ring stands on the look-again list. */
#define NOT_LISTED 0
#define LISTED 1	/* our store may stand in the buffer */
#define DUE 2		/* what its sender had stored by then may */
byte again[RINGS];
byte mark[RINGS];

#define READY(r) (LOAD(US, PUBLISHED(r)) > taken[r])
#define ALL_TAKEN (taken[0] == MESSAGES(0) && taken[1] == MESSAGES(1))
#define ALL_DRAINED (DRAINED(0) && DRAINED(1) && DRAINED(US))
#define REMEMBERED(r)                                                          \
	(mem[PUBLISHED(r)] == taken[r] || watched == r ||                      \
	 (mem[BELL(r)] && mem[RUNG]) || again[r] != NOT_LISTED || putting[r])

/* wf_shm_board_ring(), then the socket. The bell is set with release; nothing is
 * loaded before the exchange that follows, which waits for all stores. */
inline ring_bell(r)
{
#ifdef WAKE_FIRST
	asleep = LOAD(r, ASLEEP);
#endif
#ifdef RUNG_FIRST
	STORE_SEQ_CST(r, RUNG, 1);
	STORE_SEQ_CST(r, BELL(r), 1);
#else
	STORE_SEQ_CST(r, BELL(r), 1);
	STORE_SEQ_CST(r, RUNG, 1);
#endif
#ifndef WAKE_FIRST
	asleep = LOAD(r, ASLEEP);
#endif
	if
	:: asleep -> RMW_RELEASE(r, ASLEEP, asleep, 0)
	:: else
	fi;
	if
	:: asleep -> woken = true
	:: else
	fi
}

proctype sender(byte r)
{
	byte number = 1;
	bit asleep;

	do
	:: number > MESSAGES(r) -> break
	:: else ->
		atomic {
			putting[r] = true;
			STORE_RELEASE(r, PUBLISHED(r), number)
		};
		if
		:: LOAD(r, WANTED(r)) -> ring_bell(r)
		:: else
		fi;
		asleep = 0;
		atomic { putting[r] = false; number++ }
	od
}

/* Nobody but us loads these two: whether they stand in our buffer is the same. */
inline set_bell(r)
{
	atomic {
		mem[BELL(r)] = 1;
#ifndef NO_RUNG_AGAIN
		mem[RUNG] = 1
#endif
	}
}

/* A poll that takes some of the messages. */
inline take_some(r)
{
	found = false;
	do
	:: READY(r) -> atomic { taken[r]++; found = true }
	:: break
	od
}

inline start_watching(r)
{
	atomic { watched = r; again[r] = NOT_LISTED; mark[r] = 0 };
	STORE(US, WANTED(r), 0)
}

inline stop_watching(r)
{
	STORE(US, WANTED(r), 1);
#ifdef LOOK_AT_ONCE
	if
	:: READY(r) -> set_bell(r)
	:: else
	fi
#else
	again[r] = LISTED
#endif
}

/* In a crowd all stay as they are; otherwise it takes the place of the other. */
inline promote(r)
{
	if
	:: watched != NONE ->
	   stop_watching(1 - (r));
	   start_watching(r)
	:: watched == NONE -> start_watching(r)
	:: true
	fi
}

/* At any time: how long a ring was quiet is not modelled. */
inline retire_idle()
{
	if
	:: watched == 0 -> watched = NONE; stop_watching(0)
	:: watched == 1 -> watched = NONE; stop_watching(1)
	fi
}

/* A ring that is not watched and whose bell is cleared. */
inline look(r)
{
	take_some(r);
	if
	:: found -> promote(r)
	:: else
	fi;
	found = false;
#ifndef NO_BELL_AGAIN
	if
	:: watched != r && READY(r) -> set_bell(r)
	:: else
	fi
#endif
}

inline clear(r)
{
	RMW_RELEASE(US, BELL(r), bell, 0);
	bell = 0
}

inline answer(r)
{
#ifndef CLEAR_AFTER_LOOK
	clear(r);
#endif
	if
	:: watched != r -> look(r)
	:: else
	fi;
#ifdef CLEAR_AFTER_LOOK
	clear(r)
#endif
}

/* One line of bells each. */
inline answer_line(r)
{
	if
	:: LOAD(US, BELL(r)) -> answer(r)
	:: else
	fi
}

/* The completion queue may be full in between. */
inline answer_bells()
{
#ifndef CLEAR_RUNG_LATE
	RMW_RELEASE(US, RUNG, bell, 0);
	bell = 0;
#endif
	answer_line(0);
	if
	:: answer_line(1)
	:: LOAD(US, BELL(1)) -> mem[RUNG] = 1
	fi;
#ifdef CLEAR_RUNG_LATE
	RMW_RELEASE(US, RUNG, bell, 0);
#endif
	bell = 0
}

inline look_again(r)
{
	if
	:: again[r] == LISTED && !HAS(US, WANTED(r)) ->
		atomic {
			again[r] = DUE;
			mark[r] = LOAD(r, PUBLISHED(r))
		}
	:: again[r] == DUE && mem[PUBLISHED(r)] >= mark[r] ->
		atomic { again[r] = NOT_LISTED; mark[r] = 0 };
		if
		:: READY(r) -> set_bell(r)
		:: else
		fi
	fi
}

inline settle(r)
{
	if
	:: again[r] != NOT_LISTED ->
		atomic { again[r] = NOT_LISTED; mark[r] = 0 };
		if
		:: READY(r) -> set_bell(r)
		:: else
		fi
	:: else
	fi
}

inline end_sleep()
{
	STORE_SEQ_CST(US, ASLEEP, 0);
	if
	:: watched != NONE ->
	   STORE(US, WANTED(watched), 0);
	   clear(watched)
	:: else
	fi
}

#define PENDING                                                                \
	(LOAD(US, BELL(0)) || LOAD(US, BELL(1)) ||                             \
	 (watched == 0 && READY(0)) || (watched == 1 && READY(1)))

/* Which processes' buffers the barrier has seen empty, one after the other. */
inline barrier()
{
	DRAINED(US);
#ifndef NO_BARRIER
	DRAINED(0);
	DRAINED(1)
#endif
}

inline sleep()
{
	if
	:: watched != NONE -> STORE(US, WANTED(watched), 1)
	:: else
	fi;
	STORE_SEQ_CST(US, ASLEEP, 1);
	barrier();
	settle(0);
	settle(1);
#ifdef NO_LAST_LOOK
	if
	:: true ->
#else
	if
	:: PENDING
	:: else ->
#endif
		/* If all has arrived, nobody will wake us. */
		if
		:: woken -> woken = false
		:: ALL_TAKEN
		fi
	fi;
	end_sleep()
}

proctype receiver()
{
	bit bell;
	bool found;

	/* wf_shm_watch_add(), before the senders know their rings. */
	mem[WANTED(1)] = 1;
	atomic {
		run sender(0);
		run sender(1)
	};
	do
	:: d_step {
		assert(!ALL_DRAINED || (REMEMBERED(0) && REMEMBERED(1)))
	   };
	   if
	   :: ALL_TAKEN -> break
	   :: watched == 0 && READY(0) -> atomic { taken[0]++ }
	   :: watched == 1 && READY(1) -> atomic { taken[1]++ }
	   :: watched != NONE -> retire_idle()
	   :: LOAD(US, RUNG) -> answer_bells()
	   :: again[0] != NOT_LISTED -> look_again(0)
	   :: again[1] != NOT_LISTED -> look_again(1)
	   :: sleep()
	   fi
	od
}

init
{
	atomic {
		run receiver();
		run cpu(0);
		run cpu(1);
		run cpu(US)
	}
}
