/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page that says what an endpoint waits for (`weft why`). Its owner writes it
 * now and then while it makes progress, and before it sleeps. Another process
 * can read it at any time, also while the owner is stopped or computes.
 *
 * It is at the beginning of a memfd of this name, found by a reader of the same
 * user in the owner's /proc/<pid>/fd; a ring of events follows it
 * (trace_defs.h). Times are ns of the monotonic clock, which all processes of a
 * host share.
 *
 * There are two banks. The owner fills in the one that is not current, then
 * makes it the current one. An owner that is stopped in the middle has left the
 * other bank whole.
 */
#ifndef WF_BASE_WAITS_DEFS_H
#define WF_BASE_WAITS_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WF_WAITS_FILE "weft-waits"
#define WF_WAITS_MAGIC 0x77746677u /* "wftw" */
#define WF_WAITS_LAYOUT 1
#define WF_WAITS_BYTES 16384
#define WF_WAITS_MAX 62 /* in a bank */

/* These kinds of things wait. The second column is its name in JSON. */
#define WF_WAIT_KINDS(X)                                                       \
	X(NONE, "none")                                                        \
	X(CONNECT, "connect") /* nothing waits but the connection itself */    \
	X(SEND, "send")                                                        \
	X(WRITE, "write")                                                      \
	X(READ, "read")                                                        \
	X(ATOMIC, "atomic")                                                    \
	X(RECEIVE, "receive")	/* posted, without a message */                \
	X(MESSAGE, "message")	/* unexpected: has no receive */               \
	X(TRANSFER, "transfer") /* of a peer: its bytes are on the way */      \
	X(CQ, "cq")		/* a completion queue that is full */

/* They wait for one of these steps. */
#define WF_WAIT_STEPS(X)                                                       \
	X(NONE, "none")                                                        \
	X(LISTENER, "listener") /* nobody listens at the address */            \
	X(WELCOME, "welcome")	/* the peer has not answered the hello */      \
	X(ROOM, "room")		/* in the peer's ring or receive buffers */    \
	X(QUEUE, "queue")	/* for its turn behind operations before it */ \
	X(FENCE, "fence")	/* for the answers to operations before it */  \
	X(DELIVERY, "delivery") /* the peer has not acknowledged packets */    \
	X(MATCH, "match")	/* for a receive at the peer */                \
	X(ANSWER, "answer")	/* for the peer's answer */                    \
	X(BYTES, "bytes")	/* for the peer to send or copy the rest */    \
	X(MESSAGE, "message")	/* for a message */                            \
	X(RECEIVE, "receive")	/* for a receive of the application's */       \
	X(READER, "reader")	/* for the application to read the queue */    \
	X(OWN_CQ, "own_cq")	/* for room in the own completion queue */

#define X(name, text) WF_WAIT_##name,
enum wf_wait_kind { WF_WAIT_KINDS(X) WF_WAIT_KIND_COUNT };
#undef X

#define X(name, text) WF_WAIT_FOR_##name,
enum wf_wait_step { WF_WAIT_STEPS(X) WF_WAIT_STEP_COUNT };
#undef X

/* Flags of a wait. */
#define WF_WAIT_TAGGED 0x1u  /* tag and ignore mean something */
#define WF_WAIT_ANYONE 0x2u  /* a receive that takes messages of any peer */
#define WF_WAIT_PACKETS 0x4u /* by packets, else through shared memory */

struct wf_wait {
	uint8_t kind;
	uint8_t step;
	uint8_t flags;
	uint8_t pad;
	uint32_t count; /* of the same kind, this one included */
	uint64_t since; /* at most a moment later than it began */
	uint64_t tag;
	uint64_t ignore;
	uint64_t len;	   /* bytes; CQ: entries that stop progress */
	uint64_t done;	   /* of them; CQ: entries that are not read */
	uint64_t place;	   /* of the peer; 0: its address states none */
	char peer[56];	   /* its address; empty: not known */
	char protocol[16]; /* empty: none is chosen */
};

struct wf_waits_bank {
	uint64_t written;
	uint32_t count;
	uint32_t left_out;   /* waits for which there was no room here */
	uint32_t posted;     /* receives, all */
	uint32_t unexpected; /* messages, all */
	uint32_t operations; /* of ours that are not complete */
	uint32_t pad[9];
	struct wf_wait waits[WF_WAITS_MAX];
};

struct wf_waits_page {
	uint32_t magic;
	uint16_t layout;
	uint16_t pad;
	uint32_t pid;
	_Atomic uint32_t current; /* bank */
	uint64_t opened;
	uint64_t place; /* of the endpoint; 0: its address states none */
	char name[56];	/* its address */
	/* When progress last looked at the clock, and since when the endpoint
	 * is asleep: a peer or a timer wakes it. 0: it is awake. */
	_Atomic uint64_t polled;
	_Atomic uint64_t asleep;
	uint8_t pad2[152];
	struct wf_waits_bank banks[2];
};

static_assert(sizeof(struct wf_wait) == 128, "two lines");
static_assert(offsetof(struct wf_wait, peer) == 56, "after the numbers");
static_assert(offsetof(struct wf_waits_bank, waits) == 64, "a line");
static_assert(offsetof(struct wf_waits_page, polled) == 88, "after the name");
static_assert(offsetof(struct wf_waits_page, banks) == 256, "four lines");
static_assert(sizeof(struct wf_waits_page) <= WF_WAITS_BYTES, "four pages");

#endif
