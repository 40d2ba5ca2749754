/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decode tables: each code leads to its symbol whatever follows it, sets of
 * lengths are refused where zlib refuses them, and the constant tables of
 * fixed blocks are those that their lengths would make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "deflate/table.h"

static uint32_t lit[WF_TABLE_LIT_SIZE + 1], dist[WF_TABLE_DIST_SIZE + 1];
static uint32_t pre[1 << WF_TABLE_PRE_BITS];
static uint64_t seed = 1;

static unsigned int draw(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)((seed >> 33) % below);
}

/* Lengths of a complete set of @used codes among @count symbols. */
static void make_set(uint8_t *lens, unsigned int count, unsigned int used,
		     unsigned int longest)
{
	uint8_t pool[288];
	unsigned int have = 1;

	memset(lens, 0, count);
	pool[0] = 0;
	while (have < used) {
		unsigned int i = draw(have);

		/* Prefer the last, so that there are long ones. */
		if (draw(3))
			i = have - 1;
		if (pool[i] >= longest)
			i = draw(have);
		if (pool[i] >= longest)
			continue;
		pool[i]++;
		pool[have++] = pool[i];
	}
	for (unsigned int i = 0; i < used; i++) {
		unsigned int sym = draw(count);

		while (lens[sym])
			sym = (sym + 1) % count;
		lens[sym] = pool[i];
	}
}

static uint32_t look_up(const uint32_t *table, unsigned int root, uint64_t bits,
			unsigned int *code)
{
	uint32_t e = table[bits & ((1u << root) - 1)];

	*code = 0;
	if (e & WF_TABLE_SUB) {
		assert_int_equal(wf_table_drop(e), root);
		*code = root;
		e = table[wf_table_sub(e, bits >> root)];
		assert_false(e & WF_TABLE_SUB);
	}
	*code += wf_table_code(e);
	return e;
}

static unsigned int reverse(unsigned int code, unsigned int len)
{
	unsigned int out = 0;

	while (len--) {
		out = out << 1 | (code & 1);
		code >>= 1;
	}
	return out;
}

static const unsigned int len_base[] = { 3,   4,   5,	6,   7,	  8,  9,  10,
					 11,  13,  15,	17,  19,  23, 27, 31,
					 35,  43,  51,	59,  67,  83, 99, 115,
					 131, 163, 195, 227, 258, 0,  0 };
static const unsigned int dist_base[] = {
	1,    2,    3,	  4,	5,    7,     9,	    13,	   17,	25,   33,
	49,   65,   97,	  129,	193,  257,   385,   513,   769, 1025, 1537,
	2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577, 0,	0
};

static void check_lit(uint32_t e, unsigned int sym)
{
	if (sym < 256) {
		assert_true(e & WF_TABLE_LITERAL);
		assert_int_equal(wf_table_base(e), sym);
		assert_int_equal(wf_table_drop(e), wf_table_code(e));
	} else if (sym == 256 || sym > 285) {
		assert_true(e & WF_TABLE_OTHER);
		assert_false(e & (WF_TABLE_SUB | WF_TABLE_LITERAL));
		assert_int_equal(!!(e & WF_TABLE_BAD), sym > 285);
	} else {
		assert_false(e & (WF_TABLE_OTHER | WF_TABLE_LITERAL));
		assert_int_equal(wf_table_base(e), len_base[sym - 257]);
	}
}

static void check_dist(uint32_t e, unsigned int sym)
{
	assert_false(e & (WF_TABLE_SUB | WF_TABLE_LITERAL));
	if (sym > 29) {
		assert_true(e & WF_TABLE_OTHER && e & WF_TABLE_BAD);
		return;
	}
	assert_false(e & WF_TABLE_OTHER);
	assert_int_equal(wf_table_base(e), dist_base[sym]);
	/* The largest value is one below the next one's least. */
	if (sym < 29)
		assert_int_equal(wf_table_value(e, ~0ull),
				 dist_base[sym + 1] - 1);
}

/* Every code of a set, with ones, zeros and noise behind it. */
static void check_set(const uint32_t *table, unsigned int root,
		      const uint8_t *lens, unsigned int count,
		      void (*check)(uint32_t, unsigned int))
{
	unsigned int next = 0, len, code;

	for (len = 1; len <= 15; len++) {
		next <<= 1;
		for (unsigned int sym = 0; sym < count; sym++) {
			uint64_t bits;

			if (lens[sym] != len)
				continue;
			bits = reverse(next++, len);
			for (int tail = 0; tail < 3; tail++) {
				uint64_t rest = tail == 0 ? 0 :
						tail == 1 ? ~0ull :
							    seed;
				uint32_t e = look_up(table, root,
						     bits | rest << len, &code);

				assert_int_equal(code, len);
				check(e, sym);
			}
		}
	}
	assert_int_equal(next, 1u << 15);
}

