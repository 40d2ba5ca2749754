/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of weft gzip: whatever the number of restart points, those it keeps
 * are where they were; an index that is written can be read; and bytes of
 * others, cut or made up, are refused or harmless.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/gzip/index.h"

#define SPAN (1u << 20)
#define POINTS 5000u

static uint64_t at[POINTS];
static struct wf_gzip_index index_, back;
static uint8_t bytes[70000];

static unsigned int rnd(unsigned int below)
{
	static uint64_t seed = 3;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % below;
}

/* Point i of what was added lies at byte (i + 1) * SPAN of the plain data. */
static void check_points(uint32_t points)
{
	uint32_t every = index_.span / SPAN;
	uint64_t sum = 0;

	assert_int_equal(index_.span % SPAN, 0);
	assert_true(index_.count <= index_.room);
	for (uint32_t i = 0; i < index_.count; i++) {
		sum += index_.lengths[i];
		assert_true((i + 1) * every - 1 < points);
		assert_int_equal(sum, at[(i + 1) * every - 1]);
	}
	/* And none is missing that could have been kept. */
	assert_int_equal(index_.count, points / every);
}

static void test_points(void **state)
{
	static const uint32_t rooms[] = { 2, 8, 512, 4096 };

	(void)state;
	for (size_t r = 0; r < 4; r++) {
		uint64_t sum = 0;

		index_ = (struct wf_gzip_index){ .span = SPAN,
						 .room = rooms[r] };
		for (uint32_t i = 0; i < POINTS && index_.span < 1u << 30;
		     i++) {
			sum += 1 + rnd(SPAN);
			at[i] = sum;
			wf_tools_gzip_index_add(&index_, sum);
			check_points(i + 1);
		}
		memset(bytes, 0xff, sizeof(bytes));
		wf_tools_gzip_index_write(&index_, bytes);
		assert_true(wf_tools_gzip_index_read(
			&back, bytes, wf_tools_gzip_index_size(&index_)));
		assert_int_equal(back.span, index_.span);
		assert_int_equal(back.count, index_.count);
		assert_memory_equal(back.lengths, index_.lengths,
				    4 * (size_t)index_.count);
	}
}

/* A segment too long to be told: no index. */
static void test_too_long(void **state)
{
	(void)state;
	index_ = (struct wf_gzip_index){ .span = SPAN, .room = 8 };
	wf_tools_gzip_index_add(&index_, 1000);
	wf_tools_gzip_index_add(&index_, 1ull << 32);
	assert_int_equal(index_.count, 0);
	wf_tools_gzip_index_add(&index_, 1ull << 33);
	assert_int_equal(index_.count, 0);
	wf_tools_gzip_index_write(&index_, bytes);
	assert_false(wf_tools_gzip_index_read(
		&back, bytes, wf_tools_gzip_index_size(&index_)));
}

static void test_hostile(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t len = rnd(400);
		uint8_t *copy = malloc(len ? len : 1);

		for (size_t i = 0; i < len; i++)
			copy[i] = (uint8_t)rnd(rnd(2) ? 256 : 4);
		if (len > 12 && rnd(4))
			memcpy(copy, "WF", 2);
		if (wf_tools_gzip_index_read(&back, copy, len)) {
			assert_true(back.count && back.count <= back.room);
			assert_true(back.room <= WF_GZIP_INDEX_MAX);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
