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

int wf_base_pool_grow(struct wf_pool *pool)
{
	size_t count = pool->per_slab;
	char *slab;

	if (pool->limit && pool->total + count > pool->limit)
		count = pool->limit - pool->total;
	if (!count)
		return -EAGAIN;
	slab = aligned_alloc(LINE, LINE + count * pool->size);
	if (!slab)
		return -ENOMEM;
	*(void **)slab = pool->slabs;
	pool->slabs = slab;
	/* Backwards, so that objects are handed out in address order. */
	for (size_t i = count; i-- > 0;) {
		void *obj = slab + LINE + i * pool->size;

		*(void **)obj = pool->free;
		pool->free = obj;
	}
	pool->total += count;
	return 0;
}
