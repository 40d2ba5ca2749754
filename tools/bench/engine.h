/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the calls that a worker makes to the thing that it
 * measures. One engine sends messages over libfabric, one over bare shared
 * memory; the others are for further tests of libfabric.
 */
#ifndef WF_TOOLS_BENCH_ENGINE_H
#define WF_TOOLS_BENCH_ENGINE_H

#include "tools/bench/control_defs.h"

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In addition to a window: acknowledgements, and a second posted receive. */
enum { WF_TOOLS_SPARE_OPS = 4 };

/* Distance of messages that must not share memory: a line, no false sharing. */
static inline size_t wf_tools_engine_slot(size_t size)
{
	return (size + 63) / 64 * 64;
}

struct wf_tools_engine_config {
	const char *name; /* provider, or which test of the floor */
	bool initiator;
	bool tagged;
	bool rewrite;
	bool memfd; /* buffers are in one */
	bool verify;
	bool yield;    /* yield the CPU when there is nothing to do */
	bool remote;   /* RMA and atomics are needed */
	bool alone;    /* there is no other side to connect to */
	unsigned more; /* in a window, messages of a batch; 0: none */
	enum fi_wait_obj wait_obj;
	unsigned window; /* the largest of any phase */
	size_t bytes; /* in flight in each direction, at most, including spare ones */
};

struct wf_tools_timing {
	uint64_t ns;	     /* of the timed part; only for the initiator */
	uint64_t rewrite_ns; /* spent rewriting in the timed part */
	/* For tests whose engine reports it; the values of both sides are
	 * added. */
	double value;
};

/*
 * One thread calls all members. Errors are -errno with a text in error (of
 * error_len bytes), and mean that the engine can only be closed.
 */
struct wf_tools_engine_ops {
	/* Connects to the other side over WF_TOOLS_FD_SIDE; blocks until that
	 * is done. */
	int (*open)(const struct wf_tools_engine_config *config, void **engine,
		    char *error, size_t error_len);
	/* Called by the initiator before it announces a phase, by the responder
	 * when it hears of it. */
	int (*prepare)(void *engine, const struct wf_tools_phase *phase);
	/* Both sides are prepared. Spins. */
	int (*play)(void *engine, const struct wf_tools_phase *phase,
		    struct wf_tools_timing *timing);
	/*
	 * Called while the other side finishes, because its last send may need
	 * us. Does not block.
	 */
	int (*progress)(void *engine);
	/* After an error of prepare or play. */
	const char *(*error)(void *engine);
	/* Describes what was opened. */
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
