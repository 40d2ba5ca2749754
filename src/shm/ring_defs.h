/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared layout of one channel: everything that two builds of weft on one
 * node must agree on. A channel carries messages one way, from the process
 * that made the region (the sender) to the one that maps it (the receiver).
 *
 *   header   identity, version and sizes; then one line for each group of words
 *            that one side writes and the other reads
 *   slots    two lines per message, with the payload of small ones; a message of
 *            up to 32 bytes touches only one line. The first of them are in the
 *            page of the header: small messages need that page and no other
 *   data     from a page on: payload that does not fit into the slot, in lines
 *   replies  one page: receiver to sender, 32 bytes each
 *   shares   one page: for messages that both sides copy
 *   returns  where the receiver puts the result of a read or of a fetching
 *            atomic
 *
 * The sender takes memory for a part before it uses it or asks the receiver to
 * use it: for the first page at once, for the rest when it is needed (region.h).
 * The receiver touches the slot after the last one that it has read, records that
 * slots name, and replies, shares and returns that it was asked to use.
 *
 * The memory of a slot never holds payload, so a stale or hostile payload cannot
 * look like a slot. The sender writes the word that describes a slot for every
 * message. It writes the word last, with the sequence in it. The receiver writes
 * nothing per slot; it returns credit in batches.
 * Slots follow each other, and so do records; the sender may go back to the
 * start of either before its end (lap.h), and sets a flag to say so. Positions
 * are computed from counts and lengths: no offset and no pointer is ever taken
 * from the peer.
 *
 * Any change here changes WF_SHM_LAYOUT. Additions that old builds can ignore
 * get a feature bit instead.
 */
#ifndef WF_SHM_RING_DEFS_H
#define WF_SHM_RING_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define WF_SHM_MAGIC 0x74666577u /* "weft" */
#define WF_SHM_LAYOUT 7

/* These flags say what a side supports; a channel uses what both sides
 * announce. */
#define WF_SHM_FEATURE_ACK 0x1u	    /* delivery-complete acknowledgements */
#define WF_SHM_FEATURE_SHARE 0x2u   /* copying by both sides */
#define WF_SHM_FEATURE_STREAM 0x4u  /* large messages through the ring */
#define WF_SHM_FEATURE_BARRIER 0x8u /* membarrier(2) reaches this process */
#define WF_SHM_FEATURE_GUARD 0x10u  /* probe_addr is a guard page */
#define WF_SHM_FEATURE_WORD 0x20u   /* WF_SHM_RMA_WORD */
#define WF_SHM_FEATURE_AROUND 0x40u /* WF_SHM_WAYS_AROUND */
#define WF_SHM_FEATURES                                                        \
	(WF_SHM_FEATURE_ACK | WF_SHM_FEATURE_SHARE | WF_SHM_FEATURE_STREAM |   \
	 WF_SHM_FEATURE_BARRIER | WF_SHM_FEATURE_GUARD | WF_SHM_FEATURE_WORD | \
	 WF_SHM_FEATURE_AROUND)

#define WF_SHM_PAGE 4096
#define WF_SHM_SLOTS_LOG2_MIN 4
#define WF_SHM_SLOTS_LOG2_MAX 16
#define WF_SHM_LINES_LOG2_MIN 8
#define WF_SHM_LINES_LOG2_MAX 20

/* A pair of lines, because processors fetch lines in pairs: the second line of
 * a 64-byte message then costs almost nothing, and elsewhere a cache miss. */
#define WF_SHM_SLOT_SIZE 128

/* Payload bytes in the slot itself, and in one record of the data area. */
#define WF_SHM_INLINE_MAX 96
#define WF_SHM_LINE_MAX 32 /* of them in its first line */
#define WF_SHM_RECORD_MAX 8192

/* Replies in the ring at a time, and how many one operation may get: share,
 * stream, final. Messages that both sides copy, at a time. */
