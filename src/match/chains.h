/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hash tables of the matcher: their size and memory. Their users define the
 * entries and keys.
 */
#ifndef WF_MATCH_CHAINS_H
#define WF_MATCH_CHAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "match/match.h"

/* A megabyte; beyond that chains become longer. */
#define WF_MATCH_CHAINS_MAX 65536u

/* A table of @count chains, a power of two. */
static inline uint32_t wf_match_chains_shift(uint32_t count)
{
	return 64 - (uint32_t)__builtin_ctz(count);
}

static inline uint32_t wf_match_chains_count(const struct wf_chains *chains)
{
	return (uint32_t)(1ull << (64 - chains->shift));
}

void wf_match_chains_clear(struct wf_chains *chains);

/* Whether @count entries need a larger table, and a larger one is possible. */
static inline bool wf_match_chains_small(const struct wf_chains *chains,
					 uint32_t count)
{
	uint32_t chain_count = wf_match_chains_count(chains);

	return count > chain_count && chain_count < WF_MATCH_CHAINS_MAX;
}

/* An empty table with room for twice @count. False: there is no memory. */
bool wf_match_chains_open(struct wf_chains *chains, uint32_t count);

#endif
