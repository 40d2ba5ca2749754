/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics on one element of 8 bytes, the short way at their initiator: no
 * description of vectors is made, and what is kept until the reply is the place
 * of the result. proto_atomic.c does everything else: other sizes, channels
 * without room, fences, keys that were not used last. The target needs no other
 * rules (serve.c).
 */
#ifndef WF_SHM_WORD_H
#define WF_SHM_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "op/amo.h"
#include "shm/out.h"

struct wf_cntr;

struct wf_shm_word {
	/* In an order in which no two are copied together: the processor
	 * cannot forward two stores to one wider load. */
	uint64_t addr;
	uint64_t operand;
	uint64_t key;
	uint64_t compare;
	void *context;
	void *result; /* 8 bytes; not used by WF_OP_AMO_WRITE */
	struct wf_cntr *cntr;
	uint64_t comp_flags;
	uint8_t kind; /* enum wf_op_amo_kind; a valid operation: */
	uint8_t op;
	uint8_t type;
	bool wants_comp;
};

/* Sends the operation, which waits for no fence and for no delivery other than
 * its result. False: nothing was done, take wf_core_submit(). */
bool wf_shm_word_put(struct wf_shm_out *out, const struct wf_shm_word *word);

/* The reply to @tx, which has ->fetched. False if it is invalid. */
bool wf_shm_word_reply(struct wf_shm_out *out, struct wf_shm_tx *tx,
		       const struct wf_shm_reply *reply);

#endif
