/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header defines the messages on the Unix socket that opens a channel: one
 * hello with the descriptor of the region, one welcome with those of the
 * receiver's board and registrations. A hello with an offer (offer.h) has those
 * of its own board and registrations, too. Fields may be added at the end;
 * `size` tells how many bytes the sender knows.
 *
 * A letter may come instead of the hello: a message, and nothing follows it.
 *
 * Later, either side writes a byte to wake the other; its value means nothing.
 * A note tells what happens to the socket (link.h).
 */
#ifndef WF_SHM_CONN_DEFS_H
#define WF_SHM_CONN_DEFS_H

#include <assert.h>
#include <stdint.h>

/* Every layout version starts with these 16 bytes. */
struct wf_shm_greeting {
	uint32_t magic;
	uint16_t layout;
	uint16_t size;
	uint32_t features;
	int32_t status; /* welcome: 0, or the positive errno of the refusal */
};

struct wf_shm_hello {
	struct wf_shm_greeting greeting;
	uint64_t process;     /* random per process; equal: the same memory */
	uint64_t probe_addr;  /* the sender's guard page; 0: it has none ... */
	uint64_t probe_value; /* ... and the number in its first 8 bytes */
	uint8_t slots_log2;
	uint8_t lines_log2;
	uint8_t pad[2];
	uint8_t addr[28]; /* sockaddr_in or sockaddr_in6 of the sender */
	uint32_t offers;  /* 1: the memfd has a second region, for the receiver
			   * of the hello to send; for that channel: */
	uint32_t bell;	  /* ... as in the welcome */
	uint32_t flags;
	uint32_t number;
};

struct wf_shm_welcome {
	struct wf_shm_greeting greeting;
	uint64_t process;
	uint64_t probe_addr;
	uint64_t probe_value;
	uint32_t bell;	   /* the sender's number on the board */
	uint32_t flags;	   /* WF_SHM_WELCOME_* */
	uint32_t number;   /* of the channel at the receiver; never reused */
	uint32_t declines; /* 1: the offer of the hello will not be used */
};

/* In the features of a greeting: no hello, but a letter (letter.h), which the
 * receiver answers by closing the socket, or by a welcome that refuses it. */
#define WF_SHM_GREETING_LETTER 0x80000000u

/* Bytes of a message that may go as a letter; they follow the head. */
#define WF_SHM_LETTER_MAX 96

struct wf_shm_letter_head {
	struct wf_shm_greeting greeting;
	uint64_t tag;
	uint64_t data; /* for the completion, if the flags say so */
	uint32_t len;
	uint32_t flags;	  /* WF_SHM_SLOT_TAGGED, WF_SHM_SLOT_DATA */
	uint8_t addr[28]; /* as in a hello */
	uint8_t pad[4];
};

/* More than the longest, to see that one is longer. */
#define WF_SHM_LETTER_ROOM                                                     \
	(sizeof(struct wf_shm_letter_head) + WF_SHM_LETTER_MAX + 1)

enum wf_shm_note_kind {
	WF_SHM_NOTE_JOIN = 1, /* use the socket of the channel ->number */
	WF_SHM_NOTE_JOINED,
	WF_SHM_NOTE_LEFT,     /* the sending end of ->number is closed */
	WF_SHM_NOTE_SHUT,     /* the receiving end of ->number is closed */
	WF_SHM_NOTE_DECLINED, /* the offer ->number will not be used */
};

struct wf_shm_note {
	uint32_t kind;
	uint32_t number;
};

/* The receiver has counters for remote accesses to any of its memory: a sender
 * that writes or reads by itself must send a NOTE (ring_defs.h). */
#define WF_SHM_WELCOME_WRITES 0x1u
#define WF_SHM_WELCOME_READS 0x2u
/* The receiver was opened without remote access to its memory: the table of its
 * registrations does not come, and initiators take each key for an unknown one. */
#define WF_SHM_WELCOME_NO_TABLE 0x4u

/* With WF_SHM_FEATURE_GUARD, probe_addr is a guard page (guard.h). Peers may
 * write to it from the second line on: every call that writes elsewhere first
 * writes one word there. */
#define WF_SHM_GUARD_BYTES 4096
#define WF_SHM_GUARD_LINE 64

/* How peers find the life page (life.h). */
struct wf_shm_life_name {
	uint64_t inode;
	uint32_t fd;	   /* of the process */
	uint32_t is_there; /* 0: it has none */
};

/* The first line of a guard page. */
struct wf_shm_guard_line {
	uint64_t process;
	struct wf_shm_life_name life;
};

static_assert(sizeof(struct wf_shm_guard_line) == 24, "as read");
static_assert(sizeof(struct wf_shm_guard_line) <= WF_SHM_GUARD_LINE, "fits");

/* Descriptors that come with a welcome (board, registrations) and with a hello
 * (region; with an offer also board and registrations), in this order; without
 * the last one if the flags say so. */
#define WF_SHM_WELCOME_FDS 2
#define WF_SHM_HELLO_FDS 3

static_assert(sizeof(struct wf_shm_greeting) == 16, "known to all versions");
static_assert(sizeof(struct wf_shm_hello) == 88, "as sent");
static_assert(sizeof(struct wf_shm_letter_head) == 72, "as sent");
static_assert(sizeof(struct wf_shm_welcome) == 56, "as sent");
static_assert(sizeof(struct wf_shm_note) == 8, "no wake is as long");

#endif
