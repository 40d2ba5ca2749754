/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two halves of the hostile peer share this: the state that an input runs
 * in, and the input as a source of numbers. ring_peer.c owns the state and what
 * our endpoints do, ring_writes.c what the peer writes.
 */
#ifndef WF_FUZZ_RING_WORLD_H
#define WF_FUZZ_RING_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "shm/ep.h"
#include "target.h"

#define SLOTS_LOG2 4
#define LINES_LOG2 8
#define HOLDS 24
#define PEER 3

/* Memory that the peer may touch, by these keys. */
#define OPEN_LEN 6000
#define OPEN_KEY 7
#define READ_KEY 8

/* A buffer that belongs to an operation. It is freed with its completion, so
 * that ASan detects later accesses. */
struct wf_fuzz_hold {
	uint8_t *buf;
	bool multi; /* freed at the end: several messages */
};

struct wf_fuzz_world {
	const uint8_t *program;
	size_t left;
	struct wf_compq txq, rxcq;
	struct wf_rxq rxq, unused;
	struct wf_core to_core, from_core;
	struct wf_shm_ep to, from;
	struct wf_shm_mover mover;
	struct wf_regs regs;
	uint8_t *open; /* on the heap, so that ASan detects overruns */
	uint8_t *readable;
	struct wf_shm_region ring_in, ring_out; /* as the peer maps them */
	uint32_t written;   /* slots that the peer has published */
	uint32_t write_pos; /* index of the next one */
	uint32_t replied;
	uint8_t *spare; /* memory for the peer's messages */
	struct wf_fuzz_hold rx[HOLDS], tx[HOLDS];
};

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			abort();                                               \
		}                                                              \
	} while (0)

/* The next number of the program; 0 at its end. */
uint64_t wf_fuzz_take(struct wf_fuzz_world *w, size_t bytes);
uint8_t wf_fuzz_take8(struct wf_fuzz_world *w);
/* A length or a count: usually of a likely size, sometimes any. */
uint64_t wf_fuzz_take_size(struct wf_fuzz_world *w);
/* In the scapegoat process, whose memory is a copy of ours, or anywhere. */
uint64_t wf_fuzz_take_address(struct wf_fuzz_world *w);

/* The channels that are open now, or NULL. */
struct wf_shm_in *wf_fuzz_in_of(struct wf_fuzz_world *w);
struct wf_shm_out *wf_fuzz_out_of(struct wf_fuzz_world *w);

/* These functions make the writes that the peer may make, one function for each
 * step of the program. */
void wf_fuzz_op_slot(struct wf_fuzz_world *w);
void wf_fuzz_op_data(struct wf_fuzz_world *w);
void wf_fuzz_op_share(struct wf_fuzz_world *w);
void wf_fuzz_op_reply(struct wf_fuzz_world *w);
void wf_fuzz_op_credit(struct wf_fuzz_world *w);
void wf_fuzz_op_anywhere(struct wf_fuzz_world *w);

#endif
