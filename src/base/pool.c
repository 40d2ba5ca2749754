/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slabs behind a pool. A slab is one cache-line aligned block whose first line
 * links it to the others; it is freed only when the pool is closed.
 */
#include "base/pool.h"

#include <errno.h>
#include <stdlib.h>

#define LINE 64

void wf_base_pool_init(struct wf_pool *pool, size_t object_size,
		       size_t objects_per_slab, size_t limit)
{
	*pool = (struct wf_pool){
		.size = (object_size + LINE - 1) & ~(size_t)(LINE - 1),
		.per_slab = objects_per_slab,
		.limit = limit,
	};
}

void wf_base_pool_fini(struct wf_pool *pool)
{
	void *slab = pool->slabs;

	while (slab) {
		void *next = *(void **)slab;

		free(slab);
		slab = next;
	}
	pool->slabs = NULL;
	pool->free = NULL;
}

static size_t at_most(const struct wf_pool *pool, size_t count)
{
	if (pool->limit && pool->total + count > pool->limit)
		count = pool->limit - pool->total;
	return count;
}

/* Backwards, so that objects are handed out in address order. */
static void add(struct wf_pool *pool, char *first, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		void *obj = first + i * pool->size;

		*(void **)obj = pool->free;
		pool->free = obj;
	}
	pool->total += count;
}

void wf_base_pool_feed(struct wf_pool *pool, void *memory, size_t bytes)
{
	add(pool, memory, at_most(pool, bytes / pool->size));
}

int wf_base_pool_grow(struct wf_pool *pool)
{
	size_t count = at_most(pool, pool->per_slab);
	char *slab;

	if (!count)
		return -EAGAIN;
	slab = aligned_alloc(LINE, LINE + count * pool->size);
	if (!slab)
		return -ENOMEM;
	*(void **)slab = pool->slabs;
	pool->slabs = slab;
	add(pool, slab + LINE, count);
	return 0;
}
