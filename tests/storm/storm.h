/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the storm share this: memory that outlives every worker (the
 * board), on which senders note the messages that they sent and receivers those
 * that they got, so that even the last words of a killed process are known.
 */
#ifndef WEFT_TESTS_STORM_H
#define WEFT_TESTS_STORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STORM_WORKERS 64
#define STORM_OPS 12		/* of one worker, under way */
#define STORM_RING 4096		/* messages of a pair that are remembered ... */
#define STORM_WINDOW 32		/* ... and that may be unsettled ... */
#define STORM_FLOOD 2000	/* ... in a flood */
#define STORM_LARGEST 262144	/* bytes of a tagged message */
#define STORM_SMALLEST_MAX 4096 /* bytes of an untagged one, at most */
#define STORM_SLOT 8192		/* bytes that one peer may write of another */

enum storm_phase {
	STORM_BLOWS = 1, /* faults, new operations */
	STORM_HEALS,	 /* neither: everything under way must end */
	STORM_PROVES,	 /* everyone sends to everyone, nothing may fail */
	STORM_ENDS,
};

enum storm_kind {
	STORM_TAGGED,
	STORM_UNTAGGED, /* into a multi-receive */
	STORM_WRITE,
	STORM_READ,
	STORM_ADD,
	STORM_KINDS,
};

/* The fate of a message is what became of it at its sender. */
enum storm_fate {
	STORM_PENDING = 1,
	STORM_OK,
	STORM_FAILED, /* an error completion: it may have arrived or not */
};

/* One message. The sender fills it in before it sends, the receiver adds what
 * it saw. */
struct storm_entry {
	uint32_t seq; /* from 1 on, for each pair, over all lives */
	uint16_t from_life;
	uint16_t to_life; /* the receiver's, as the sender knew it */
	uint8_t kind;
	uint8_t deliver; /* FI_DELIVERY_COMPLETE */
	uint8_t unsure;	 /* may have gone to the receiver's former life */
	_Atomic uint8_t fate;
	_Atomic uint8_t got; /* times; 100 and more: with an error */
	uint16_t got_life;
	uint32_t len;
	uint64_t post; /* which receive took it: grows with time */
	uint64_t since_ms;
};

struct storm_pair {
	_Atomic uint32_t next;	 /* number of the next message */
	_Atomic uint32_t oldest; /* that is not settled */
	struct storm_entry ring[STORM_RING];
	/* Atomic operations: surely done, and perhaps, at that life. */
	uint16_t add_life;
	uint64_t add_done;
	uint64_t add_maybe;
};

/* An operation under way, for the report of a hang. */
struct storm_op {
	_Atomic bool used;
	uint8_t kind;
	uint8_t peer;
	uint16_t peer_life;
	uint32_t seq;
	uint32_t len;
	uint64_t since_ms;
};

struct storm_worker {
	_Atomic uint32_t life; /* grows whenever an endpoint is opened */
	_Atomic bool up;
	_Atomic bool reopen; /* the parent asks for it */
	_Atomic int quiet;   /* phase in which all that was under way ended */
	_Atomic uint64_t beat_ms; /* when it last called libfabric */
	const char *_Atomic doing;
	struct storm_op ops[STORM_OPS];
	/* Figures for the last line. */
	_Atomic uint64_t sent, received, failed, receive_errors, injected;
	_Atomic uint64_t onesided, reopened;
	_Atomic uint64_t
		unknown; /* receives that failed, of whom is not known */
	_Atomic uint32_t errors[256]; /* error completions by errno */
	_Atomic uint32_t receive_errnos[256];
};

struct storm_board {
	_Atomic int phase;
	int workers;
	uint16_t port;
	bool hosts; /* two network namespaces */
	int victim; /* of a flood that fills its completion queue; -1: none */
	uint64_t seed;
	struct storm_worker worker[STORM_WORKERS];
	struct storm_pair pair[STORM_WORKERS][STORM_WORKERS]; /* from, to */
};

extern struct storm_board *storm_board;

uint64_t storm_random(uint64_t *state);
uint64_t storm_ms(void);

/* A message is settled when nothing more can come of it that must come. */
bool storm_settled(int from, int to, const struct storm_entry *entry);

/* The life of a worker process, until the storm ends. */
void storm_work(int me, uint64_t seed);

/* -- faults.c: calls that fail --------------------------------------------- */

enum storm_fault {
	STORM_NO_MEMORY,      /* ENOMEM */
	STORM_NO_DESCRIPTORS, /* EMFILE */
	STORM_TOO_MANY_REFS,  /* ETOOMANYREFS: descriptors cannot be passed */
	STORM_NO_SENDING,     /* EAGAIN, ENOBUFS, a part of the packets */
	STORM_SHORT_COPIES,   /* of other processes' memory; ENOMEM, EPERM */
	STORM_FAULTS,
};

/* From now on the calls of this thread fail at random, until storm_calm(). */
void storm_wild(void);
void storm_calm(void);
/* How often, in 1/1000 of calls that may fail; 0: never. */
void storm_faults(uint64_t seed, unsigned int rate);
/* A bit for each kind that may happen. */
void storm_fault_kinds(unsigned int which);
uint64_t storm_injected(void);

#endif
