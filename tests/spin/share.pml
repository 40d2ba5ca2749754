/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two large messages that sender and receiver copy together. Both use the same
 * share, one after the other.
 *
 * What must hold: when a receive completes, its buffer holds the whole message,
 * and from then on the sender does not write to it, because it is the
 * application's again. That is so whichever side fails to copy, and whenever, and
 * also if the receiver closes in the middle. Neither side waits for ever.
 *
 * Models:
 *	src/shm/share.c: wf_shm_share_open wf_shm_share_copy wf_shm_share_join
 *	src/shm/share.c: wf_shm_share_help write_chunk
 *	src/shm/pull.c: take_share start_share reply_final take_claims stop_sharing
 *	src/shm/pull.c: wf_shm_pull_progress read_alone read_failed leave_share
 *	src/shm/out.c: handle_reply start_share wf_shm_out_finish help_sharing
 *	src/shm/reply.c: write_reply wf_shm_reply_was_read
 *
 * A copy by the sender is a store in the buffer of its processor, as what the
 * kernel copies is. A receiver that cannot copy gets the message through the ring
 * in the end; here it writes all of it by itself.
 *
 * Broken on purpose; each of these must be found:
 *	-DCOUNT_FIRST: the sender counts a chunk before it has copied it
 *	-DCOUNT_RELAXED (weak): the sender counts without release
 *	-DFAIL_ALONE: a receiver that fails does not wait for the sender's chunks
 *	-DLEAVE_AT_ONCE: a receiver that closes does not wait for those, either
 *	-DREUSE_EARLY: a share is used again before the sender has read its end
 *	-DREPLY_RELAXED (weak): the reply is stored without release
 *	-DNO_CLAIMS: a side copies the next chunk without claiming it
 */
#define PROCS 2
#define BUFFERED 3
#define CHUNKS 3
#define MESSAGES 2
#define REPLIES 4 /* a SHARE at most and a FINAL for each */

#define CLAIMED 0
#define DONE 1
#define FAILED 2
#define WHICH 3 /* the message, in place of its length and addresses */
#define SEQUENCE 4
#define SEEN 5
#define KIND(reply) (6 + (reply))
#define BUFFER(message, chunk) (6 + REPLIES + (message) * CHUNKS + (chunk))
#define ADDRS (6 + REPLIES + MESSAGES * CHUNKS)

#include "memory.pml"

#define SENDER 0
#define RECEIVER 1

#define SHARE 1
#define FINAL 2

/* A share that nobody can claim a chunk of: UINT32_MAX / 2. */
#define NO_MORE 100
/* What the application writes to its buffer when it has it again. */
#define REUSED 99

bool closed;	/* the receiver has, and the socket ends */
bool over;	/* the sender has nothing more to do */

#define CONTENT(message) (10 + (message))

/* Both sides: the next chunk, which is none at the end. */
inline claim(p)
{
#ifdef NO_CLAIMS
	turn = LOAD(p, CLAIMED);
	STORE(p, CLAIMED, turn + 1)
#else
	RMW_RELAXED(p, CLAIMED, turn, mem[CLAIMED] + 1)
#endif
}

inline count_done(n)
{
#ifdef COUNT_RELAXED
	atomic { !HAS(SENDER, DONE) -> mem[DONE] = mem[DONE] + n }
#else
	atomic { DRAINED(SENDER) -> mem[DONE] = mem[DONE] + n }
#endif
}

/* wf_shm_share_help(): some chunks, then their count. */
inline help()
{
	do
	:: claim(SENDER);
	   if
	   :: turn >= CHUNKS -> sharing = false; break
	   :: turn < CHUNKS ->
#ifdef COUNT_FIRST
		count_done(1);
#endif
		STORE(SENDER, BUFFER(target, turn), CONTENT(message));
		copied++
	   :: turn < CHUNKS -> sharing = false; failed = true; break
	   fi
	/* The budget is used up. */
	:: copied > 0 -> break
	od;
#ifndef COUNT_FIRST
	count_done(copied);
#endif
	if
	:: failed -> STORE_RELEASE(SENDER, FAILED, 1)
	:: else
	fi;
	d_step { copied = 0; turn = 0; failed = false }
}

proctype sender()
{
	byte seen, message, target, turn, copied;
	bool sharing, failed;

	do
	:: LOAD(SENDER, SEQUENCE) > seen ->
		if
		:: LOAD(SENDER, KIND(seen)) == SHARE ->
			/* The reply names the message, the share the buffer. */
			target = LOAD(SENDER, WHICH);
			sharing = true
		:: LOAD(SENDER, KIND(seen)) == FINAL ->
			d_step { sharing = false; target = 0; message++ }
		:: else -> assert(false) /* a reply that makes no sense */
		fi;
		seen++;
		STORE_RELEASE(SENDER, SEEN, seen)
	:: sharing -> help()
	:: message == MESSAGES || closed -> break
	od;
	over = true
}