#define WF_SHM_REPLIES 64
#define WF_SHM_REPLIES_PER_OP 3
#define WF_SHM_SHARES 32
#define WF_SHM_SHARE_IOV 4

/* Returns in flight, and bytes of each. */
#define WF_SHM_RETURNS 2
#define WF_SHM_RETURN_MAX 4096

enum wf_shm_kind {
	WF_SHM_KIND_INLINE = 1, /* payload in the slot */
	WF_SHM_KIND_EAGER,	/* payload in one record */
	WF_SHM_KIND_FIRST,	/* first record of several: ->eager.total */
	WF_SHM_KIND_NEXT,	/* the following ones */
	WF_SHM_KIND_PARKED,	/* payload stays with the sender: ->parked */
	WF_SHM_KIND_STREAM,	/* a piece of a parked message: ->stream */
	WF_SHM_KIND_WRITE,	/* a piece of a write: ->rma, and its bytes */
	WF_SHM_KIND_READ,	/* asks for a piece of memory: ->rma */
	WF_SHM_KIND_ATOMIC,	/* ->rma, operands, values to compare with */
	WF_SHM_KIND_NOTE,	/* the sender wrote or read by itself: ->rma */
	WF_SHM_KIND_MAX,
};

#define WF_SHM_SLOT_TAGGED 0x1u
#define WF_SHM_SLOT_DATA 0x2u	    /* slot.data is CQ data */
#define WF_SHM_SLOT_ACK 0x4u	    /* ->eager.op waits for the final reply */
#define WF_SHM_SLOT_TURN 0x8u	    /* the next slot is the first one */
#define WF_SHM_SLOT_DATA_TURN 0x10u /* this record is at the start */
#define WF_SHM_SLOT_AROUND 0x20u    /* it was written around the caches */
#define WF_SHM_SLOT_STAMPED 0x40u   /* EAGER: ->eager.stamp is set */

/* First word: the sequence is in the low half, so one load is enough to see a
 * new slot and its description. */
#define WF_SHM_WORD(seq, len, kind, flags)                                     \
	((uint64_t)(uint32_t)(seq) | (uint64_t)(len) << 32 |                   \
	 (uint64_t)(kind) << 48 | (uint64_t)(flags) << 56)
#define WF_SHM_WORD_SEQ(word) ((uint32_t)(word))
#define WF_SHM_WORD_LEN(word) ((uint16_t)((word) >> 32))
#define WF_SHM_WORD_KIND(word) ((uint8_t)((word) >> 48))
#define WF_SHM_WORD_FLAGS(word) ((uint8_t)((word) >> 56))

struct wf_shm_eager {
	uint64_t total; /* FIRST: bytes of the whole message */
	uint32_t op;	/* ACK: the sender's operation */
	uint32_t stamp; /* when it was sent (pace.h); 0: not said. FIRST, and
			 * EAGER with SLOT_STAMPED */
};

struct wf_shm_parked {
	uint64_t total;
	uint32_t op;
	uint32_t iov_count; /* 1: here; more: in a record of the data area */
	uint64_t addr;
	uint32_t stamp; /* as in wf_shm_eager */
	uint32_t pad;
};

struct wf_shm_stream {
	uint64_t offset;
	uint32_t op;
	uint32_t pad;
};

/* Remote memory. Its data follows it in the slot (->rma_bytes) if it fits, and
 * the slot has no record; otherwise the data is the record. The slot's tag is
 * the number of bytes of the whole operation. */
struct wf_shm_rma {
	uint64_t addr; /* address or offset, as registered */
	uint64_t key;
	uint32_t op;	/* ACK: the sender's operation */
	uint32_t len;	/* bytes of this piece in the receiver's memory */
	uint8_t flags;	/* WF_SHM_RMA_* */
	uint8_t buffer; /* READ, and ATOMIC above 8 bytes: which return */
	uint8_t amo_kind;
	uint8_t amo_op;
	uint8_t amo_type;
	uint8_t pad[3];
};

