/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that measure something between them: what the engines of
 * bench/nic_udp share. A duel is in shared memory; side 0 measures the time.
 */
#ifndef WF_BENCH_DUEL_H
#define WF_BENCH_DUEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUEL_SMALL 64u
#define DUEL_LARGE (1u << 20)
#define DUEL_WINDOW 8u
#define DUEL_WARMUP 100u

struct duel {
	const char *engine; /* "weft", or a provider of libfabric */
	const char *node[2];
	bool yield;
	unsigned rounds; /* of the small ping-pong */
	unsigned larges; /* messages one way */
	_Atomic unsigned step[2];
	_Atomic int failed;
	uint8_t blob[2][256]; /* an address, keys */
	size_t blob_len[2];
	double latency_us; /* half a round trip */
	double bandwidth;  /* MB/s */
	double rate;	   /* small messages per second, in millions */
};

/* Both sides reach this point before either continues. @idle is called
 * meanwhile. */
void duel_meet(struct duel *duel, int me, unsigned step,
	       void (*idle)(void *arg), void *arg);

/* 0, or 1 after a message that says what failed. */
int duel_weft(struct duel *duel, int me);
int duel_fabric(struct duel *duel, int me);

#endif
