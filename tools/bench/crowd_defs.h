/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header defines the messages between the parent and the processes of a
 * crowd. Both ends are always the same binary, so the layouts carry no version.
 */
#ifndef WF_TOOLS_BENCH_CROWD_DEFS_H
#define WF_TOOLS_BENCH_CROWD_DEFS_H

#include <stdint.h>

enum {
	WF_TOOLS_CROWD_MAX = 512,
	WF_TOOLS_CROWD_NAME = 128, /* an endpoint's, at most */
};

/*
 * A member reports its state, and waits for the parent: for all names (struct
 * wf_tools_crowd_name, one after the other), for the start signal (a byte), for
 * the end of the socket.
 */
struct wf_tools_crowd_word {
	int32_t status;	  /* 0, or -errno, and text has the reason */
	uint32_t padding; /* zero */
	uint64_t now;	  /* by the monotonic clock */
	double bytes;	  /* used beyond the start */
	uint8_t name[WF_TOOLS_CROWD_NAME];
	char text[256];
};

struct wf_tools_crowd_name {
	uint8_t bytes[WF_TOOLS_CROWD_NAME];
};

#endif
