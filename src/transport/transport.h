/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport: one way to reach peers. The core knows transports by this table
 * alone, asks them in order which of them reaches an address, and drives all of
 * them that are on. Transports do not know each other.
 *
 * Each is opened by a function of its own, as each has settings of its own,
 * with the host (host.h) and its way, and is off until it sets way->on.
 */
#ifndef WF_TRANSPORT_TRANSPORT_H
#define WF_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/waits.h"
#include "op/tx.h"
#include "transport/host.h"

enum wf_polled {
	WF_POLLED_WAITING, /* nothing, but what was sent is not answered */
	WF_POLLED_NOTHING,
	WF_POLLED_SOMETHING,
};

/* All are called with the endpoint's lock held, and none blocks. Those that may
 * be NULL say so. */
struct wf_transport {
	const char *name;
	/* What nobody can wait for gets so long to leave when the endpoint is
	 * closed. */
	uint64_t linger_ns;

	/* Frees everything; operations under way are forgotten. */
	void (*close)(void *self);
	/* In a forked child: closes the copies of descriptors, lets go of
	 * memory that is shared. Async-signal-safe. */
	void (*forked)(void *self);

	/* Whether @addr can be reached by it, 1 or 0. -errno: that cannot be
	 * found out now, for want of a descriptor or of memory. */
	int (*reaches)(const void *self, const struct wf_addr *addr);
	/* Takes an operation of any kind. 0: a completion or a count tells how
	 * it ends; -EAGAIN: not now; else -errno: there is no way to @dst, and
	 * nothing else tells of it. @tx is the caller's. */
	int (*submit)(void *self, uint64_t dst, const struct wf_tx *tx);
	/* Whether it has peers. */
	bool (*has_peers)(const void *self);

	/* The following six only while the way is on. */
	/* The result matters to a transport whose polls are system calls:
	 * while they find nothing and another one has peers, it is polled less
	 * often. Others return WF_POLLED_WAITING. */
	enum wf_polled (*poll)(void *self);
	/* The clock was looked at, after the last poll. */
	void (*tick)(void *self, uint64_t now);
	/* The descriptors were looked at: retries, time-outs, statistics.
	 * Returns in how many ns they are to be looked at again. */
	uint64_t (*look)(void *self, uint64_t now);
	/* Adds what operations wait for to a report that is being written;
	 * may note in them when they were first seen. May be NULL. */
	void (*waits)(void *self, struct wf_waits *waits, uint64_t now);
	/* Events are recorded from now on (host->trace), or not any more.
	 * Returns the table that is to be used from now on. May be NULL. */
	const struct wf_transport *(*trace)(void *self, bool on);
	/* The endpoint closes. Gives up what lies in buffers of the
	 * application, which may be gone, and makes progress with the rest.
	 * True: something is left that nobody can wait for. */
	bool (*drain)(void *self);

	/* Going to sleep, while on: peers are told that they have to wake us.
	 * False: not now, make progress. After the barrier on all processors
	 * that follows, has_work() looks again. Both lower *@deadline, ns of the
	 * monotonic clock, to when progress is needed even if nobody wakes us.
	 */
	bool (*doze)(void *self, uint64_t *deadline);
	bool (*has_work)(void *self, uint64_t *deadline);
	/* Awake again, or doze() of another transport said no. */
	void (*wake)(void *self);

	/* The AV changed; the last, in a way that nobody told of: all names
	 * are looked at again. @taken: a transport before this one reaches
	 * @addr, although it may not be of this network namespace. */
	void (*inserted)(void *self, uint64_t name, const struct wf_addr *addr,
			 bool taken);
	void (*removed)(void *self, uint64_t name);
	void (*renamed)(void *self);
	/* The registration with @key goes away: nobody reads into it any more.
	 * May be NULL. */
	void (*unregistered)(void *self, uint64_t key);
};

/* A transport of an endpoint. */
struct wf_way {
	const struct wf_transport *ops;
	void *self;
	bool on;       /* is polled; the transport sets it */
	uint32_t idle; /* polls in a row that found nothing */
};

#endif