#define WF_SHM_RMA_LAST 0x1u  /* the operation ends with this piece */
#define WF_SHM_RMA_WRITE 0x2u /* NOTE: it was a write */
/* ATOMIC on 8 bytes: the operand is slot.data and the value to compare with is
 * slot.spare, so that all of it is in the first line of the slot. */
#define WF_SHM_RMA_WORD 0x4u
#define WF_SHM_RMA_BYTES_MAX 64

struct wf_shm_slot {
	_Atomic uint64_t word;
	uint64_t tag;
	uint64_t data;
	uint64_t spare; /* payload is aligned: no store is split by a line;
			 * used with WF_SHM_RMA_WORD only */
	union {
		uint8_t payload[WF_SHM_INLINE_MAX];
		struct wf_shm_eager eager;
		struct wf_shm_parked parked;
		struct wf_shm_stream stream;
		struct {
			struct wf_shm_rma rma;
			uint8_t rma_bytes[WF_SHM_RMA_BYTES_MAX];
		};
	};
};

static_assert(sizeof(struct wf_shm_slot) == WF_SHM_SLOT_SIZE, "two lines");
static_assert(offsetof(struct wf_shm_slot, payload) == 32, "header, then data");
static_assert(sizeof(struct wf_shm_parked) <= WF_SHM_INLINE_MAX, "fits");
static_assert(sizeof(struct wf_shm_rma) == 32, "the rest of its line");
static_assert(offsetof(struct wf_shm_slot, rma_bytes) == WF_LINE,
	      "second line");

/* Elements of a record that describes a parked message in several parts. */
struct wf_shm_part {
	uint64_t addr;
	uint64_t len;
};

enum wf_shm_reply_kind {
	WF_SHM_REPLY_SHARE = 1, /* help to copy: the share is filled in */
	WF_SHM_REPLY_STREAM,	/* send ->len bytes through the ring */
	WF_SHM_REPLY_FINAL,	/* ->status; the operation is over */
	WF_SHM_REPLY_KIND_MAX,
};

struct wf_shm_reply {
	_Atomic uint32_t seq; /* written last */
	uint32_t op;
	uint32_t kind;
	int32_t status; /* 0 or a positive errno */
	uint64_t len;	/* STREAM: bytes; FINAL of an atomic: 8 bytes fetched */
	uint32_t share; /* SHARE: which; FINAL of a return: which buffer */
	uint32_t pad;
};

static_assert(sizeof(struct wf_shm_reply) == 32, "two per line");

/* Copying by both sides: both claim chunks from one counter. The receiver fills
 * in the share before it replies; afterwards each side writes its own words. */
struct wf_shm_share {
	_Atomic uint32_t claimed;	/* next chunk; both add */
	_Atomic uint32_t sender_done;	/* chunks the sender has copied */
	_Atomic uint32_t sender_failed; /* errno; it claims no more chunks */
	uint32_t iov_count;
	uint64_t chunk;
	uint64_t len;
	struct wf_shm_part iov[WF_SHM_SHARE_IOV]; /* in the receiver */
	uint8_t pad[32];
};

static_assert(sizeof(struct wf_shm_share) == 128, "two lines");
static_assert(sizeof(struct wf_shm_share) * WF_SHM_SHARES == WF_SHM_PAGE,
	      "one page of shares");

/* By which path the sender shall send messages that could use either
 * (pace.h). */
#define WF_SHM_WAYS_RING(kind) (1u << (kind))
#define WF_SHM_WAYS_KNOWN(kind) (1u << (8 + (kind))) /* else it decides */
#define WF_SHM_WAYS_STAMP 0x10000u /* and write the time of sending */
/* Records are written around the caches. */
#define WF_SHM_WAYS_AROUND(kind) (1u << (17 + (kind)))

