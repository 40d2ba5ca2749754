/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One ring: a sender publishes messages, a receiver takes them and gives credit
 * back.
 *
 * What must hold: every message is taken once and in order, with its own payload,
 * although the sender uses slots again, and goes back to the first slot before
 * the last one where the credit allows it. Neither side waits for ever.
 *
 * Models:
 *	src/shm/put.h: wf_shm_put wf_shm_put_publish
 *	src/shm/out.c: look_at_credit plan_slots wf_shm_out_low wf_shm_out_refresh
 *	src/shm/lap.h: wf_shm_lap_free wf_shm_lap_may_turn wf_shm_lap_turn
 *	src/shm/in.h: wf_shm_in_ready
 *	src/shm/in.c: wf_shm_in_credit return_credit slot_consumed
 *
 * Broken on purpose; each of these must be found:
 *	-DWORD_FIRST: the word of a slot is stored before its payload
 *	-DWORD_RELAXED (weak): the word is stored without release
 *	-DCREDIT_EARLY: credit is given back before the payload is read
 *	-DLAP_UNCHECKED: the sender passes what is unread of the lap before
 *	-DTURN_UNTOLD: the slot does not say that the next one is the first
 */
#define PROCS 2
#define BUFFERED 3

/* A ring of five slots whose window has three; the real one has 256 and 32. */
#define SIZE 5
#define WINDOW 3
#define STEP 2
#define MESSAGES 14

#define PAYLOAD(place) (place)
#define WORD(place) (SIZE + (place))
#define CREDIT (2 * SIZE)
#define ADDRS (2 * SIZE + 1)

#include "memory.pml"

#define SENDER 0
#define RECEIVER 1

/* A word: the sequence, and whether the next slot is the first one. */
#define MAKE_WORD(sequence, turn) (2 * (sequence) + (turn))
#define SEQUENCE(word) ((word) / 2)
#define TURN(word) ((word) % 2)

#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* struct wf_shm_lap and what struct wf_shm_out keeps beside it. */
short head, pos, start, before, done;
short slots_free, room;
bit turn;

inline plan_slots()
{
	d_step {
#ifdef LAP_UNCHECKED
		room = SIZE - pos;
#else
		room = (done >= start || pos >= start - before ->
			SIZE - pos : done - before - pos);
#endif
		turn = 0;
		if
		:: pos + 1 < WINDOW ->
			slots_free = MIN(room, WINDOW - 1 - pos)
		:: pos + 1 >= WINDOW && done - start >= 1 ->
			slots_free = MIN(room, 1);
			turn = 1
		:: else ->
			slots_free = MIN(MIN(room, STEP), SIZE - 1 - pos)
		fi
	}
}

inline publish(number)
{
#ifdef TURN_UNTOLD
#define FLAG 0
#else
#define FLAG turn
#endif
#ifdef WORD_FIRST
	STORE_RELEASE(SENDER, WORD(pos), MAKE_WORD(number, FLAG));
	STORE(SENDER, PAYLOAD(pos), number);
#else
	STORE(SENDER, PAYLOAD(pos), number);
#ifdef WORD_RELAXED
	STORE(SENDER, WORD(pos), MAKE_WORD(number, FLAG));
#else
	STORE_RELEASE(SENDER, WORD(pos), MAKE_WORD(number, FLAG));
#endif
#endif
	d_step { head++; pos++; slots_free-- };
	/* wf_shm_out_low() */
	if
	:: turn && slots_free == 0 ->
		d_step { before = start; start = head; pos = 0 };
		plan_slots()
	:: else
	fi
}

proctype sender()
{
	byte number = 1;

	plan_slots();
	do
	:: number > MESSAGES -> break
	:: number <= MESSAGES && slots_free > 0 ->
		publish(number);
		number++
	:: number <= MESSAGES && slots_free == 0 &&
	   LOAD(SENDER, CREDIT) != done ->
		done = LOAD(SENDER, CREDIT);
		assert(done <= head);
		plan_slots()
	od
}

proctype receiver()
{
	byte next, place, credited, word;

	do
	:: SEQUENCE(LOAD(RECEIVER, WORD(place))) == next + 1 ->
		word = LOAD(RECEIVER, WORD(place));
#ifdef CREDIT_EARLY
		STORE_RELEASE(RECEIVER, CREDIT, next + 1);
		credited = next + 1;
#endif
		assert(LOAD(RECEIVER, PAYLOAD(place)) == next + 1);
		d_step {
			next++;
			place = (TURN(word) || place + 1 == SIZE -> 0 :
								    place + 1);
			word = 0
		}
	/* Now, or after some more messages. */
	:: credited != next ->
		STORE_RELEASE(RECEIVER, CREDIT, next);
		credited = next
	:: next == MESSAGES && credited == next -> break
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
