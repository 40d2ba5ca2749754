/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errands are calls that may take as long as a client likes; threads that
 * nobody waits for do them: receiving a message that carries descriptors,
 * closing a connection that holds such messages, unmapping a client's memory.
 * The kernel ends a file in the thread that drops the last reference to it, and
 * that can block: a TCP socket lingers, a file system in user space answers
 * when it wants to, a large file takes time to be freed. The manager hands such
 * things over and goes on; it only ever peeks at a message that carries
 * descriptors, which drops none.
 *
 * A client has one errand at a time and counts as a client until it is over,
 * so that the limits of clients are those of threads. One that takes long is
 * sent signals, which end the lingering of sockets.
 */
#ifndef WF_DEVD_ERRAND_H
#define WF_DEVD_ERRAND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "devd/gift.h"

struct wf_devd_client;
struct wf_devd_errands;

enum wf_devd_errand_kind {
	WF_DEVD_ERRAND_RECEIVE,
	WF_DEVD_ERRAND_CLOSE,
	WF_DEVD_ERRAND_UNMAP,
};

/* Milliseconds that an errand may take before it is hurried: 2000. For tests. */
extern int wf_devd_errand_ms;

struct wf_devd_errand {
	struct wf_list link;
	pthread_t thread;
	uint64_t sent_at;
	struct wf_devd_errands *hub;
	enum wf_devd_errand_kind kind;
	struct wf_devd_client *client; /* the manager's; NULL: nobody's */
	int fd;			       /* the connection */
	pid_t pid;
	uint64_t limit;
	/* The result of RECEIVE: -EPIPE if the message is invalid. */
	int err;
	struct wf_broker_request request;
	struct wf_devd_gift gift; /* UNMAP: its region goes */
};

/* Results wake @wake_fd, an eventfd. */
int wf_devd_errands_open(struct wf_devd_errands **hub, int wake_fd);
/* Errands that run now end by themselves, however late, and close the connections
 * that they were given. */
void wf_devd_errands_close(struct wf_devd_errands *hub);

/* Starts a thread for an errand, or starts it later if too many run already.
 * wf_devd_errand_next() returns it when it is over. 0 or -ENOMEM. */
int wf_devd_errand_send(struct wf_devd_errands *hub,
			const struct wf_devd_errand *what,
			struct wf_devd_errand **sent);
/* Returns an errand that is over, for the caller to free(), or NULL. */
struct wf_devd_errand *wf_devd_errand_next(struct wf_devd_errands *hub);

/* Call it now and then: sends a signal (SIGUSR2, whose handler worker.c
 * installs) to threads that run for too long. */
void wf_devd_errands_hurry(struct wf_devd_errands *hub, uint64_t now);

/* Whether the connection holds messages, which may carry descriptors. Takes no
 * more from now on: if not, closing it does not block. */
bool wf_devd_errand_needed(int fd);

#endif
