/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what atomic operations do to values: every op and datatype,
 * aligned or not, against the reference in amo_ref.h.
 */
#include "op/amo.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cmocka.h>

#include "op/amo_ref.h"

#define MAX WF_OP_AMO_SIZE_MAX

static const enum wf_op_amo_kind kinds[] = { WF_OP_AMO_WRITE, WF_OP_AMO_FETCH,
					     WF_OP_AMO_COMPARE };

/* --- Values worth trying. --- */

#define VALUES 13

static void integer_values(size_t size, uint8_t values[VALUES][MAX])
{
	static const uint8_t low[] = { 0, 1, 2, 3, 7, 0xff, 0x55, 0x80, 0x7f };
	size_t n = 0;

	for (; n < sizeof(low); n++)
		values[n][0] = low[n];
	memset(values[n++], 0xff, size); /* -1 */
	values[n++][size - 1] = 0x80;	 /* the lowest */
	memset(values[n], 0xff, size);	 /* the highest */
	values[n++][size - 1] = 0x7f;
	for (size_t i = 0; i < size; i++)
		values[n][i] = (uint8_t)(0xb7 + 0x35 * i);
	assert_int_equal(n + 1, VALUES);
}

static void real_values(unsigned int datatype, uint8_t values[VALUES][MAX])
{
	static const long double some[] = { 0,	      -0.0,	 1,   -1,
					    1.5,      -3,	 448, 7,
					    INFINITY, -INFINITY, NAN };
	size_t n = 0;

	for (; n < sizeof(some) / sizeof(some[0]); n++)
		real_put(datatype, values[n], some[n]);
	/* The smallest of all, and a large one. */
	values[n++][0] = 1;
	memset(values[n], 0x7b,
	       datatype == FI_LONG_DOUBLE ? LDBL_MANT_DIG / 8 + 2 :
					    types[datatype].size);
	assert_int_equal(n + 1, VALUES);
}

static void complex_values(unsigned int datatype, uint8_t values[VALUES][MAX])
{
	static const long double some[][2] = {
		{ 0, 0 },      { -0.0, 0 },  { 0, -0.0 },  { 1, 0 },
		{ 0, 1 },      { 0, -1 },    { 1.5, -3 },  { -3, 1.5 },
		{ 7, 0.0625 }, { 448, 448 }, { 1.5, NAN }, { 1.5, 3 },
		{ -1, -1 },
	};
	size_t half = types[datatype].size / 2;

	for (size_t n = 0; n < VALUES; n++) {
		real_put(datatype, values[n], some[n][0]);
		real_put(datatype, values[n] + half, some[n][1]);
	}
}

static void make_values(unsigned int datatype, uint8_t values[VALUES][MAX])
{
	memset(values, 0, VALUES * MAX);
	if (types[datatype].class == INTEGER)
		integer_values(types[datatype].size, values);
	else if (types[datatype].class == REAL)
		real_values(datatype, values);
	else
		complex_values(datatype, values);
}

/* Any NaN is as good as another. */
static bool same(unsigned int datatype, const uint8_t *a, const uint8_t *b)
{
	const struct type *t = &types[datatype];
	size_t part = t->class == COMPLEX ? t->size / 2 : t->size;

	if (t->class == INTEGER)
		return !memcmp(a, b, t->size);
	for (size_t i = 0; i < t->size; i += part) {
		if (memcmp(a + i, b + i, part) != 0 &&
		    !(isnan(real_get(datatype, a + i)) &&
		      isnan(real_get(datatype, b + i))))
			return false;
	}
	return true;
}

/* --- Tests. --- */

/* Aligned to everything; a line and its neighbours to be unaligned in. */
struct field {
	uint8_t bytes[256];
} __attribute__((aligned(64)));

#define UNTOUCHED 0xee

static bool is_untouched(const struct field *f)
{
	return f->bytes[0] == UNTOUCHED &&
	       !memcmp(f->bytes, f->bytes + 1, sizeof(f->bytes) - 1);
}

