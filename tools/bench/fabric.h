/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One libfabric endpoint with one peer: opened, named, with the peer's address
 * and with buffers. pattern.c sends the messages.
 */
#ifndef WF_TOOLS_BENCH_FABRIC_H
#define WF_TOOLS_BENCH_FABRIC_H

#include "tools/bench/engine.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* libfabric may use the context from post to completion, so each operation has
 * its own. */
struct wf_tools_fabric_op {
	struct fi_context2 context; /* first: completions point here */
	uint8_t *buf;
	uint64_t number; /* number of the expected message */
};

struct wf_tools_fabric {
	struct wf_tools_engine_config config;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* NULL if the provider needs none */
	void *desc;
	fi_addr_t peer;
	struct fid_mr *exposed; /* what the peer may read and write; or NULL */
	uint64_t remote_addr;	/* of the peer's memory */
	uint64_t remote_key;
	size_t inject_size;
	uint8_t *memory; /* config.bytes to send, as many to receive */
	size_t memory_len;
	int memfd; /* memfd of that memory, or -1 */
	struct wf_tools_fabric_op *sends;
	struct wf_tools_fabric_op *receives;
	unsigned n_ops; /* of each */
	uint64_t sent;	/* that will generate a completion */
	uint64_t sent_done;
	uint64_t received;
	struct wf_tools_fabric_op **finished; /* receives in order: a ring */
	uint64_t finished_mask;
	uint8_t goodbye[8]; /* receives the message that a phase is over */
	char error[256];
	char about[128];
};

/* As wf_tools_engine_ops.open. */
int wf_tools_fabric_open(const struct wf_tools_engine_config *config,
			 struct wf_tools_fabric **fabric, char *error,
			 size_t error_len);

void wf_tools_fabric_close(struct wf_tools_fabric *fabric);

/* Opens another endpoint, bound and enabled like the first. */
int wf_tools_fabric_open_ep(struct wf_tools_fabric *fabric, struct fid_ep **ep);

/* Over the side channel: sends the name of an endpoint, and receives and
 * inserts one. */
int wf_tools_fabric_tell_name(struct wf_tools_fabric *fabric,
			      struct fid_ep *ep);
int wf_tools_fabric_hear_name(struct wf_tools_fabric *fabric, fi_addr_t *addr);

/*
 * Gives each op its buffer for messages of a size. All share one, as in
 * ucx_perftest and fabtests; if bytes are checked, each op in flight needs its
 * own.
 */
void wf_tools_fabric_carve(struct wf_tools_fabric *fabric, size_t size);

/* Puts the result of a call (-FI_E*) into fabric->error; returns ret. */
int wf_tools_fabric_fail(struct wf_tools_fabric *fabric, const char *what,
			 long ret);

/* Reads the error that -FI_EAVAIL announced; returns it as a negative
 * number. */
int wf_tools_fabric_cq_error(struct wf_tools_fabric *fabric);

/* Engines over one struct wf_tools_fabric share these functions: the members of
 * struct wf_tools_engine_ops, with the fabric as engine. */
int wf_tools_fabric_begin(const struct wf_tools_engine_config *config,
			  void **engine, char *error, size_t error_len);
int wf_tools_fabric_progress(void *engine);
const char *wf_tools_fabric_error(void *engine);
const char *wf_tools_fabric_describe(void *engine);
void wf_tools_fabric_end(void *engine);

#endif