struct wf_shm_header {
	uint32_t magic;
	uint16_t layout;
	uint8_t slots_log2;
	uint8_t lines_log2;
	uint8_t pad0[56];
	/* The receiver's line: the number of consumed slots in the low half, of
	 * data lines in the high half, so that one store returns both; and
	 * whether it is reading from a buffer of the sender, if both are in the
	 * same process. */
	_Atomic uint64_t credit WF_ALIGNED(WF_LINE);
	_Atomic uint32_t reading;
	uint8_t pad1[52];
	/* The sender's line: the number of replies that it has handled. */
	_Atomic uint32_t replies_seen WF_ALIGNED(WF_LINE);
	uint8_t pad2[60];
	/* Whether the receiver polls this ring (0), or wants its bell set
	 * (board_defs.h); and which path messages shall take, WF_SHM_WAYS_*.
	 * Rarely written: the sender reads it for every message, from its own
	 * cache. */
	_Atomic uint32_t bell_wanted WF_ALIGNED(WF_LINE);
	_Atomic uint32_t ways;
	uint8_t pad3[56];
	/* A sender that sleeps until a reply or credit comes sets the first
	 * word; the side that brings it clears the word and writes to the
	 * socket. The second word says that the sender has given up everything
	 * in flight. From then on its buffers may contain anything, so a
	 * receiver that has read from them checks this word afterwards. Both
	 * are rarely written, and the receiver reads them for every message
	 * that it answers, from its own cache. */
	_Atomic uint32_t sender_asleep WF_ALIGNED(WF_LINE);
	_Atomic uint32_t sender_left;
	uint8_t pad4[56];
};

static_assert(offsetof(struct wf_shm_header, credit) == 64, "a line apart");
static_assert(offsetof(struct wf_shm_header, replies_seen) == 128, "and apart");
static_assert(offsetof(struct wf_shm_header, bell_wanted) == 192, "and apart");
static_assert(offsetof(struct wf_shm_header, sender_asleep) == 256, "apart");
static_assert(sizeof(struct wf_shm_header) == 320, "five lines");

#define WF_SHM_SLOTS_AT 512

/* Slots that the first page has. */
#define WF_SHM_FIRST_SLOTS ((WF_SHM_PAGE - WF_SHM_SLOTS_AT) / WF_SHM_SLOT_SIZE)

static_assert(sizeof(struct wf_shm_header) <= WF_SHM_SLOTS_AT, "fits");
static_assert(WF_SHM_SLOTS_AT % WF_SHM_SLOT_SIZE == 0, "pairs of lines");
static_assert(sizeof(struct wf_shm_reply) * WF_SHM_REPLIES <= WF_SHM_PAGE,
	      "one page of replies");

static inline size_t wf_shm_page_after(size_t at)
{
	return (at + WF_SHM_PAGE - 1) & ~(size_t)(WF_SHM_PAGE - 1);
}

static inline size_t wf_shm_data_at(unsigned int slots_log2)
{
	return wf_shm_page_after(WF_SHM_SLOTS_AT +
				 ((size_t)WF_SHM_SLOT_SIZE << slots_log2));
}

static inline size_t wf_shm_replies_at(unsigned int slots_log2,
				       unsigned int lines_log2)
{
	return wf_shm_page_after(wf_shm_data_at(slots_log2) +
				 ((size_t)WF_LINE << lines_log2));
}

static inline size_t wf_shm_shares_at(unsigned int slots_log2,
				      unsigned int lines_log2)
{
	return wf_shm_replies_at(slots_log2, lines_log2) + WF_SHM_PAGE;
}

static inline size_t wf_shm_returns_at(unsigned int slots_log2,
				       unsigned int lines_log2)
{
	return wf_shm_shares_at(slots_log2, lines_log2) + WF_SHM_PAGE;
}

static inline size_t wf_shm_region_bytes(unsigned int slots_log2,
					 unsigned int lines_log2)
{
	return wf_shm_returns_at(slots_log2, lines_log2) +
	       (size_t)WF_SHM_RETURNS * WF_SHM_RETURN_MAX;
}

#endif
