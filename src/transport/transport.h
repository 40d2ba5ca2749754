/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport: one way to reach peers. The core knows transports only by this
 * table, asks them in order which of them reaches an address, and polls all of
 * them that are on. Transports do not know each other.
 *
 * Each is opened by a function of its own, because each has settings of its
 * own, with the host (host.h) and its way, and is off until it sets way->on.
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
	/* How long operations that nobody can wait for may take to leave when
	 * the endpoint is closed. */
	uint64_t linger_ns;

	/* Frees everything; operations under way are forgotten. */
	void (*close)(void *self);
	/* In a forked child: closes the copies of descriptors and releases
	 * shared memory. Async-signal-safe. */
	void (*forked)(void *self);

	/* Whether it can reach @addr, 1 or 0. -errno: there is no descriptor or
	 * memory to find it out now. */
	int (*reaches)(const void *self, const struct wf_addr *addr);
	/* Takes an operation of any kind. 0: a completion or a count reports
	 * how it ends; -EAGAIN: not now; other -errno: @dst cannot be reached,
	 * and nothing else reports it. @tx stays the caller's. */
	int (*submit)(void *self, uint64_t dst, const struct wf_tx *tx);
	/* Whether it has peers. */
	bool (*has_peers)(const void *self);

	/* The following six only while the way is on. */
	/* The result matters to a transport whose polls are system calls:
	 * while they find nothing and another one has peers, it is polled less
	 * often. Others return WF_POLLED_WAITING. */
	enum wf_polled (*poll)(void *self);
	/* The clock was read, after the last poll. */
	void (*tick)(void *self, uint64_t now);
	/* The descriptors were checked: retries, time-outs, statistics. Returns
	 * in how many ns to check them again. */
	uint64_t (*look)(void *self, uint64_t now);
	/* Adds what operations wait for to a report that is being written;
	 * may note in them when they were first seen. May be NULL. */
	void (*waits)(void *self, struct wf_waits *waits, uint64_t now);
	/* Events are recorded from now on (host->trace), or not any more.
	 * Returns the table that is to be used from now on. May be NULL. */
	const struct wf_transport *(*trace)(void *self, bool on);
	/* The endpoint closes. Gives up operations on buffers of the
	 * application, which may be gone, and makes progress with the rest.
	 * True: operations are left that nobody can wait for. */
	bool (*drain)(void *self);

	/* Going to sleep, while on: tells peers that they must wake us. False:
	 * not now, make progress. After the barrier on all processors that
	 * follows, has_work() checks again. Both lower *@deadline, ns of the
	 * monotonic clock, to the time at which progress is needed even if
	 * nobody wakes us. */
	bool (*doze)(void *self, uint64_t *deadline);
	bool (*has_work)(void *self, uint64_t *deadline);
	/* Awake again, or doze() of another transport returned false. */
	void (*wake)(void *self);

	/* The AV changed. The last of these: it changed without a notification,
	 * so check all names again. @taken: a transport before this one reaches
	 * @addr, although it may not be of this network namespace. */
	void (*inserted)(void *self, uint64_t name, const struct wf_addr *addr,
			 bool taken);
	void (*removed)(void *self, uint64_t name);
	void (*renamed)(void *self);
	/* The registration with @key goes away: nothing may access it any more.
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
