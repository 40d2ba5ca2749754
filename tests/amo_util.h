/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of atomics share this beyond rma_util.h.
 */
#ifndef WEFT_TESTS_AMO_UTIL_H
#define WEFT_TESTS_AMO_UTIL_H

#include "common/amo.h"
#include "rma_util.h"

#define AMO_CAPS (RMA_CAPS | FI_ATOMIC)

/* One side of weft_test_pair(): offers some aligned memory until the peer is
 * done. */
static inline void amo_lend(struct weft_test *t, fi_addr_t peer,
			    struct weft_test_line *line, void *arg)
{
	static _Alignas(64) uint8_t memory[4096];
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	rma_offer(t, line, memory, sizeof(memory), &mr);
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
}

static inline bool amo_same(enum fi_datatype type, const uint8_t *a,
			    const uint8_t *b, size_t count)
{
	size_t size = weft_test_amo_size(type);

	for (size_t i = 0; i < count; i++)
		if (!weft_test_amo_same(type, a + i * size, b + i * size))
			return false;
	return true;
}

/* An operation that fetches nothing may complete here before the target has run
 * it, and RMA may overtake it. A fetch may not be overtaken
 * (FI_ORDER_ATOMIC_RAW). */
static inline void amo_settle(struct weft_test *t, fi_addr_t peer,
			      const struct rma_target *target)
{
	struct fi_context context;
	uint8_t result;

	POST(fi_fetch_atomic(t->ep, NULL, 1, NULL, &result, NULL, peer,
			     target->base, target->key, FI_UINT8,
			     FI_ATOMIC_READ, &context));
	rma_wait(t, &context, FI_ATOMIC | FI_READ);
}

#endif
