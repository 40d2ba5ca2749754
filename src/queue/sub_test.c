/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of submission rings: when a doorbell is rung, what a full ring
 * does, phases, and a writer that lies.
 */
#include "queue/sub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define ENTRIES 8

struct fixture {
	_Alignas(64) uint8_t ring[ENTRIES * 64];
	_Atomic uint32_t doorbell;
	struct wf_queue_sub sub;
	struct wf_queue_work work;
	uint32_t stride;
};

static struct fixture *make(uint32_t stride, uint32_t max_batch)
{
	struct fixture *f = aligned_alloc(64, sizeof(*f));
	struct wf_queue_sub_attr attr;

	assert_non_null(f);
	memset(f, 0, sizeof(*f));
	f->stride = stride;
	attr = (struct wf_queue_sub_attr){
		.ring = f->ring,
		.doorbell = &f->doorbell,
		.entries = ENTRIES,
		.stride = stride,
		.max_batch = max_batch,
	};
	assert_int_equal(wf_queue_sub_init(&f->sub, &attr), 0);
	assert_int_equal(wf_queue_work_init(&f->work, &attr), 0);
	return f;
}

static int post(struct fixture *f, uint8_t value, bool more)
{
	_Alignas(64) uint8_t desc[64];

	memset(desc, value, sizeof(desc));
	if (f->stride == 16)
		return wf_queue_sub_post16(&f->sub, desc, more);
	return wf_queue_sub_post64(&f->sub, desc, more);
}

static void take(struct fixture *f, uint8_t want)
{
	size_t size = (size_t)1 << f->work.shift;
	uint8_t got[64];

	wf_queue_work_take(&f->work, got);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(got[i], want);
}

static void test_refuses_bad_rings(void **state)
{
	static _Alignas(64) uint8_t ring[1024];
	static _Atomic uint32_t bell;
	const struct wf_queue_sub_attr good = {
		.ring = ring, .doorbell = &bell, .entries = 4, .stride = 64
	};
	struct wf_queue_sub_attr bad[] = { good, good, good, good,
					   good, good, good, good };
	struct wf_queue_work work;
	struct wf_queue_sub sub;

	(void)state;
	bad[0].ring = NULL;
	bad[1].doorbell = NULL;
	bad[2].entries = 1;
	bad[3].entries = 65536;
	bad[4].entries = 6;
	bad[5].stride = 32;
	bad[6].ring = ring + 16;
	bad[7].max_batch = 5;
	assert_int_equal(wf_queue_sub_init(&sub, &good), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wf_queue_sub_init(&sub, &bad[i]), -EINVAL);
		assert_int_equal(wf_queue_work_init(&work, &bad[i]), -EINVAL);
	}
}

static void test_more_holds_the_doorbell(void **state)
{
	struct fixture *f = make(64, 0);

	(void)state;
	assert_int_equal(post(f, 1, true), 0);
	assert_int_equal(post(f, 2, true), 0);
	assert_int_equal(f->doorbell, 0);
	assert_int_equal(wf_queue_work_poll(&f->work), 0);
	assert_int_equal(post(f, 3, false), 0);
	assert_int_equal(f->doorbell, 3);
	assert_int_equal(f->sub.rings, 1);
	assert_int_equal(wf_queue_work_poll(&f->work), 3);
	for (uint8_t i = 1; i <= 3; i++)
		take(f, i);
	free(f);
}

/* A bug the EFA provider had: more than max_batch without a doorbell. */
static void test_doorbell_at_max_batch(void **state)
{
	struct fixture *f = make(64, 3);

	(void)state;
	for (int i = 1; i <= 7; i++) {
		assert_int_equal(post(f, 1, true), 0);
		assert_int_equal(f->doorbell, i / 3 * 3);
	}
	free(f);
}

/* A bug the EFA provider had: a replayed post kept its "more" and nobody rang.
 * Whoever has nothing else to post can always ring. */
static void test_ring_tells_the_rest(void **state)
{
	struct fixture *f = make(64, 0);

	(void)state;
	wf_queue_sub_ring(&f->sub);
	assert_int_equal(f->sub.rings, 0);
	assert_int_equal(post(f, 1, true), 0);
	wf_queue_sub_ring(&f->sub);
	wf_queue_sub_ring(&f->sub);
	assert_int_equal(f->doorbell, 1);
	assert_int_equal(f->sub.rings, 1);
	free(f);
}

static void test_full_ring_rings(void **state)
{
	struct fixture *f = make(64, 0);

	(void)state;
	/* max_batch 0 is the whole ring: the last place rings by itself. */
	for (int i = 0; i < ENTRIES - 1; i++)
		assert_int_equal(post(f, 1, true), 0);
	assert_int_equal(f->doorbell, 0);
	assert_int_equal(post(f, 1, true), 0);
	assert_int_equal(f->doorbell, ENTRIES);
	wf_queue_sub_done(&f->sub, 1);
	assert_int_equal(post(f, 1, true), 0);
	assert_int_equal(f->doorbell, ENTRIES);
	/* Full with one pending: refused, but told. */
	assert_int_equal(post(f, 1, true), -EAGAIN);
	assert_int_equal(f->doorbell, ENTRIES + 1);
	assert_int_equal(f->sub.refused, 1);
	free(f);
}

static void laps(uint32_t stride)
{
	struct fixture *f = make(stride, 0);
	unsigned lap = 0;

	/* Past the wrap of the 16-bit counts. */
	for (unsigned i = 0; i < 70000; i++) {
		if (i && i % ENTRIES == 0)
			lap ^= 1;
		assert_int_equal(wf_queue_sub_phase(&f->sub), lap);
		assert_int_equal(wf_queue_work_phase(&f->work), lap);
		assert_int_equal(post(f, (uint8_t)i, false), 0);
		assert_int_equal(wf_queue_work_poll(&f->work), 1);
		take(f, (uint8_t)i);
		wf_queue_sub_done(&f->sub, 1);
	}
	free(f);
}

static void test_laps(void **state)
{
	(void)state;
	laps(64);
	laps(16);
}

static void test_lying_doorbell(void **state)
{
	struct fixture *f = make(64, 0);

	(void)state;
	f->doorbell = ENTRIES + 1;
	assert_int_equal(wf_queue_work_poll(&f->work), -EPROTO);
	f->doorbell = 0x10001;
	assert_int_equal(wf_queue_work_poll(&f->work), -EPROTO);
	f->doorbell = UINT32_MAX;
	assert_int_equal(wf_queue_work_poll(&f->work), -EPROTO);
	/* 65535 is one behind: as many as no ring can hold. */
	f->doorbell = UINT16_MAX;
	assert_int_equal(wf_queue_work_poll(&f->work), -EPROTO);
	f->doorbell = ENTRIES;
	assert_int_equal(wf_queue_work_poll(&f->work), ENTRIES);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_rings),
		cmocka_unit_test(test_more_holds_the_doorbell),
		cmocka_unit_test(test_doorbell_at_max_batch),
		cmocka_unit_test(test_ring_tells_the_rest),
		cmocka_unit_test(test_full_ring_rings),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_lying_doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
