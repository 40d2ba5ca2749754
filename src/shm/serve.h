/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on remote memory at their target: writes, reads and atomics that
 * peers request through the ring, and notes about accesses that peers made by
 * themselves. Every key, bound and number is checked against the domain's
 * registrations; a refused operation touches nothing and is reported to the
 * initiator.
 */
#ifndef WF_SHM_SERVE_H
#define WF_SHM_SERVE_H

#include "shm/in.h"

/* The request of a slot, copied out of shared memory once. */
struct wf_shm_request {
	struct wf_shm_rma rma;
	uint64_t total; /* bytes of the whole operation */
	uint64_t data;
	uint8_t flags; /* WF_SHM_SLOT_* */
	const uint8_t *bytes;
	size_t bytes_len; /* as many as may be read there */
};

/* 0 or -EPROTO. */
int wf_shm_serve_write(struct wf_shm_in *in, const struct wf_shm_request *req);
int wf_shm_serve_read(struct wf_shm_in *in, const struct wf_shm_request *req);
int wf_shm_serve_atomic(struct wf_shm_in *in, const struct wf_shm_request *req);
/* With WF_SHM_RMA_WORD, straight out of the slot that @word describes. */
int wf_shm_serve_word(struct wf_shm_in *in, const struct wf_shm_slot *slot,
		      uint64_t word);
int wf_shm_serve_note(struct wf_shm_in *in, const struct wf_shm_request *req);

#endif