static void try_one(enum wf_op_amo_kind kind, unsigned int op,
		    unsigned int datatype, const uint8_t *a, const uint8_t *b,
		    const uint8_t *c)
{
	/* Aligned, by 8 but not 16, odd, and across a line. */
	static const size_t places[] = { 64, 72, 65, 63 };
	const size_t size = types[datatype].size;
	uint8_t expected[MAX];

	next(datatype, op, a, b, c, expected);
	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
		struct field target, result;
		uint8_t operand[MAX + 1], compare[MAX + 1];

		memset(&target, UNTOUCHED, sizeof(target));
		memset(&result, UNTOUCHED, sizeof(result));
		memcpy(target.bytes + places[p], a, size);
		memcpy(operand + 1, b, size);
		memcpy(compare + 1, c, size);
		wf_op_amo_run(kind, op, datatype, target.bytes + places[p],
			      op == FI_ATOMIC_READ ? NULL : operand + 1,
			      kind == WF_OP_AMO_COMPARE ? compare + 1 : NULL,
			      kind == WF_OP_AMO_WRITE ? NULL : result.bytes + 3,
			      1);
		if (!same(datatype, target.bytes + places[p], expected))
			fail_msg("op %u datatype %u place %zu", op, datatype,
				 places[p]);
		if (kind != WF_OP_AMO_WRITE)
			assert_memory_equal(result.bytes + 3, a, size);
		/* And nothing beside them. */
		memset(target.bytes + places[p], UNTOUCHED, size);
		if (kind != WF_OP_AMO_WRITE)
			memset(result.bytes + 3, UNTOUCHED, size);
		assert_true(is_untouched(&target) && is_untouched(&result));
	}
}

static void try_values(enum wf_op_amo_kind kind, unsigned int op,
		       unsigned int datatype)
{
	uint8_t values[VALUES][MAX];
	bool compare = kind == WF_OP_AMO_COMPARE;

	make_values(datatype, values);
	/* The value that a compare stores does not decide anything: some will
	 * do. */
	for (size_t a = 0; a < VALUES; a++)
		for (size_t b = 0; b < VALUES; b += compare ? 5 : 1)
			for (size_t c = 0; c < (compare ? VALUES : 1); c++)
				try_one(kind, op, datatype, values[a],
					values[b], values[c]);
}

static void test_every_combination(void **state)
{
	(void)state;
	for (size_t k = 0; k < 3; k++)
		for (unsigned int op = 0; op < WF_OP_AMO_OPS; op++)
			for (unsigned int t = 0; t < WF_OP_AMO_TYPES; t++)
				if (wf_op_amo_valid(op, t, kinds[k]))
					try_values(kinds[k], op, t);
}

static void test_valid(void **state)
{
	/* By kind and class; bit n stands for op n, fi_atomic(3). */
	static const unsigned int compare = 1U << FI_CSWAP | 1U << FI_CSWAP_NE;
	static const unsigned int orders =
		1U << FI_MIN | 1U << FI_MAX | 1U << FI_CSWAP_LE |
		1U << FI_CSWAP_LT | 1U << FI_CSWAP_GE | 1U << FI_CSWAP_GT;
	static const unsigned int bits =
		1U << FI_BOR | 1U << FI_BAND | 1U << FI_BXOR | 1U << FI_MSWAP;
	static const unsigned int any =
		1U << FI_SUM | 1U << FI_PROD | 1U << FI_LOR | 1U << FI_LAND |
		1U << FI_LXOR | 1U << FI_ATOMIC_READ | 1U << FI_ATOMIC_WRITE |
		1U << WF_OP_AMO_DIFF | compare;
	static const unsigned int classes[] = { any | orders | bits,
						any | orders, any };
	static const unsigned int swaps = 0x7f << FI_CSWAP;
	static const unsigned int calls[] = { ~swaps & ~(1U << FI_ATOMIC_READ),
					      ~swaps, swaps };

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		for (unsigned int op = 0; op < 300; op++)
			for (unsigned int t = 0; t < 300; t++)
				assert_int_equal(
					wf_op_amo_valid(op, t, kinds[k]),
					op < WF_OP_AMO_OPS &&
						t < WF_OP_AMO_TYPES &&
						(classes[types[t].class] &
						 calls[k]) >> op &
							1);
		assert_false(wf_op_amo_valid(UINT32_MAX, FI_INT8, kinds[k]));
		assert_false(wf_op_amo_valid(FI_SUM, UINT32_MAX, kinds[k]));
	}
	assert_false(wf_op_amo_valid(FI_SUM, FI_INT8, 3));
}

static void test_size(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < WF_OP_AMO_TYPES; t++)
		assert_int_equal(wf_op_amo_size(t), types[t].size);
	assert_int_equal(wf_op_amo_size(WF_OP_AMO_TYPES), 0);
	assert_int_equal(wf_op_amo_size(FI_VOID), 0);
	assert_int_equal(wf_op_amo_size(UINT32_MAX), 0);
}

