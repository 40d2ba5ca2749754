/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints of a node find each other through an abstract Unix socket named
 * after the endpoint's address. Abstract names belong to one network namespace
 * and disappear with the socket; the kernel tells which user and process are at
 * the other end. The connection stays open as long as the channel: when it
 * ends, the peer has ended. Nothing here runs per message.
 */
#ifndef WF_SHM_CONN_H
#define WF_SHM_CONN_H

#include <stdbool.h>
#include <stdint.h>

struct wf_shm_ep;
struct wf_shm_mover;
struct wf_shm_out;
struct wf_source;

/* Adds @sock to the endpoint's loop. 0 or -errno. */
int wf_shm_conn_watch(struct wf_shm_ep *ep, struct wf_source *sock);

/* Removes it from the loop, and closes it if it is open. */
void wf_shm_conn_drop(struct wf_shm_ep *ep, struct wf_source *sock);

/* The callback of a channel's socket when it is ready. */
void wf_shm_conn_out_ready(struct wf_source *source, uint32_t events,
			   uint64_t now);

/* Tries to connect and to send the hello. If it fails, the channel stays
 * CONNECTING and is tried again, or is marked dead. */
void wf_shm_conn_try(struct wf_shm_out *out, uint64_t now);

/* Nobody waits for the answer to our hello any more. False: there is none and
 * there will be none; the offer is withdrawn. */
bool wf_shm_conn_cut(struct wf_shm_out *out, uint64_t now);

/* WF_SHM_FEATURE_* and WF_SHM_WELCOME_* of the endpoint. */
uint32_t wf_shm_conn_features(const struct wf_shm_ep *ep);
uint32_t wf_shm_conn_flags(const struct wf_shm_ep *ep);

/* Whether @err, which is positive, may go away. */
bool wf_shm_conn_passes(int err);

/* Whether we try to copy from and to a peer with @features by its pid. */
bool wf_shm_conn_may_copy(const struct wf_shm_ep *ep, uint32_t features);
/* Counts it if we want to use CMA and know that we cannot. */
void wf_shm_conn_count_refusal(struct wf_shm_ep *ep,
			       const struct wf_shm_mover *mover);

/* When the next retry, warning or time-out is due, ns; UINT64_MAX: none is. */
uint64_t wf_shm_conn_next(const struct wf_shm_ep *ep);

/* Retries and time-outs, after the events of the sockets were handled. */
void wf_shm_conn_tend(struct wf_shm_ep *ep, uint64_t now);

#endif
