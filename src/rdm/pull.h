/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the memory of a sender into ours: the longer part of a message, or of
 * a write. Registers our side with the device for as long as it takes.
 */
#ifndef WF_RDM_PULL_H
#define WF_RDM_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "os/types.h"

struct wf_rdm_rx;

/* Reads the memory that rx->reads name, from rx->read_from on, into @iov, which
 * holds as many bytes as are wanted. @desc: what the application calls each part
 * of it, or NULL. 0, or -errno: it cannot be read. Ends with
 * rx->protocol->pulled(). */
int wf_rdm_pull_begin(struct wf_rdm_rx *rx, const struct iovec *iov,
		      void *const *desc, uint32_t count, uint64_t end);

/* A message that has its receive: reads as much of it as the receive holds. If
 * it cannot be read, its sender uses another protocol. */
void wf_rdm_pull_message(struct wf_rdm_rx *rx);

/* Posts reads; false when there is no room for all of them. */
bool wf_rdm_pull_pump(struct wf_rdm_rx *rx);

/* Deregisters our memory from the device. */
void wf_rdm_pull_end(struct wf_rdm_rx *rx);

/* Whether reads that the device has go on after that: wf_nic_mr_use(). */
bool wf_rdm_pull_is_lent(const struct wf_rdm_rx *rx);

/* Whether the read may access the memory of @key. */
bool wf_rdm_pull_uses(const struct wf_rdm_rx *rx, uint64_t key);

#endif
