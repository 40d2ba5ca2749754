/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One libfabric endpoint that knows one peer: opened, named, connected by
 * address, with buffers. The messages themselves are pattern.c's.
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

/* Libfabric may own the context from post to completion, hence one each. */
struct wf_tools_fabric_op {
	struct fi_context2 context; /* first: completions point here */
	uint8_t *buf;
	uint64_t number; /* of the message it waits for */
};

struct wf_tools_fabric {
	struct wf_tools_engine_config config;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* NULL where the provider needs none */
	void *desc;
	fi_addr_t peer;
	struct fid_mr *exposed; /* what the peer may read and write; or NULL */
	uint64_t remote_addr;	/* of the peer's memory */
	uint64_t remote_key;
	size_t inject_size;
	uint8_t *memory; /* config.bytes to send from, as many to receive in */
	size_t memory_len;
	int memfd; /* that memory lies in, or -1 */
	struct wf_tools_fabric_op *sends;
	struct wf_tools_fabric_op *receives;
	unsigned n_ops; /* of each */
	uint64_t sent;	/* that will give a completion */
	uint64_t sent_done;
	uint64_t received;
	struct wf_tools_fabric_op **finished; /* receives, in order, a ring */
	uint64_t finished_mask;
	uint8_t goodbye[8]; /* takes the word that a phase is over */
	char error[256];
	char about[128];
};

/* As wf_tools_engine_ops.open. */
int wf_tools_fabric_open(const struct wf_tools_engine_config *config,
			 struct wf_tools_fabric **fabric, char *error,
			 size_t error_len);

void wf_tools_fabric_close(struct wf_tools_fabric *fabric);

/* One more endpoint beside the first, bound and enabled like it. */
int wf_tools_fabric_open_ep(struct wf_tools_fabric *fabric, struct fid_ep **ep);

/* Over the side channel: the name of an endpoint, and one that is inserted. */
int wf_tools_fabric_tell_name(struct wf_tools_fabric *fabric,
			      struct fid_ep *ep);
int wf_tools_fabric_hear_name(struct wf_tools_fabric *fabric, fi_addr_t *addr);

/*
 * Gives each op its buffer for messages of a size. All share one, as in
 * ucx_perftest and fabtests; checking bytes needs one for each under way.
 */
void wf_tools_fabric_carve(struct wf_tools_fabric *fabric, size_t size);

/* Notes what a call answered (-FI_E*) in fabric->error; returns ret. */
int wf_tools_fabric_fail(struct wf_tools_fabric *fabric, const char *what,
			 long ret);

/* Reads the error that -FI_EAVAIL announced; returns it, negative. */
int wf_tools_fabric_cq_error(struct wf_tools_fabric *fabric);

/* What engines over one struct wf_tools_fabric share: as the members of struct
 * wf_tools_engine_ops, the engine being the fabric. */
int wf_tools_fabric_begin(const struct wf_tools_engine_config *config,
			  void **engine, char *error, size_t error_len);
int wf_tools_fabric_progress(void *engine);
const char *wf_tools_fabric_error(void *engine);
const char *wf_tools_fabric_describe(void *engine);
void wf_tools_fabric_end(void *engine);

#endif
