/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host of a transport is the endpoint that it works for. The core
 * (src/core) fills it in before it opens a transport, and owns all of it; a
 * transport reads it, and writes only through the functions below. The
 * endpoint's lock covers all of it.
 */
#ifndef WF_TRANSPORT_HOST_H
#define WF_TRANSPORT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cpu.h"
#include "op/names.h"
#include "transport/loop.h"

struct wf_cntr;
struct wf_compq;
struct wf_regs;
struct wf_rxq;
struct wf_shm_in;
struct wf_shm_out;
struct wf_trace;

/* Polls between two looks at the clock, at most: a look costs as much as ten
 * polls. */
#define WF_HOST_POLLS_PER_CLOCK 32

struct wf_host {
	/* The short way to poll (core/ep.h): the only ring of shared memory that
	 * is watched, as long as there is nothing else to do. Its transport
	 * sets it; NULL asks for the long way. */
	struct wf_shm_in *only;
	/* The same while replies are all that is waited for besides: those of
	 * this channel. It is set only if ->only is not. */
	struct wf_shm_out *asked;
	uint32_t polls;	      /* WF_HOST_POLLS_PER_CLOCK: look at the clock */
	uint32_t quiet_ticks; /* looks at the clock since something came */
	struct wf_compq *txq; /* completions of our operations */
	struct wf_rxq *rxq;   /* receives */
	bool asleep;	 /* peers were told so; the next progress wakes us */
	bool forked;	 /* we are a child: touch nothing */
	bool rested;	 /* since the clock was looked at */
	bool joined;	 /* barriers on all processors reach us ... */
	bool all_joined; /* ... and every peer */
	uint32_t polls_per_clock; /* as long as polls take what they took */
	uint64_t now;		  /* when the clock was last looked at, ns */
	uint64_t look_at; /* when the descriptors are looked at again, ns */
	struct wf_loop loop;
	struct wf_trace *trace; /* events are recorded; NULL: they are not */

	struct wf_addr addr; /* what peers call us */
	size_t tx_size;	     /* operations under way at most */
	struct wf_names names;
	struct wf_regs *regs;	       /* of the domain */
	bool is_target;		       /* peers may access its memory */
	struct wf_cntr *remote_writes; /* count accesses of peers; or NULL */
	struct wf_cntr *remote_reads;
};

/* There is more to do than to poll one ring: a channel was opened or died, a
 * message waits for room or for a reply, a transport was started. Progress
 * notices by itself when this is over. */
static inline void wf_transport_host_busy(struct wf_host *host)
{
	host->only = NULL;
	host->asked = NULL;
}

/* Something arrived: do not yield the processor for a while. */
static inline void wf_transport_host_active(struct wf_host *host)
{
	host->quiet_ticks = 0;
}

/* The next look at the clock looks at the descriptors as well. */
static inline void wf_transport_host_look(struct wf_host *host)
{
	host->look_at = 0;
}

/* For a call that makes no progress, a send or a receive, and found or began
 * something that needs progress: wakes the threads that wait for the loop. Does
 * nothing unless the endpoint is asleep; it stays asleep until one of them
 * makes progress. */
static inline void wf_transport_host_wake(struct wf_host *host)
{
	if (wf_unlikely(host->asleep))
		wf_transport_loop_set(&host->loop, 1);
}

#endif