static void test_complete(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		unsigned int used = 2 + draw(285), root;
		uint8_t lens[288];

		make_set(lens, 286, used, 15);
		lit[WF_TABLE_LIT_SIZE] = 0xdeadbeef;
		assert_int_equal(wf_deflate_table_lit(lit, &root, lens, 286),
				 0);
		assert_int_equal(lit[WF_TABLE_LIT_SIZE], 0xdeadbeef);
		check_set(lit, root, lens, 286, check_lit);
		make_set(lens, 30, 2 + draw(29), 15);
		dist[WF_TABLE_DIST_SIZE] = 0xdeadbeef;
		assert_int_equal(wf_deflate_table_dist(dist, lens, 30), 0);
		assert_int_equal(dist[WF_TABLE_DIST_SIZE], 0xdeadbeef);
		check_set(dist, WF_TABLE_DIST_BITS, lens, 30, check_dist);
	}
}

static void test_refused(void **state)
{
	uint8_t lens[288] = { 0 };
	unsigned int root;

	(void)state;
	/* None: fine, and every bit is bad. */
	assert_int_equal(wf_deflate_table_dist(dist, lens, 30), 0);
	for (int i = 0; i < 1 << WF_TABLE_DIST_BITS; i++) {
		assert_true(dist[i] & WF_TABLE_OTHER);
		assert_true(dist[i] & WF_TABLE_BAD);
		assert_int_equal(wf_table_drop(dist[i]), 1);
	}
	assert_int_equal(wf_deflate_table_pre(pre, lens), 0);
	assert_int_equal(wf_table_base(pre[77]), 0);
	assert_int_equal(wf_table_drop(pre[77]), 1);
	/* One code of a bit: its other value is bad. */
	lens[7] = 1;
	assert_int_equal(wf_deflate_table_dist(dist, lens, 30), 0);
	check_dist(dist[0xfe], 7);
	assert_true(dist[0xff] & WF_TABLE_BAD && dist[0xff] & WF_TABLE_OTHER);
	assert_int_equal(wf_deflate_table_pre(pre, lens), -EBADMSG);
	lens[7] = 0;
	lens[256] = 1;
	assert_int_equal(wf_deflate_table_lit(lit, &root, lens, 257), 0);
	assert_int_equal(root, 1);
	assert_true(lit[1] & WF_TABLE_BAD);
	assert_false(lit[0] & WF_TABLE_BAD);
	/* One of two bits; three of one. */
	lens[256] = 2;
	assert_int_equal(wf_deflate_table_lit(lit, &root, lens, 257), -EBADMSG);
	lens[0] = lens[1] = lens[2] = 1;
	assert_int_equal(wf_deflate_table_dist(dist, lens, 30), -EBADMSG);
	assert_int_equal(wf_deflate_table_pre(pre, lens), -EBADMSG);
	/* Any complete set with one code less or one more. */
	for (int i = 0; i < 1000; i++) {
		unsigned int sym = draw(286);

		make_set(lens, 286, 3 + draw(280), 15);
		lens[sym] = lens[sym] ? 0 : 1 + (uint8_t)draw(15);
		assert_int_equal(wf_deflate_table_lit(lit, &root, lens, 286),
				 -EBADMSG);
	}
}

static void test_fixed(void **state)
{
	const struct wf_table_pair *p = &wf_deflate_fixed;
	uint8_t lens[288];
	unsigned int root;

	(void)state;
	memset(lens, 8, 144);
	memset(lens + 144, 9, 112);
	memset(lens + 256, 7, 24);
	memset(lens + 280, 8, 8);
	assert_int_equal(wf_deflate_table_lit(lit, &root, lens, 288), 0);
	assert_int_equal(root, p->lit_bits);
	assert_memory_equal(lit, p->lit, sizeof(*lit) << root);
	memset(lens, 5, 32);
	assert_int_equal(wf_deflate_table_dist(dist, lens, 32), 0);
	assert_memory_equal(dist, p->dist, sizeof(*dist) << WF_TABLE_DIST_BITS);
}

/* zlib's tables of the worst sets have 852 and 592 entries (its ENOUGH). */
static void test_zlib_size(void **state)
{
	unsigned int most = 0;
	uint8_t lens[288];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		unsigned int size;

		make_set(lens, 286, 2 + draw(285), 15);
		size = wf_deflate_table_zlib_size(lens, 286, 9, 0);
		assert_in_range(size, 2, 852);
		most = size > most ? size : most;
		make_set(lens, 30, 2 + draw(29), 15);
		assert_in_range(wf_deflate_table_zlib_size(lens, 30, 6, 0), 2,
				592);
	}
	assert_true(most > 512);
	memset(lens, 5, 32);
	assert_int_equal(wf_deflate_table_zlib_size(lens, 32, 6, 0), 32);
	memset(lens, 0, 32);
	assert_int_equal(wf_deflate_table_zlib_size(lens, 32, 6, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_zlib_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
