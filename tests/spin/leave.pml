/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that closes while a receiver in the same process copies from its
 * buffers, message after message.
 *
 * What must hold: the receiver does not touch a buffer after the sender has
 * left, because the application may unmap it then, and what it read from a
 * buffer that was given up does not count as a message.
 *
 * Models:
 *	src/shm/out.c: leave drop_all
 *	src/shm/pull.c: read_part
 *
 * Broken on purpose; each of these must be found:
 *	-DREADING_RELAXED: the receiver's announcement may stand in a buffer
 *	-DLEFT_RELAXED: that of the sender may
 *	-DLOOK_FIRST: the receiver looks before it announces that it reads
 *	-DNO_WAIT: the sender does not wait for the receiver
 */
#define PROCS 2
#define BUFFERED 3
#define MESSAGES 3

#define READING 0
#define LEFT 1
#define ADDRS 2

#include "memory.pml"

#define SENDER 0
#define RECEIVER 1

bool unmapped; /* the application has its buffers back */

proctype sender()
{
	/* At any time. */
#ifdef LEFT_RELAXED
	STORE(SENDER, LEFT, 1);
#else
	STORE_SEQ_CST(SENDER, LEFT, 1);
#endif
#ifndef NO_WAIT
	!LOAD(SENDER, READING);
#endif
	unmapped = true
}

inline announce(reading)
{
#ifdef READING_RELAXED
	STORE(RECEIVER, READING, reading)
#else
	STORE_SEQ_CST(RECEIVER, READING, reading)
#endif
}

proctype receiver()
{
	byte number;
	bool left, whole;

	do
	:: number == MESSAGES -> break
	:: else ->
#ifdef LOOK_FIRST
		left = LOAD(RECEIVER, LEFT);
		announce(1);
#else
		announce(1);
		left = LOAD(RECEIVER, LEFT);
#endif
		if
		:: !left ->
			/* The first half and the second. */
			assert(!unmapped);
			whole = !unmapped;
			assert(!unmapped)
		:: else
		fi;
		DRAINED(RECEIVER);
		left = left || LOAD(RECEIVER, LEFT);
		assert(left || whole);
		announce(0);
		d_step { number++; left = false; whole = false }
	od
}

init
{
	atomic {
		run sender();
		run receiver();
		run cpu(SENDER);
		run cpu(RECEIVER)
	}
}
