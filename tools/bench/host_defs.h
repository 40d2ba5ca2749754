/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header defines the messages of `weft bench HOST` and `weft bench
 * --server` over TCP. Both begin with a hello; then come frames. The numbers of
 * hello and frame are in network byte order. Frames carry the structures of
 * control_defs.h as they are in memory, so the hello refuses another version or
 * byte order.
 */
#ifndef WF_TOOLS_BENCH_HOST_DEFS_H
#define WF_TOOLS_BENCH_HOST_DEFS_H

#include <assert.h>
#include <stdint.h>

#define WF_TOOLS_HOST_MAGIC "weftbnch"

enum {
	/* Version of everything here and in control_defs.h. */
	WF_TOOLS_HOST_VERSION = 1,
	WF_TOOLS_HOST_PORT = 47590,
	WF_TOOLS_HOST_MOST = 8192, /* bytes in a frame */
	WF_TOOLS_HOST_ORDER = 0x01020304,
};

struct wf_tools_host_hello {
	char magic[8];
	uint32_t version;
	uint32_t order;	  /* WF_TOOLS_HOST_ORDER, not converted */
	uint64_t session; /* the client's for a whole run; the server: zero */
	char weft[32];	  /* version of the command */
};
static_assert(sizeof(struct wf_tools_host_hello) == 56, "layout");

enum wf_tools_host_channel {
	WF_TOOLS_HOST_CONTROL, /* what WF_TOOLS_FD_CONTROL carries */
	WF_TOOLS_HOST_SIDE,    /* what WF_TOOLS_FD_SIDE carries */
	/* From the client, once: strings, each with a terminating zero. "hold":
	 * keep other clients away until I close; "worker" and its arguments;
	 * "ucx". */
	WF_TOOLS_HOST_START,
	WF_TOOLS_HOST_STARTED, /* from the server: done; "ucx": its port */
	WF_TOOLS_HOST_REFUSED, /* from the server: why */
	WF_TOOLS_HOST_ENDED,   /* from the server: how the process ended */
	WF_TOOLS_HOST_CHANNELS,
};

struct wf_tools_host_frame {
	uint32_t channel;
	uint32_t len; /* of what follows */
};
static_assert(sizeof(struct wf_tools_host_frame) == 8, "layout");

#endif
