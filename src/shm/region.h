/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of one channel: made as a sealed memfd by the sender, mapped by
 * both. No file, so nothing can be stale or left behind; reserved when made,
 * so running out of memory is an error here and not a signal later; not
 * inherited by a forked child.
 */
#ifndef WF_SHM_REGION_H
#define WF_SHM_REGION_H

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
};

/* Makes and maps a region; *@memfd is the caller's to pass on and close.
 * 0 or -errno. */
int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd);

/* Maps a peer's region after checking size, seals and header against what the
 * peer announced. 0, -EPROTO or -errno. */
int wf_shm_region_map(struct wf_shm_region *region, int memfd,
		      unsigned int slots_log2, unsigned int lines_log2);

void wf_shm_region_unmap(struct wf_shm_region *region);

#endif