static void test_known(void **state)
{
	static const uint32_t old = FI_VERSION(1, 5), mid = FI_VERSION(1, 17);
	static const uint32_t new = FI_VERSION(2, 0);

	(void)state;
	assert_true(wf_op_amo_known(FI_MSWAP, FI_LONG_DOUBLE_COMPLEX, old));
	assert_false(wf_op_amo_known(FI_SUM, FI_INT128, old));
	assert_true(wf_op_amo_known(FI_SUM, FI_UINT128, mid));
	assert_false(wf_op_amo_known(WF_OP_AMO_DIFF, FI_INT8, mid));
	assert_false(wf_op_amo_known(FI_SUM, WF_OP_AMO_FLOAT16, mid));
	assert_true(
		wf_op_amo_known(WF_OP_AMO_DIFF, WF_OP_AMO_FLOAT8_E5M2, new));
	assert_false(wf_op_amo_known(WF_OP_AMO_OPS, FI_INT8, new));
	assert_false(wf_op_amo_known(FI_SUM, WF_OP_AMO_TYPES, new));
}

/* Several elements, the result in the place of the operand or the compare. */
static void test_arrays(void **state)
{
	enum { COUNT = 5 };

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		for (unsigned int i = 0;
		     i < WF_OP_AMO_OPS * WF_OP_AMO_TYPES * 4; i++) {
			unsigned int op = i / 4 / WF_OP_AMO_TYPES;
			unsigned int t = i / 4 % WF_OP_AMO_TYPES;
			size_t size = types[t].size;
			uint8_t values[VALUES][MAX], expected[MAX];
			struct field target = { 0 }, operand, compare;
			uint8_t *at = target.bytes + i % 2;
			uint8_t *result = i % 4 / 2 ? operand.bytes + 5 :
						      compare.bytes + 7;

			if (!wf_op_amo_valid(op, t, kinds[k]))
				continue;
			make_values(t, values);
			for (size_t e = 0; e < COUNT; e++) {
				memcpy(at + e * size, values[e + 1], size);
				memcpy(operand.bytes + 5 + e * size,
				       values[e + 3], size);
				memcpy(compare.bytes + 7 + e * size,
				       values[2 * e], size);
			}
			wf_op_amo_run(kinds[k], op, t, at, operand.bytes + 5,
				      compare.bytes + 7, result, COUNT);
			for (size_t e = 0; e < COUNT; e++) {
				next(t, op, values[e + 1], values[e + 3],
				     values[2 * e], expected);
				assert_true(same(t, at + e * size, expected));
				if (kinds[k] != WF_OP_AMO_WRITE)
					assert_memory_equal(result + e * size,
							    values[e + 1],
							    size);
			}
		}
	}
}

/* Every pair of numbers of 8 bits: rounding, subnormals, overflow. */
static void test_float8_pairs(void **state)
{
	static const unsigned int ops[] = { FI_SUM, WF_OP_AMO_DIFF, FI_PROD };

	(void)state;
	for (unsigned int i = 0; i < 3 * 2 * 65536; i++) {
		unsigned int t = i / 65536 % 2 ? WF_OP_AMO_FLOAT8_E4M3 :
						 WF_OP_AMO_FLOAT8_E5M2;
		unsigned int op = ops[i / 65536 / 2];
		uint8_t a = (uint8_t)i, b = (uint8_t)(i >> 8), expected, is = a;

		next(t, op, &a, &b, &b, &expected);
		wf_op_amo_run(WF_OP_AMO_WRITE, op, t, &is, &b, NULL, NULL, 1);
		if (!same(t, &is, &expected))
			fail_msg("op %u datatype %u: %#x %#x gave %#x, not %#x",
				 op, t, a, b, is, expected);
	}
}

/* Memory that may only be read is read, at any alignment. */
static void test_read_only(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	for (size_t i = 0; i < page; i++)
		map[i] = (uint8_t)(i % 251);
	assert_int_equal(mprotect(map, page, PROT_READ), 0);
	for (unsigned int t = 0; t < WF_OP_AMO_TYPES; t++) {
		for (size_t at = 0; at < 65; at++) {
			uint8_t result[MAX];

			wf_op_amo_run(WF_OP_AMO_FETCH, FI_ATOMIC_READ, t,
				      map + at, NULL, NULL, result, 1);
			assert_memory_equal(result, map + at, types[t].size);
		}
	}
	munmap(map, page);
}

/* None is none: nothing is touched, not even looked at. */
static void test_no_elements(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < WF_OP_AMO_TYPES; t++)
		wf_op_amo_run(WF_OP_AMO_FETCH, FI_SUM, t, (void *)64, NULL,
			      NULL, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_every_combination),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_float8_pairs),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_no_elements),
	};

	return cmocka_run_group_tests(tests, NULL, free_tables);
}
