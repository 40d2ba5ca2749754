/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/wqe_copy compares with these two: a post whose descriptor goes to the
 * ring by one call per 8 bytes, and one with a plain loop. Compiled several
 * times (bench/meson.build) at the optimization level that WQE_SUFFIX names;
 * WQE_HELPER says whether the helper stays a function call.
 */
#include "wqe_variants.h"

#include <stdatomic.h>

#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)

/* An atomic store behind a generic register accessor. */
static WQE_HELPER void write64(void *addr, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)addr, value,
			      memory_order_relaxed);
}

static WQE_HELPER void copy_by_helper(void *dst, const void *src, size_t count)
{
	uint64_t *to = dst;
	const uint64_t *from = src;

	do {
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		write64(to++, *from++);
		count -= 64;
	} while (count > 0);
}

void GLUE(wqe_calls_, WQE_SUFFIX)(struct wqe_queue *q, bool ring)
{
	uint32_t at = q->count++ & q->mask;

	copy_by_helper((char *)q->ring + (size_t)at * 64, &q->wqe, 64);
	if (ring)
		wqe_queue_ring(q);
}

void GLUE(wqe_loop_, WQE_SUFFIX)(struct wqe_queue *q, bool ring)
{
	uint32_t at = q->count++ & q->mask;
	uint64_t *src = q->wqe.words;
	uint64_t *dst = (uint64_t *)((char *)q->ring + (size_t)at * 64);

	for (int i = 0; i < 8; i++)
		dst[i] = src[i];
	if (ring)
		wqe_queue_ring(q);
}
