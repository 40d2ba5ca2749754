/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channels of an endpoint: the channels for sending, which are found by the
 * fi_addr_t of the peer and created at the first operation; the channels for
 * receiving; and the end of both. A channel that dies is only marked, and freed
 * when no function uses it any more.
 */
#ifndef WF_SHM_CHANNELS_H
#define WF_SHM_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

struct wf_addr;
struct wf_shm_ep;
struct wf_shm_in;
struct wf_tx;

/* Submits everything that did not take the fast path (put.h). 0, -EAGAIN, or
 * -errno if @dst cannot be reached. */
int wf_shm_channels_submit(struct wf_shm_ep *ep, uint64_t dst,
			   const struct wf_tx *tx);

/* The fi_addr_t of the peer that states the address @addr (AF_UNSPEC: it has no
 * address); WF_MATCH_ANY: the AV does not have it. */
uint64_t wf_shm_channels_name(const struct wf_shm_ep *ep,
			      const struct wf_addr *addr);

/* Whether the address @known of the AV means the peer that states the address
 * @peer. */
bool wf_shm_channels_is_meant(const struct wf_shm_ep *ep,
			      const struct wf_addr *peer,
			      const struct wf_addr *known);

/* The AV changed. wf_shm_channels_renamed(): any entry may have changed. */
void wf_shm_channels_inserted(struct wf_shm_ep *ep, uint64_t name,
			      const struct wf_addr *addr);
void wf_shm_channels_removed(struct wf_shm_ep *ep, uint64_t name);
void wf_shm_channels_renamed(struct wf_shm_ep *ep);

/* A peer has connected: its ring is polled from now on. 0 or -ENOMEM. */
int wf_shm_channels_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* Removes it again. */
void wf_shm_channels_drop_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* A call failed with @err (positive). If there was no descriptor for it, gives back
 * those that are kept for tables of registrations (regs.h), and warns if that does
 * not help (silence.h). */
void wf_shm_channels_spare_fds(struct wf_shm_ep *ep, int err, uint64_t now);

/* Frees dead channels, and reads the messages that closed peers left. */
void wf_shm_channels_reap(struct wf_shm_ep *ep);

#endif
