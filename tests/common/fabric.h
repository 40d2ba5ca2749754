/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System tests share this: an endpoint with everything it needs, helpers that
 * drive it until an event or a deadline, and forked peers that know each
 * other's address. A test that hangs ends with a message.
 *
 * Waiting drives every endpoint that the calling thread has open, so both ends
 * may be in one thread.
 */
#ifndef WEFT_TESTS_COMMON_FABRIC_H
#define WEFT_TESTS_COMMON_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"

#define WEFT_TEST_NAME_MAX 64
#define WEFT_TEST_CNTRS 8

/* A wait that lasts longer than this is a hang. Generous: the machine may be
 * busy. */
#define WEFT_TEST_PATIENCE_MS 120000

/* Zero means the default: FI_MSG | FI_TAGGED, FI_THREAD_DOMAIN, FI_AV_TABLE,
 * FI_PROGRESS_MANUAL (automatic with WEFT_TEST_AUTO in the environment),
 * FI_CQ_FORMAT_TAGGED, the provider's sizes, 127.0.0.1 and any port. */
struct weft_test_opts {
	uint64_t caps;
	bool bare_caps;	   /* no others, also no directions, in the info */
	uint64_t tx_flags; /* op_flags of the endpoint's sides */
	uint64_t rx_flags;
	uint64_t tx_bind; /* flags besides FI_TRANSMIT */
	uint64_t rx_bind;
	enum fi_threading threading;
	enum fi_progress data_progress;
	enum fi_av_type av_type;
	enum fi_cq_format cq_format;
	enum fi_wait_obj wait_obj; /* FI_WAIT_UNSPEC for fi_cq_sread() */
	size_t cq_size;
	size_t tx_size;
	size_t rx_size;
	const char *node;    /* our own address, of either family ... */
	const char *service; /* ... and port */
	const char *av_name; /* name of a shared AV ... */
	uint64_t av_flags;   /* ... FI_READ opens an existing one */
	int mr_mode;
	uint64_t msg_order; /* of both sides */
	struct weft_test
		*sibling; /* share the fabric, domain and AV of this one ... */
	bool same_cqs;	  /* ... and its CQs */
	/* Called before fi_enable(), for example to bind counters. */
	void (*prepare)(struct weft_test *t, void *arg);
	void *prepare_arg;
	bool any_node; /* the provider chooses an address */
	bool no_txcq;  /* counters instead of queues */
	bool no_rxcq;
	bool shared_rx;	  /* the test binds a shared receive context */
	bool one_cq;	  /* txcq == rxcq */
	bool not_enabled; /* the test calls fi_enable() */
};

struct weft_test {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	const volatile fi_addr_t *map; /* of a shared AV */
	struct fid_cq *txcq;
	struct fid_cq *rxcq;
	struct fid_ep *ep;
	uint8_t name[WEFT_TEST_NAME_MAX]; /* our own address */
	size_t name_len;
	struct fid_cntr *cntrs[WEFT_TEST_CNTRS]; /* closed with the endpoint */
	struct weft_test *next; /* endpoints that this thread drives */
	bool domain_is_shared;
	bool cqs_are_shared;
};

/* One completion: ->ret is 1, or the negated error. */
struct weft_test_comp {
	int ret;
	struct fi_cq_tagged_entry entry; /* of a failure: as far as known */
	struct fi_cq_err_entry err;
	fi_addr_t src;
};

/* First call of a test: loads only weft, and after @seconds, at least 250, ends
 * the process as failed. Exits with 77 without FI_PROVIDER_PATH.
 * WEFT_TEST_PROVIDER names another provider, to see how it does in a test. */
void weft_test_begin(unsigned int seconds);

/* Loads all providers, which takes a while, so that children need not. The
 * FI_WEFT_* settings are read then and do not change afterwards. */
void weft_test_load(void);

/* Whether peers are reached by packets, on this host or another, for tests
 * where packets promise something else than shared memory does. */
bool weft_test_by_packets(void);

/* Opens everything. NULL: the defaults. Ends the process on failure. */
void weft_test_open(struct weft_test *t, const struct weft_test_opts *opts);
void weft_test_close(struct weft_test *t);

/* The same, but returns an error if opening or enabling can fail: 0 or -FI_E*,
 * and then nothing is left open. */
int weft_test_try_open(struct weft_test *t, const struct weft_test_opts *opts);

/* This thread no longer drives the endpoints opened so far. */
void weft_test_forget_all(void);

/* Reads our own address, after a late fi_enable(). */
void weft_test_name(struct weft_test *t);

/* A counter bound for the events in @flags to an endpoint that is not yet
 * enabled; it becomes the next of t->cntrs. */
struct fid_cntr *weft_test_cntr(struct weft_test *t, uint64_t flags,
				enum fi_wait_obj wait_obj);

