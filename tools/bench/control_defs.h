/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header defines the messages between the parent and the workers, and
 * between the two workers. Both ends are always the same binary, so the layouts
 * carry no version.
 */
#ifndef WF_TOOLS_BENCH_CONTROL_DEFS_H
#define WF_TOOLS_BENCH_CONTROL_DEFS_H

#include <stdint.h>

/* A worker's descriptors. */
enum {
	WF_TOOLS_FD_CONTROL = 3, /* SOCK_SEQPACKET to the parent */
	WF_TOOLS_FD_SIDE = 4,	 /* SOCK_SEQPACKET to the other worker */
	WF_TOOLS_FD_MEMORY = 5,	 /* memory of the floor, otherwise not open */
};

/* Parent to initiator: measure this. */
struct wf_tools_run {
	uint32_t test;
	uint32_t window;
	uint64_t size;
	uint64_t run_ns;
};

/* Worker to parent: once when it is ready, and the initiator after each run. */
struct wf_tools_reply {
	int32_t status;	  /* 0, or -errno, and text has the reason */
	uint32_t padding; /* zero */
	uint64_t count;	  /* messages in the timed part */
	double ns;	  /* per message, one way; or the engine's own value */
	char text[256];	  /* an error, or what was opened */
};

/* Initiator to responder: run this phase with me; without messages: open the
 * test's engine. */
struct wf_tools_phase {
	uint32_t test;
	uint32_t window;
	uint64_t size;
	uint64_t warm;	/* messages before the clock starts */
	uint64_t count; /* messages that are timed */
};

/* Responder to initiator: ready for the phase, and later done with it. */
struct wf_tools_done {
	int32_t status;
	uint32_t padding;    /* zero */
	uint64_t rewrite_ns; /* of the timed part */
	double value;	     /* as in struct wf_tools_timing */
};

#endif
