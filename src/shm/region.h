/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of one channel: the sender creates it as a sealed memfd, and both
 * sides map it. It is no file, so nothing can be stale or left behind. A forked
 * child does not inherit it.
 *
 * The sender takes pages as it needs them, and always before anybody touches
 * them, so that running out of memory is an error and not a signal. It takes
 * one page at first, which suffices for a peer that sends few small messages, and
 * more when messages are longer or wait (wf_shm_region_grow_*).
 */
#ifndef WF_SHM_REGION_H
#define WF_SHM_REGION_H

#include <stdbool.h>

#include "shm/ring_defs.h"

struct wf_shm_region {
	void *base; /* NULL: not mapped */
	size_t bytes;
	struct wf_shm_header *header;
	struct wf_shm_reply *replies;
	struct wf_shm_share *shares;
	uint8_t *returns;
	struct wf_shm_slot *slots;
	uint8_t *data;
	uint32_t slot_count;
	uint32_t line_count;
	/* The sender's: how many of them have memory, and which parts. */
	uint32_t slots_ready;
	uint32_t lines_ready;
	bool replies_ready;
	bool shares_ready;
	bool returns_ready;
};

/* Makes and maps a region; *@memfd is the caller's to pass on and close.
 * 0 or -errno. */
int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd);

/* Maps a peer's region after checking size, seals and header against what the
 * peer announced. 0, -EPROTO or -errno. */
int wf_shm_region_map(struct wf_shm_region *region, int memfd,
		      unsigned int slots_log2, unsigned int lines_log2);

/* The same for two regions in one memfd: that of the sender, and one that it
 * offers to the peer (offer.h), of which nothing is taken or checked yet. Each is
 * unmapped by itself. */
int wf_shm_region_create_pair(struct wf_shm_region pair[2],
			      unsigned int slots_log2, unsigned int lines_log2,
			      int *memfd);
int wf_shm_region_map_pair(struct wf_shm_region pair[2], int memfd,
			   unsigned int slots_log2, unsigned int lines_log2);

/* The second region of a pair: its sender takes the first page and writes the
 * header; its receiver checks that. 0 or -errno; -ENOENT: there is no header
 * yet. */
int wf_shm_region_begin(struct wf_shm_region *region);
int wf_shm_region_accept(struct wf_shm_region *region);

/* Takes memory for the first @count slots or lines, rounded up to pages, and for
 * all replies, shares or returns. The sender's, when the _ready word says less. 0, or
 * -ENOMEM. */
int wf_shm_region_grow_slots(struct wf_shm_region *region, uint32_t count);
int wf_shm_region_grow_lines(struct wf_shm_region *region, uint32_t count);
int wf_shm_region_grow_replies(struct wf_shm_region *region);
int wf_shm_region_grow_shares(struct wf_shm_region *region);
int wf_shm_region_grow_returns(struct wf_shm_region *region);

void wf_shm_region_unmap(struct wf_shm_region *region);

#endif
