/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channels of an endpoint: those that it sends by, found by the name
 * (fi_addr_t) of the peer and made at the first operation; those that it
 * receives by; and the end of either. A channel that dies is only marked, and
 * freed when nobody is inside it.
 */
#ifndef WF_SHM_CHANNELS_H
#define WF_SHM_CHANNELS_H

#include <stdint.h>

struct wf_addr;
struct wf_shm_ep;
struct wf_shm_in;
struct wf_tx;

/* Everything that did not take the fast path (put.h). 0, -EAGAIN, or -errno
 * when there is no way to @dst. */
int wf_shm_channels_submit(struct wf_shm_ep *ep, uint64_t dst,
			   const struct wf_tx *tx);

/* The name of the peer that calls itself @addr (AF_UNSPEC: it has no address);
 * WF_MATCH_ANY: it has none. */
uint64_t wf_shm_channels_name(const struct wf_shm_ep *ep,
			      const struct wf_addr *addr);

/* The AV changed; the last: anything in it may have. */
void wf_shm_channels_inserted(struct wf_shm_ep *ep, uint64_t name,
			      const struct wf_addr *addr);
void wf_shm_channels_removed(struct wf_shm_ep *ep, uint64_t name);
void wf_shm_channels_renamed(struct wf_shm_ep *ep);

/* A peer connected: from now on its ring is polled. -ENOMEM. */
int wf_shm_channels_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* Takes it out again. */
void wf_shm_channels_drop_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* Frees the dead, and reads what closed peers have left. */
void wf_shm_channels_reap(struct wf_shm_ep *ep);

#endif
