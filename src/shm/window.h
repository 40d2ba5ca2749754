/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a peer that we map, too: registrations that lie in a memfd which
 * cannot shrink. Operations on it need neither a system call nor the peer.
 *
 * A window is valid as long as the entry in the peer's table of registrations has
 * the sequence that it had when the window was opened; each access looks at that.
 */
#ifndef WF_SHM_WINDOW_H
#define WF_SHM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "op/reg.h"
#include "op/remote.h"

struct wf_shm_out;

struct wf_shm_window {
	uint64_t key;
	uint8_t *base; /* of the registration; NULL: it cannot be mapped */
	uint64_t addr; /* what peers call its first byte */
	uint64_t len;
	uint64_t access;
	uint32_t slot; /* in the table of registrations */
	uint32_t seq;
	bool is_used;
	bool events; /* the owner wants to hear of accesses */
	void *map;
	size_t map_bytes;
};

/* Windows of one channel. The last bits of a key say which one it may have; if
 * another key has that one, there is no window. */
#define WF_SHM_WINDOWS 64

struct wf_shm_windows {
	uint32_t swept; /* the next that is looked at */
	struct wf_shm_window all[WF_SHM_WINDOWS];
};

/* The window in which all of @seg lies and which allows @access, or NULL. */
static inline const struct wf_shm_window *
wf_shm_window_find(const struct wf_shm_windows *windows,
		   const struct wf_reg_view *regs,
		   const struct wf_remote_seg *seg, uint64_t access)
{
	const struct wf_shm_window *w =
		&windows->all[seg->key % WF_SHM_WINDOWS];

	if (w->key != seg->key || !w->base || (w->access & access) != access ||
	    seg->addr < w->addr || seg->addr - w->addr > w->len ||
	    seg->len > w->len - (seg->addr - w->addr) ||
	    !wf_op_reg_is_current(regs, w->slot, w->seq))
		return NULL;
	return w;
}

static inline void *wf_shm_window_at(const struct wf_shm_window *w,
				     const struct wf_remote_seg *seg)
{
	return w->base + (seg->addr - w->addr);
}

/* A registration that has WF_REG_FILE was met: maps it if that is possible. */
void wf_shm_window_open(struct wf_shm_out *out, uint64_t key);

/* Unmaps memory that is not registered any more, a part of it each time: its
 * pages stay allocated until then. */
void wf_shm_window_sweep(struct wf_shm_out *out);

/* In a forked child: nothing of it is mapped here. */
void wf_shm_window_forked(struct wf_shm_out *out);

/* The channel ends. */
void wf_shm_window_close_all(struct wf_shm_out *out);

#endif
