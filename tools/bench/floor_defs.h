/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that the two workers of the floor share.
 */
#ifndef WF_TOOLS_BENCH_FLOOR_DEFS_H
#define WF_TOOLS_BENCH_FLOOR_DEFS_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	/* The largest message of the bare ring: copying larger ones twice is
	 * not the best way. */
	WF_TOOLS_FLOOR_MAX_SIZE = 64 << 10,
	/*
	 * A stream needs depth. A ping-pong has one message in flight, and is
	 * fastest with few slots, which stay in a first-level cache: at 4 KiB,
	 * 64 slots take a tenth more time than 4, and the floor must be the
	 * fastest.
	 */
	WF_TOOLS_FLOOR_SLOTS = 64,
	WF_TOOLS_FLOOR_PING_SLOTS = 8,
	WF_TOOLS_FLOOR_PING_BYTES = 20 << 10,
	/* Four slots of the largest size: producer and consumer overlap. */
	WF_TOOLS_FLOOR_BYTES = 4 * (WF_TOOLS_FLOOR_MAX_SIZE + 64),
};

/* A page apart, so that no prefetcher fetches the other one. */
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
