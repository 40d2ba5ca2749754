/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of events of an endpoint, for `weft trace`. It follows the page of waits
 * in the same memfd (waits_defs.h), so that it costs no descriptor of its own. A
 * reader turns it on by writing a time into `wanted`: the owner records until
 * then. A reader that is killed therefore leaves nothing on. All but the front
 * has no memory before it is first turned on.
 *
 * The owner reads nothing but `wanted` here: a reader can spoil what other
 * readers see, and nothing else.
 */
#ifndef WF_BASE_TRACE_DEFS_H
#define WF_BASE_TRACE_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/waits_defs.h"

#define WF_TRACE_MAGIC 0x72746677u /* "wftr" */
#define WF_TRACE_LAYOUT 1
#define WF_TRACE_CHANNELS 256
#define WF_TRACE_EVENTS 32768 /* 7 ms of 5 million messages a second */

enum wf_trace_type {
	WF_TRACE_NONE,
	WF_TRACE_PUT,	/* a slot was written; seq, kind, tag, len */
	WF_TRACE_TAKE,	/* slots were taken: len of them, seq the last */
	WF_TRACE_END,	/* an operation of ours is over; seq: its number */
	WF_TRACE_REPLY, /* the last answer to one of a peer's; its number */
	WF_TRACE_SLEEP, /* the endpoint goes to sleep ... */
	WF_TRACE_WAKE,	/* ... and is awake again */
	WF_TRACE_RING,	/* a peer that sleeps was woken */
	WF_TRACE_POLL,	/* progress looked at its descriptors */
	WF_TRACE_POST,	/* an operation by packets began; seq: of the message */
	WF_TRACE_DONE,	/* ... and is over */
	WF_TRACE_CAME,	/* the first packet of a message; seq */
	WF_TRACE_TYPES,
};

/* These are the kinds of a slot, as in shm/ring_defs.h, whose numbers these
 * are. */
#define WF_TRACE_SLOTS(X)                                                      \
	X(INLINE, "inline")                                                    \
	X(EAGER, "eager")                                                      \
	X(FIRST, "chunked")                                                    \
	X(NEXT, "chunk")                                                       \
	X(PARKED, "parked")                                                    \
	X(STREAM, "stream")                                                    \
	X(WRITE, "write")                                                      \
	X(READ, "read")                                                        \
	X(ATOMIC, "atomic")                                                    \
	X(NOTE, "note")

#define X(name, text) WF_TRACE_SLOT_##name,
enum wf_trace_slot { WF_TRACE_SLOT_NONE, WF_TRACE_SLOTS(X) WF_TRACE_SLOT_MAX };
#undef X

/* Events that name no channel. A channel that found no room in the table has
 * this number as well. */
#define WF_TRACE_NO_CHANNEL 0xffffu

/* PUT of a message that stays with its sender: the number by which END and
 * REPLY name it stands above its length. POST and DONE: the same. */
#define WF_TRACE_LEN_BITS 48

struct wf_trace_event {
	uint64_t ticks; /* wf_os_ticks() */
	uint64_t tag;
	uint64_t len;
	uint32_t seq;
	uint16_t channel;
	uint8_t type;
	uint8_t kind; /* PUT: of the slot, as in shm/ring_defs.h */
};

/* A channel in events: messages to a peer, or from a peer. */
struct wf_trace_channel {
	uint64_t place;
	char peer[56];
};

struct wf_trace_front {
	uint32_t magic;
	uint16_t layout;
	uint16_t pad;
	uint32_t pid;
	uint32_t pad2;
	uint64_t place;
	char name[56]; /* the endpoint's address */
	uint8_t pad3[48];
	_Atomic uint64_t wanted; /* ns of the monotonic clock; readers' */
	uint8_t pad4[56];
	_Atomic uint64_t written; /* events so far */
	_Atomic uint32_t channel_count;
	uint8_t pad5[3892];
};

struct wf_trace_page {
	struct wf_trace_front front;
	struct wf_trace_channel channels[WF_TRACE_CHANNELS];
	struct wf_trace_event events[WF_TRACE_EVENTS];
};

#define WF_TRACE_BYTES sizeof(struct wf_trace_page)
#define WF_TRACE_AT WF_WAITS_BYTES /* in the file */
#define WF_WAITS_FILE_BYTES (WF_TRACE_AT + WF_TRACE_BYTES)

static_assert(sizeof(struct wf_trace_event) == 32, "two to a line");
static_assert(sizeof(struct wf_trace_channel) == 64, "a line");
static_assert(offsetof(struct wf_trace_front, wanted) == 128, "two lines");
static_assert(offsetof(struct wf_trace_front, written) == 192, "a line apart");
static_assert(sizeof(struct wf_trace_front) == 4096, "a page");
static_assert(WF_TRACE_AT % 4096 == 0, "can be mapped alone");
static_assert(sizeof(struct wf_trace_page) % 4096 == 0, "whole pages");

#endif
