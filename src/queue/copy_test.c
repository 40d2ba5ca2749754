/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the descriptor copies: every one that this processor has moves
 * 64 bytes, those and no others.
 */
#include "queue/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_copies_64_bytes(void **state)
{
	int found = 0;

	(void)state;
	for (int kind = 0; kind < WF_QUEUE_COPY_KINDS; kind++) {
		wf_queue_copy_fn copy = wf_queue_copy_get(kind);
		_Alignas(64) uint8_t src[64], dst[192];

		if (!copy)
			continue;
		found++;
		print_message("copy: %s\n", wf_queue_copy_name(kind));
		for (int i = 0; i < 64; i++)
			src[i] = (uint8_t)(i * 7 + kind + 1);
		memset(dst, 0xee, sizeof(dst));
		copy(dst + 64, src);
		assert_memory_equal(dst + 64, src, 64);
		for (int i = 0; i < 64; i++) {
			assert_int_equal(dst[i], 0xee);
			assert_int_equal(dst[128 + i], 0xee);
		}
	}
	assert_true(found >= 1);
	assert_non_null(wf_queue_copy_get(WF_QUEUE_COPY_PLAIN));
}

static void test_best_is_the_widest(void **state)
{
	wf_queue_copy_fn want = wf_queue_copy_get(WF_QUEUE_COPY_PLAIN);

	(void)state;
	for (int kind = 0; kind < WF_QUEUE_COPY_KINDS; kind++) {
		if (wf_queue_copy_get(kind))
			want = wf_queue_copy_get(kind);
	}
	assert_ptr_equal(wf_queue_copy_best(), want);
}

/* A copy with wide registers must leave the caller's floating point alone. */
static void test_leaves_registers_alone(void **state)
{
	(void)state;
	for (int kind = 0; kind < WF_QUEUE_COPY_KINDS; kind++) {
		wf_queue_copy_fn copy = wf_queue_copy_get(kind);
		_Alignas(64) uint8_t src[64] = { 1 }, dst[64];
		double a = kind + 0.5, b = 3.25, sum = 0;

		for (int i = 0; copy && i < 100; i++) {
			sum += a * b + i;
			copy(dst, src);
			sum -= a * b;
		}
		assert_true(!copy || sum == 4950);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_64_bytes),
		cmocka_unit_test(test_best_is_the_widest),
		cmocka_unit_test(test_leaves_registers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
