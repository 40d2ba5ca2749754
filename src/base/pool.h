/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal objects with a free list. A pool grows by slabs up to a hard
 * limit, so that a failed allocation is the limit check. Objects keep their
 * address until the pool is closed. Not thread-safe: the owner's lock covers
 * it.
 */
#ifndef WF_BASE_POOL_H
#define WF_BASE_POOL_H

#include <stddef.h>

struct wf_pool {
	void *free; /* first free object; its first word links to the next */
	size_t size;
	size_t per_slab;
	size_t limit; /* objects at most; 0 = as many as memory holds */
	size_t total; /* objects in all slabs */
	size_t in_use;
	void *slabs;
};

void wf_base_pool_init(struct wf_pool *pool, size_t object_size,
		       size_t objects_per_slab, size_t limit);
void wf_base_pool_fini(struct wf_pool *pool);

/* Adds a slab. 0, -EAGAIN at the limit, -ENOMEM. */
int wf_base_pool_grow(struct wf_pool *pool);

/* Adds as many objects as fit into memory of the caller's, aligned to a cache
 * line, which stays until the pool is closed; not more than the limit. */
void wf_base_pool_feed(struct wf_pool *pool, void *memory, size_t bytes);

/* NULL at the limit or without memory. The content is not cleared. */
static inline void *wf_base_pool_get(struct wf_pool *pool)
{
	void *obj = pool->free;

	if (__builtin_expect(!obj, 0)) {
		if (wf_base_pool_grow(pool))
			return NULL;
		obj = pool->free;
	}
	pool->free = *(void **)obj;
	pool->in_use++;
	return obj;
}

static inline void wf_base_pool_put(struct wf_pool *pool, void *obj)
{
	*(void **)obj = pool->free;
	pool->free = obj;
	pool->in_use--;
}

#endif