inline send_reply(kind)
{
	STORE(RECEIVER, KIND(replies), kind);
	replies++;
#ifdef REPLY_RELAXED
	STORE(RECEIVER, SEQUENCE, replies)
#else
	STORE_RELEASE(RECEIVER, SEQUENCE, replies)
#endif
}

inline read_all()
{
	STORE(RECEIVER, BUFFER(message, 0), CONTENT(message));
	STORE(RECEIVER, BUFFER(message, 1), CONTENT(message));
	STORE(RECEIVER, BUFFER(message, 2), CONTENT(message))
}

/* Ours are those we copied and the one that failed, if @ours_failed. */
inline take_claims(ours_failed)
{
	RMW_RELAXED(RECEIVER, CLAIMED, theirs, NO_MORE);
	d_step {
		theirs = (theirs > CHUNKS -> CHUNKS : theirs);
		theirs = (theirs > done + ours_failed ->
			  theirs - done - ours_failed : 0)
	}
}

/* Some chunks of ours. */
inline copy_own()
{
	do
	:: claim(RECEIVER);
	   if
	   :: turn >= CHUNKS -> claims_over = true; break
	   :: turn < CHUNKS ->
		STORE(RECEIVER, BUFFER(message, turn), CONTENT(message));
		done++
	   :: turn < CHUNKS -> failed = true; break
	   fi
	:: done > 0 -> break
	od;
	turn = 0;
	if
	:: failed -> take_claims(1)
	:: else
	fi
}

#ifdef FAIL_ALONE
#define THEIRS_ARE_DONE true
#else
#define THEIRS_ARE_DONE (LOAD(RECEIVER, DONE) >= theirs)
#endif

/* The endpoint closes. */
inline leave_share()
{
	if
	:: !failed -> take_claims(0)
	:: else
	fi;
#ifndef LEAVE_AT_ONCE
	LOAD(RECEIVER, FAILED) || LOAD(RECEIVER, DONE) >= theirs;
#endif
	closed = true
}

inline progress()
{
	do
	:: leave_share(); break
	:: !claims_over && !failed -> copy_own()
	:: failed && (LOAD(RECEIVER, FAILED) || THEIRS_ARE_DONE) ->
		read_all();
		break
	:: claims_over && LOAD(RECEIVER, FAILED) ->
		read_all();
		break
	:: claims_over && !LOAD(RECEIVER, FAILED) &&
	   done + LOAD(RECEIVER, DONE) >= CHUNKS -> break
	od
}

#define HOLDS_CONTENT(message, chunk)                                          \
	(LOAD(RECEIVER, BUFFER(message, chunk)) == CONTENT(message))
#define IS_REUSED(message)                                                     \
	(mem[BUFFER(message, 0)] == REUSED &&                                  \
	 mem[BUFFER(message, 1)] == REUSED && mem[BUFFER(message, 2)] == REUSED)

proctype receiver()
{
	byte message, turn, done, theirs, replies, final;
	bool claims_over, failed;

	do
	:: message == MESSAGES -> break
	:: else ->
		if
		/* take_share() */
#ifdef REUSE_EARLY
		:: true ->
#else
		:: LOAD(RECEIVER, SEEN) >= final ->
#endif
			STORE(RECEIVER, CLAIMED, 0);
			STORE(RECEIVER, DONE, 0);
			STORE(RECEIVER, FAILED, 0);
			STORE(RECEIVER, WHICH, message);
			send_reply(SHARE);
			progress()
		/* Another share is free, or none is. */
		:: read_all()
		fi;
		/* The receive completes, or is given up. */
		assert(closed || (HOLDS_CONTENT(message, 0) &&
				  HOLDS_CONTENT(message, 1) &&
				  HOLDS_CONTENT(message, 2)));
		STORE(RECEIVER, BUFFER(message, 0), REUSED);
		STORE(RECEIVER, BUFFER(message, 1), REUSED);
		STORE(RECEIVER, BUFFER(message, 2), REUSED);
		if
		:: closed -> break
		:: else -> send_reply(FINAL)
		fi;
		d_step {
			final = replies;
			message++;
			done = 0;
			theirs = 0;
			claims_over = false;
			failed = false
		}
	od;
	/* When all have ended and all stores have arrived. */
	over && DRAINED(RECEIVER) && DRAINED(SENDER);
	assert(IS_REUSED(0) && (IS_REUSED(1) || (closed && message == 0)))
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
