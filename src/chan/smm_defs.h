/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header describes the layout of an SMM pool in memory. Two processes that
 * share a pool must agree on it, so nothing here is a pointer.
 *
 *   header | tags, 4 bytes a granule | links, 8 bytes for two | granules
 *
 * A block is a run of granules. The tag of its first granule says how many
 * and whether they are free, in use, or kept: freed, but not yet given back to
 * the lists, for the thread that did it to have again. The tag of the last
 * granule of a free block says the same as that of the first, for the neighbour
 * behind it; all others are 0. Free blocks are never adjacent, so the granules
 * 2k and 2k+1 cannot both begin one: they share one entry of links.
 *
 * Free blocks come and go under the lock. Between "in use" and "kept" a block
 * changes by one compare-and-exchange of its tag, without the lock; to become
 * free it is claimed by another one, which leaves the size alone.
 */
#ifndef WF_CHAN_SMM_DEFS_H
#define WF_CHAN_SMM_DEFS_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define WF_SMM_MAGIC 0x324d4d53u /* "SMM2" */

/* No block shares a cache line with another. */
#define WF_SMM_GRANULE_LOG2_MIN 6

/* Classes of sizes: eight to a power of two, as in TLSF. */
#define WF_SMM_SUB_LOG2 3
#define WF_SMM_SUBS (1u << WF_SMM_SUB_LOG2)
#define WF_SMM_LEVELS 28

#define WF_SMM_TAG_FREE 0x80000000u
#define WF_SMM_TAG_USED 0x40000000u
#define WF_SMM_TAG_KEPT 0xc0000000u /* both */
#define WF_SMM_TAG_STATE 0xc0000000u
#define WF_SMM_TAG_SIZE 0x3fffffffu
#define WF_SMM_NONE 0xffffffffu

struct wf_smm_link {
	uint32_t next, prev;
};

struct wf_smm_pool {
	uint32_t magic;
	uint32_t granule_log2;
	uint32_t count;	   /* granules */
	uint32_t free;	   /* ... of them free */
	uint64_t links_at; /* from the header's own address */
	uint64_t data_at;
	uint64_t id;		   /* another each time memory becomes a pool */
	_Atomic uint32_t any_kept; /* 0: no block is kept */
	pthread_mutex_t lock;	   /* robust, between processes */
	uint32_t levels; /* bit: some class of this level has blocks */
	uint8_t subs[WF_SMM_LEVELS];
	uint32_t heads[WF_SMM_LEVELS][WF_SMM_SUBS];
	_Atomic uint32_t tags[];
};

static_assert(sizeof(struct wf_smm_link) == 8, "shared layout");
static_assert(WF_SMM_SUBS == 8, "a level's map is one byte");
static_assert(WF_SMM_TAG_SIZE < 1u << (WF_SMM_LEVELS + WF_SMM_SUB_LOG2 - 1),
	      "every size has a class");

#endif
