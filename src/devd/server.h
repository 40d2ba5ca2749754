/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the software device share this: the server, its clients, their
 * channels. The manager thread owns all of it; a worker owns the queues of the
 * channels assigned to it until it returns them. Each field names its owner.
 */
#ifndef WF_DEVD_SERVER_H
#define WF_DEVD_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "chan/broker_defs.h"
#include "devd/devd.h"
#include "devd/gift.h"
#include "devd/region.h"
#include "devd/stats.h"
#include "devd/user.h"
#include "drv/accel_defs.h"
#include "queue/cq.h"
#include "queue/sub.h"

struct wf_devd_device {
	struct wf_devd_device_config config;
	unsigned int in_use;
	uint64_t opened, turned_away;
	uint64_t memory; /* bytes reserved */
	struct wf_stats stats;
	/* Sums of the channels that were closed. */
	uint64_t counted[WF_DEVD_STAT_COUNTED];
	struct wf_devd_account account;
};

/* The object behind a descriptor in the manager's epoll set. */
enum wf_devd_source {
	WF_DEVD_LISTENER,
	WF_DEVD_INBOX,
	WF_DEVD_CLIENT,
};

/* A process that has connected. Lives until the last of its channels has come
 * back from its worker. */
struct wf_devd_client {
	enum wf_devd_source source; /* first: epoll points here */
	struct wf_list link;
	struct wf_devd *devd;
	int fd;
	int pidfd; /* -1: not known */
	pid_t pid;
	uid_t uid;
	struct wf_devd_user *user;
	atomic_bool spoiler; /* set by a worker: it blocked the worker */
	bool greeted;
	bool gone; /* it has disconnected; workers return its channels */
	/* Under way for it: no request is served until it is done. */
	struct wf_devd_errand *errand;
	uint32_t next_chan;
	unsigned int n_chans;
	unsigned int n_kept; /* see kept.h; each counts as a channel */
	unsigned int pins;   /* keep it from being freed while in use */
	struct wf_list chans;
	uint64_t memory;    /* bytes reserved */
	uint64_t next_iova; /* of its domain */
};

/* A channel: a queue of a device that a client has opened. */
struct wf_devd_chan {
	struct wf_list in_client; /* manager */
	struct wf_list in_worker; /* worker; before that, its lock */
	struct wf_list in_inbox;  /* the server's inbox_lock */
	struct wf_devd_client *client;
	struct wf_devd_device *device;
	struct wf_devd_worker *worker; /* NULL: not started */
	uint32_t id;
	uint32_t algs;
	bool sva;
	int memory;	    /* SVA: the client's, see gift.h; -1 */
	bool closing;	    /* manager: asked back from the worker */
	bool answer;	    /* manager: a CLOSE waits for it */
	bool faulted;	    /* worker, as the next */
	uint64_t looked_at; /* when its client was seen alive */
	atomic_bool leave;  /* manager to worker: give it back */
	struct wf_devd_counts counts;
	/* Set once, when memory is reserved or shared; the release pairs with
	 * the acquire in job.c. */
	struct wf_devd_region *_Atomic region;
	struct wf_devd_kept *queues;
	void *base; /* both regions, mapped */
	size_t bytes;
	struct wf_accel_mmio *mmio;
	uint8_t *stage; /* behind the rings */
	uint32_t stage_size;
	struct wf_queue_work work;
	struct wf_queue_cqw cqw;
	int kick_fd;  /* the client writes, we only watch */
	int event_fd; /* we write */
};

struct wf_devd {
	struct wf_devd_config config;
	struct wf_devd_device devices[WF_DEVD_DEVICES_MAX];
	struct wf_devd_worker *workers;
	struct wf_devd_arena arena;
	enum wf_devd_source listener_source, inbox_source;
	int listen_fd, epoll_fd, inbox_fd;
	int lock_fd; /* next to the socket; -1 */
	struct wf_devd_errands *errands;
	unsigned int refusing; /* connections that errands close */
	bool deaf;	       /* too many of them: we do not accept */
	atomic_bool stop, interrupted;
	bool crowded;	      /* warned once: no room for clients */
	uint64_t said_at;     /* last warning of those that clients cause */
	uint64_t deaf_at;     /* the same for ->deaf */
	uint64_t ticked_at;   /* clients were last looked after */
	uint64_t swept_at;    /* what clients keep was last looked at */
	uint64_t refilled_at; /* quotas of users were last filled up */
	bool busy;	      /* jobs were done since */
	bool waits;	      /* jobs wait for the quota of their user */
	struct wf_list clients, users;
	struct wf_list kept; /* see kept.h */
	unsigned int n_kept;
	atomic_uint n_clients, n_chans;
	_Atomic uint64_t clients_seen, chans_seen;
	pthread_mutex_t inbox_lock;
	struct wf_list inbox; /* channels that workers have given back */
};

/* -- chan.c ---------------------------------------------------------------- */

/* Makes regions and descriptors; @memfd is for the client, to be closed. */
int wf_devd_chan_make(struct wf_devd_client *client,
		      struct wf_devd_device *device, struct wf_devd_chan **chan,
		      int *memfd);
/* Memory that counts against the limits of the client. */
void wf_devd_chan_charge(struct wf_devd_chan *chan,
			 struct wf_devd_region *region);
/* Drops a reference to a region. An errand unmaps memory of a client. */
void wf_devd_chan_put_region(struct wf_devd *devd,
			     struct wf_devd_region *region);
/* For a channel that neither a worker nor a client uses any more. */
void wf_devd_chan_free(struct wf_devd_chan *chan);
void wf_devd_chan_record(const struct wf_devd *devd,
			 const struct wf_devd_device *device,
			 struct wf_broker_record *record);

/* -- client.c: one request at a time --------------------------------------- */

/* A request came, or the connection ended. Frees the client if it has
 * disconnected and nothing uses it any more. */
void wf_devd_client_serve(struct wf_devd_client *client);
int wf_devd_client_accept(struct wf_devd *devd);
/* Ends the connection and asks for its channels. */
void wf_devd_client_drop(struct wf_devd_client *client);
/* An errand came back. Frees it. */
void wf_devd_client_returned(struct wf_devd *devd,
			     struct wf_devd_errand *errand);
/* The device ends: clients whose errand still runs are freed without it. */
void wf_devd_client_forget_all(struct wf_devd *devd);
/* A channel came back from its worker. */
void wf_devd_client_reap(struct wf_devd_chan *chan);
/* Call it now and then: tells clients that wait for a CLOSE that we are alive,
 * and removes clients that hold us up. */
void wf_devd_client_tick(struct wf_devd *devd);
/* Whether the process is there, so that its memory is its own. Any thread. */
bool wf_devd_client_here(const struct wf_devd_client *client);

/* -- request.c ------------------------------------------------------------- */

/* Fills in the reply and up to WF_BROKER_FDS_MAX descriptors to send and close.
 * Takes what is kept out of @gift. False: the reply comes later (CLOSE). */
bool wf_devd_request_handle(struct wf_devd_client *client,
			    const struct wf_broker_request *request,
			    struct wf_devd_gift *gift,
			    struct wf_broker_reply *reply, int *fds);
/* Takes a channel from its worker, or at once if it has none. */
void wf_devd_request_close(struct wf_devd_chan *chan);

#endif