/* Adds an address to the AV. */
fi_addr_t weft_test_insert(struct weft_test *t, const void *name);
/* Adds the address of another endpoint. */
fi_addr_t weft_test_know(struct weft_test *t, const struct weft_test *other);
/* 127.0.0.1 with @port, in the form of struct weft_test's name. */
void weft_test_name_of_port(uint8_t *name, uint16_t port);
uint16_t weft_test_port(const struct weft_test *t);

/* -- driving -------------------------------------------------------------- */

uint64_t weft_test_ms(void);

/* One round of progress for all endpoints of this thread, without reading a
 * completion. */
void weft_test_progress(void);
void weft_test_progress_for(unsigned int ms);

/* One completion if there is one. False: none. */
bool weft_test_poll(struct fid_cq *cq, struct weft_test_comp *comp);

/* The next completion of any kind, within the patience. */
void weft_test_wait(struct fid_cq *cq, struct weft_test_comp *comp);
/* The same within @ms; false if there was none. */
bool weft_test_wait_for(struct fid_cq *cq, struct weft_test_comp *comp,
			unsigned int ms);
/* The next completion must be a success of @context (NULL: any). */
void weft_test_wait_ok(struct fid_cq *cq, void *context);
/* The next completion must be a failure with @err (positive). */
void weft_test_wait_err(struct fid_cq *cq, void *context, int err);
/* Waits until the counter has reached @value: not more, and no error. */
void weft_test_count(struct fid_cntr *cntr, uint64_t value);

/* Posts that repeat while the call returns -FI_EAGAIN. They return the result
 * of the call. */
ssize_t weft_test_send(struct weft_test *t, const void *buf, size_t len,
		       fi_addr_t to, void *context);
ssize_t weft_test_tsend(struct weft_test *t, const void *buf, size_t len,
			fi_addr_t to, uint64_t tag, void *context);
/* Completes after delivery. */
ssize_t weft_test_tdeliver(struct weft_test *t, const void *buf, size_t len,
			   fi_addr_t to, uint64_t tag, void *context);
ssize_t weft_test_inject(struct weft_test *t, const void *buf, size_t len,
			 fi_addr_t to);
ssize_t weft_test_recv(struct weft_test *t, void *buf, size_t len,
		       void *context);
ssize_t weft_test_trecv(struct weft_test *t, void *buf, size_t len,
			uint64_t tag, uint64_t ignore, void *context);

/* A message that arrives and is checked: a send by @from and a receive by @to,
 * both in this thread. */
void weft_test_exchange(struct weft_test *from, fi_addr_t addr,
			struct weft_test *to, size_t len, uint64_t seed);

/* Bytes that depend on @seed, and whether a buffer holds them. */
void weft_test_fill(void *buf, size_t len, uint64_t seed);
bool weft_test_holds(const void *buf, size_t len, uint64_t seed);

/* Pseudo-random numbers, the same in every run. */
uint32_t weft_test_random(uint64_t *state);

/* -- peers in other processes ---------------------------------------------- */

/* A connection to another process; the process's death closes it. */
struct weft_test_line {
	int fd;
	pid_t pid; /* the child's pid; 0 in the child */
};

/* Runs @child in a new process, which dies with this one and does not drive its
 * endpoints; on the other host if there are two (net.h). It ends with exit code
 * 0 when @child returns. */
void weft_test_fork(struct weft_test_line *line,
		    void (*child)(struct weft_test_line *line, void *arg),
		    void *arg);

/* Waits for the child: it must have exited with 0. */
void weft_test_join(struct weft_test_line *line);
/* Kills and reaps it. */
void weft_test_kill(struct weft_test_line *line);

/* Bytes on the line; weft_test_get() returns false when the other end is
 * closed. Both give up after the patience. They drive no endpoint. */
void weft_test_put(struct weft_test_line *line, const void *buf, size_t len);
bool weft_test_get(struct weft_test_line *line, void *buf, size_t len);
/* The same, and drives this thread's endpoints while it waits. */
bool weft_test_get_driving(struct weft_test_line *line, void *buf, size_t len);

/* Sends our own address and gets the peer's; returns its fi_addr. */
fi_addr_t weft_test_meet(struct weft_test *t, struct weft_test_line *line);

/* Both reach this point before either continues; endpoints are driven. */
void weft_test_sync(struct weft_test_line *line);

/* Opens an endpoint on each side, exchanges addresses, runs both, closes, and
 * waits for the child. Makes calls only after weft_test_begin(). */
typedef void (*weft_test_side)(struct weft_test *t, fi_addr_t peer,
			       struct weft_test_line *line, void *arg);
void weft_test_pair(const struct weft_test_opts *opts, weft_test_side child,
		    weft_test_side parent, void *arg);

/* -- what is left behind --------------------------------------------------- */

struct weft_test_traces {
	int descriptors;
	int rings;	/* mappings of weft's memory */
	size_t private; /* bytes: RssAnon of the process */
	int files;	/* with weft in the name, in /dev/shm and /tmp */
};

void weft_test_look(struct weft_test_traces *traces);
/* The same descriptors, rings and files as before; no child processes. */
void weft_test_check_clean(const struct weft_test_traces *before);

#endif
