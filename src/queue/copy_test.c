/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the descriptor copies, through the posts that use them: every
 * one that this processor has moves 64 bytes, those and no others.
 */
#include "queue/copy.h"

#include "queue/sub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Those that may be used on the ordinary memory of a test. */
static bool can(int kind)
{
	return kind != WF_QUEUE_COPY_ST64B && wf_queue_copy_can(kind);
}

struct world {
	_Alignas(64) uint8_t ring[4 * 64];
	_Atomic uint32_t doorbell;
	struct wf_queue_sub sub;
};

static void make(struct world *w, enum wf_queue_copy_kind kind)
{
	const struct wf_queue_sub_attr attr = {
		.ring = w->ring,
		.doorbell = &w->doorbell,
		.entries = 4,
		.stride = 64,
		.copy = kind,
	};

	memset(w, 0, sizeof(*w));
	memset(w->ring, 0xee, sizeof(w->ring));
	assert_int_equal(wf_queue_sub_init(&w->sub, &attr), 0);
}

static void test_copies_64_bytes(void **state)
{
	struct world w;

	(void)state;
	assert_true(wf_queue_copy_can(WF_QUEUE_COPY_PLAIN));
	for (int kind = 0; kind < WF_QUEUE_COPY_KINDS; kind++) {
		_Alignas(64) uint8_t src[64];

		if (!can(kind))
			continue;
		print_message("copy: %s\n", wf_queue_copy_name(kind));
		make(&w, kind);
		for (int i = 0; i < 64; i++)
			src[i] = 0xee;
		assert_int_equal(wf_queue_sub_post64(&w.sub, src, true), 0);
		for (int i = 0; i < 64; i++)
			src[i] = (uint8_t)(i * 7 + kind + 1);
		assert_int_equal(wf_queue_sub_post64(&w.sub, src, true), 0);
		assert_memory_equal(w.ring + 64, src, 64);
		for (int i = 0; i < 64; i++) {
			assert_int_equal(w.ring[i], 0xee);
			assert_int_equal(w.ring[128 + i], 0xee);
		}
	}
}

/* Of the stores: the instructions for device memory are asked for by name. */
static void test_best_is_the_widest(void **state)
{
	enum wf_queue_copy_kind want = WF_QUEUE_COPY_PLAIN;

	(void)state;
	for (int kind = 0; kind < WF_QUEUE_COPY_MOVDIR64B; kind++) {
		if (wf_queue_copy_can(kind))
			want = kind;
	}
	assert_int_equal(wf_queue_copy_choose(WF_QUEUE_COPY_BEST), want);
	/* Which one is measured on some processors, once. */
	want = wf_queue_copy_choose(WF_QUEUE_COPY_MEMORY);
	assert_true(want != WF_QUEUE_COPY_MEMORY && wf_queue_copy_can(want));
	for (int i = 0; i < 100; i++)
		assert_int_equal(wf_queue_copy_choose(WF_QUEUE_COPY_MEMORY),
				 want);
	assert_int_equal(wf_queue_copy_choose(WF_QUEUE_COPY_PLAIN),
			 WF_QUEUE_COPY_PLAIN);
	assert_int_equal(wf_queue_copy_choose(WF_QUEUE_COPY_MOVDIR64B),
			 WF_QUEUE_COPY_MOVDIR64B);
	assert_string_equal(wf_queue_copy_name(WF_QUEUE_COPY_ST64B), "st64b");
}

static void test_refuses_unsupported_copies(void **state)
{
	struct world w;

	(void)state;
	make(&w, 0);
	for (int kind = 0; kind <= WF_QUEUE_COPY_KINDS; kind++) {
		const struct wf_queue_sub_attr attr = {
			.ring = w.ring,
			.doorbell = &w.doorbell,
			.entries = 4,
			.stride = 64,
			.copy = kind,
		};
		bool can =
			kind < WF_QUEUE_COPY_KINDS && wf_queue_copy_can(kind);

		assert_int_equal(wf_queue_sub_init(&w.sub, &attr),
				 can ? 0 : -EINVAL);
	}
}

/* A copy with wide registers must leave the caller's floating point alone. */
static void test_leaves_registers_alone(void **state)
{
	(void)state;
	for (int kind = 0; kind < WF_QUEUE_COPY_KINDS; kind++) {
		_Alignas(64) uint8_t src[64] = { 1 };
		double a = kind + 0.5, b = 3.25, sum = 0;
		struct world w;

		if (!can(kind))
			continue;
		make(&w, kind);
		for (int i = 0; i < 100; i++) {
			sum += a * b + i;
			assert_int_equal(
				wf_queue_sub_post64(&w.sub, src, false), 0);
			wf_queue_sub_done(&w.sub, 1);
			sum -= a * b;
		}
		assert_true(sum == 4950);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_64_bytes),
		cmocka_unit_test(test_best_is_the_widest),
		cmocka_unit_test(test_refuses_unsupported_copies),
		cmocka_unit_test(test_leaves_registers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
