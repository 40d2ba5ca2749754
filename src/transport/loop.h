/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors of an endpoint: one epoll set and one timer. A thread that
 * waits for the endpoint waits for the set. The owner of a descriptor adds a
 * source; the loop calls it back when the descriptor is ready and knows nothing
 * else of it. The endpoint's lock covers all of it.
 */
#ifndef WF_TRANSPORT_LOOP_H
#define WF_TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "os/poll.h"

/* A watched descriptor; a member of the object that owns it. */
struct wf_source {
	int fd; /* -1: none */
	/* @events are those of epoll(7). May add and drop sources, but free
	 * none that may have an event as well: only itself. NULL: the
	 * descriptor only wakes the thread that waits. */
	void (*ready)(struct wf_source *source, uint32_t events, uint64_t now);
};

struct wf_loop {
	int epoll_fd;
	struct wf_source timer;
};

/* The end of a peer, or of its half of the connection. */
#define WF_LOOP_OVER (EPOLLHUP | EPOLLRDHUP | EPOLLERR)

/* 0 or -errno. */
int wf_transport_loop_open(struct wf_loop *loop);
void wf_transport_loop_close(struct wf_loop *loop);

/* Starts to watch @source. 0 or -errno. */
int wf_transport_loop_add(struct wf_loop *loop, struct wf_source *source);

/* Stops watching; the descriptor stays open. */
void wf_transport_loop_remove(struct wf_loop *loop, struct wf_source *source);

/* The same, and closes the descriptor if it is open. It is removed from the set
 * first: a child that was forked meanwhile holds the descriptor open until it
 * closes it, and a descriptor that is only closed would still produce events,
 * for memory that is freed. */
void wf_transport_loop_drop(struct wf_loop *loop, struct wf_source *source);

/* The descriptor of @from becomes that of @to. An event of @from that was not
 * called back for yet still goes there. */
void wf_transport_loop_move(struct wf_loop *loop, struct wf_source *from,
			    struct wf_source *to);

/* Calls back the sources that are ready; does not wait. */
void wf_transport_loop_run(struct wf_loop *loop, uint64_t now);

/* Expires after @ns, 0: never, and then makes the epoll descriptor readable
 * until it is set again: it is not read, so that every thread that waits there
 * is woken. False without a descriptor for it. */
bool wf_transport_loop_set(struct wf_loop *loop, uint64_t ns);

#endif
