/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that the two workers of the floor share.
 */
#ifndef WF_TOOLS_BENCH_FLOOR_DEFS_H
#define WF_TOOLS_BENCH_FLOOR_DEFS_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	/* The bare ring ends here: larger messages are not copied twice. */
	WF_TOOLS_FLOOR_MAX_SIZE = 64 << 10,
	/*
	 * A stream wants depth. A ping-pong has one message under way, and is
	 * fastest with few slots that stay in a first-level cache: at 4 KiB
	 * 64 slots cost a tenth more than 4, and a floor is the fastest.
	 */
	WF_TOOLS_FLOOR_SLOTS = 64,
	WF_TOOLS_FLOOR_PING_SLOTS = 8,
	WF_TOOLS_FLOOR_PING_BYTES = 20 << 10,
	/* Four slots of the largest size: producer and consumer overlap. */
	WF_TOOLS_FLOOR_BYTES = 4 * (WF_TOOLS_FLOOR_MAX_SIZE + 64),
};

/* A page apart, so that no prefetcher couples what must stay apart. */
struct wf_tools_floor_line {
	_Atomic uint64_t value __attribute__((aligned(4096)));
};

struct wf_tools_floor_ring {
	_Atomic uint64_t tail __attribute__((aligned(4096)));
	uint8_t slots[WF_TOOLS_FLOOR_BYTES] __attribute__((aligned(4096)));
};

struct wf_tools_floor_memory {
	struct wf_tools_floor_line line[2];
	struct wf_tools_floor_ring ring[2];
};

_Static_assert(ATOMIC_LONG_LOCK_FREE == 2, "shared between processes");

#endif
