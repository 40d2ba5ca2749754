/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application that every simulated process runs: one endpoint, messages to
 * and from all others, and everything that it may have posted at a time.
 */
#ifndef SIM_APP_H
#define SIM_APP_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "oracle.h"
#include "sim.h"

#define APP_OPS 8
#define APP_RECEIVES 8
#define APP_MULTIS 2
#define APP_GUARD 64
#define APP_KEY 0x77
#define APP_SLOT 2048 /* part of a window, one for each peer */
#define APP_PORT 7000
#define APP_STRIDE 32 /* ports of one incarnation, or of first endpoints */
#define APP_SECOND 16384

enum app_what { APP_SEND, APP_RECV, APP_MULTI, APP_REMOTE };
enum app_remote { APP_WRITE, APP_READ, APP_ADD, APP_ADD_TWO, APP_REMOTES };

/* Memory that may be posted, with guard bytes on both sides. First member of
 * every structure that serves as a context. */
struct app_buf {
	struct fi_context2 context;
	enum app_what what;
	bool posted;
	bool send; /* the peer may read it, not write */
	uint8_t *addr;
	size_t len;
};

struct app_op {
	struct app_buf buf;
	uint64_t id;
	enum oracle_fate fate; /* the result if it succeeds */
	enum app_remote remote;
	unsigned int peer, peer_life;
	uint64_t version;
	uint32_t bytes;
	uint64_t operand;
	uint64_t begun;
	uint64_t computed; /* time of computing before it began */
	bool prompt;	   /* it completes even if the peer makes no call */
};

struct app_recv {
	struct app_buf buf;
	uint64_t post;
	size_t used; /* of a multi-receive */
};

/* This struct holds what a process knows about its slot in the window of a
 * peer. */
struct app_slot {
	bool busy, known;
	unsigned int life;
	uint64_t version;
	uint32_t bytes;
};

enum app_phase { APP_WORKS, APP_DONE, APP_CLOSES, APP_GONE };

struct sim_app {
	struct sim_proc *proc;
	struct sim_rng rng;
	struct sim_rng draws; /* what is sent next */
	enum app_phase phase;
	const char *doing;
	struct fi_provider *provider;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t addr[SIM_PROCS];
	unsigned int addr_life[SIM_PROCS];
	/* With shared receives: the context, and a second endpoint with a queue
	 * of its own. */
	struct fid_ep *srx, *second;
	struct fid_cq *second_cq;
	struct fi_info *second_info;
	fi_addr_t second_addr[SIM_PROCS];
	bool turn; /* which queue is read next */
	struct app_op ops[APP_OPS];
	struct app_recv receives[APP_RECEIVES];
	struct app_recv multis[APP_MULTIS];
	uint8_t *window;
	size_t window_bytes;
	bool window_open;
	struct app_slot slots[SIM_PROCS];
	uint64_t versions;
	uint64_t posts;
	unsigned int left; /* messages to send */
	unsigned int under_way;
	unsigned int owed[SIM_PROCS]; /* answers that are owed */
	unsigned int credit;	      /* their sum */
	bool awaiting;		      /* an answer */
	uint64_t asked_at;
	uint64_t computed;   /* time without a call */
	bool met[SIM_PROCS]; /* a message to that peer has completed */
};

void *app_main(void *arg);
void app_print(const struct sim_app *app, FILE *to);
bool app_may_touch(const struct sim_app *app, const char *addr, size_t len,
		   bool write);

/* app_open.c */
int app_open(struct sim_app *app);
/* The address of a client that has restarted with another one. */
int app_renew_peer(struct sim_app *app, unsigned int peer);
/* Which process owns a port. */
unsigned int app_of_port(uint16_t port);
/* Closes the second endpoint and its queue. */
void app_close_second(struct sim_app *app);
void app_close(struct sim_app *app);
/* Allocates the memory, once for each incarnation. */
void app_prepare(struct sim_app *app);
void app_check_guards(const struct sim_app *app);

/* app_remote.c */
bool app_remote_start(struct sim_app *app, struct app_op *op,
		      unsigned int peer);
void app_remote_ended(struct sim_app *app, struct app_op *op, int err);
void app_remote_check_end(void);

/* The director allows all processes to close. */
extern bool app_all_done;

#endif
