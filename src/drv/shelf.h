/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle working states of a library, which are large: to allocate one for a job of
 * some KiB would take longer than the job, most of all where several threads map
 * and unmap memory at once. A thread finds the one that it put here last. No lock:
 * a child may be forked at any time.
 */
#ifndef WF_DRV_SHELF_H
#define WF_DRV_SHELF_H

#include <stdatomic.h>
#include <stddef.h>

/* Idle ones at most. Threads beyond that share places. */
#define WF_DRV_SHELF_PLACES 64u

/* Bytes of large items that lie on all shelves with @large. */
#define WF_DRV_SHELF_MOST (32u << 20)

struct wf_drv_shelf {
	/* Of an item, if it is so large that only WF_DRV_SHELF_MOST of such are
	 * kept on all shelves together; 0: it is not. */
	size_t large;
	struct {
		_Alignas(64) _Atomic(void *) item;
	} places[WF_DRV_SHELF_PLACES];
};

/* NULL: there is none. */
void *wf_drv_shelf_take(struct wf_drv_shelf *shelf);
/* Takes it, or @free it if it is full. */
void wf_drv_shelf_put(struct wf_drv_shelf *shelf, void *item,
		      void (*free_item)(void *item));
void wf_drv_shelf_clear(struct wf_drv_shelf *shelf,
			void (*free_item)(void *item));

#endif
