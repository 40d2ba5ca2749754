/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker needs from the thing that is measured. One engine plays
 * messages over libfabric, one over bare shared memory, the others
 * what else a test of libfabric needs.
 */
#ifndef WF_TOOLS_BENCH_ENGINE_H
#define WF_TOOLS_BENCH_ENGINE_H

#include "tools/bench/control_defs.h"

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beside a window: acknowledgements, and a second posted receive. */
enum { WF_TOOLS_SPARE_OPS = 4 };

/* Distance of messages that must not share memory: a line, no false sharing. */
static inline size_t wf_tools_engine_slot(size_t size)
{
	return (size + 63) / 64 * 64;
}

struct wf_tools_engine_config {
	const char *name; /* provider, or what of the floor */
	bool initiator;
	bool tagged;
	bool rewrite;
	bool memfd; /* buffers lie in one */
	bool verify;
	bool yield;    /* give the CPU away when there is nothing yet */
	bool remote;   /* RMA and atomics are wanted */
	bool alone;    /* there is no other side to meet */
	unsigned more; /* in a window, messages of a batch; 0: none */
	enum fi_wait_obj wait_obj;
	unsigned window; /* the largest of any phase */
	size_t bytes;	 /* under way each way, at most, spare ones included */
};

struct wf_tools_timing {
	uint64_t ns;	     /* of the timed part; the initiator's only */
	uint64_t rewrite_ns; /* spent rewriting in the timed part */
	/* Of tests whose engine gives it; that of both sides is added up. */
	double value;
};

/*
 * All members are called by one thread. Errors are -errno with a text in error
 * (of error_len bytes), and mean that the engine can only be closed.
 */
struct wf_tools_engine_ops {
	/* Meets the other side over WF_TOOLS_FD_SIDE; blocks until it has. */
	int (*open)(const struct wf_tools_engine_config *config, void **engine,
		    char *error, size_t error_len);
	/* Initiator before it announces a phase, responder on hearing of it. */
	int (*prepare)(void *engine, const struct wf_tools_phase *phase);
	/* Both sides are prepared. Spins. */
	int (*play)(void *engine, const struct wf_tools_phase *phase,
		    struct wf_tools_timing *timing);
	/*
	 * While the other side finishes: its last send may need us. Does not
	 * block.
	 */
	int (*progress)(void *engine);
	/* After an error of prepare or play. */
	const char *(*error)(void *engine);
	/* What was opened, in words. */
	const char *(*describe)(void *engine);
	void (*close)(void *engine);
};

extern const struct wf_tools_engine_ops wf_tools_engine_fabric;
extern const struct wf_tools_engine_ops wf_tools_engine_floor;
extern const struct wf_tools_engine_ops wf_tools_engine_remote;
extern const struct wf_tools_engine_ops wf_tools_engine_peers;
extern const struct wf_tools_engine_ops wf_tools_engine_wake;
extern const struct wf_tools_engine_ops wf_tools_engine_socket;

#endif
