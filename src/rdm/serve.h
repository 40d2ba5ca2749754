/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory at its target: writes, reads and atomics of peers on memory of
 * ours, by key.
 */
#ifndef WF_RDM_SERVE_H
#define WF_RDM_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_rdm_peer;
struct wf_rdm_rx;
struct wf_wire_iov;

/* Bytes of all segments, or -EPROTO if they are more than possible. */
int wf_rdm_serve_total(const struct wf_wire_iov *iov, uint32_t count,
		       uint64_t *total);

/* Puts bytes at an offset of the memory that @segs name together; @last: these
 * are the last of the operation. 0 or -FI_EKEYREJECTED. */
int wf_rdm_serve_put(struct wf_rdm_peer *peer, const struct wf_wire_iov *segs,
		     uint32_t count, uint64_t offset, const void *bytes,
		     size_t len, bool last);

/* Whether all of it may be accessed like that. */
int wf_rdm_serve_check(struct wf_rdm_peer *peer, const struct wf_wire_iov *segs,
		       uint32_t count, uint64_t access);

/* A write is complete: informs those who asked for it. */
void wf_rdm_serve_written(struct wf_rdm_peer *peer, bool has_data,
			  uint64_t data, uint64_t total);

/* The packet for WF_RDM_OWES_ANSWER; false if no packet is free. */
bool wf_rdm_serve_answer(struct wf_rdm_rx *rx);

#endif
