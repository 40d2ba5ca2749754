/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of vectors of buffers: every offset and length of a few vectors,
 * against copying byte by byte.
 */
#include "op/iov.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PARTS 4
#define ROOM 64

static uint8_t memory[ROOM];

/* Empty parts first, last and in the middle are allowed. */
static const size_t shapes[][PARTS] = {
	{ 0, 0, 0, 0 },	 { 1, 0, 0, 0 },   { 0, 0, 0, 9 }, { 8, 0, 0, 0 },
	{ 3, 5, 7, 11 }, { 0, 13, 0, 2 },  { 1, 1, 1, 1 }, { 16, 0, 16, 1 },
	{ 7, 0, 0, 7 },	 { 2, 30, 1, 13 },
};

/* Parts lie apart from each other, so that writing past one shows. */
static size_t lay_out(const size_t *shape, struct iovec *iov)
{
	uint8_t *at = memory;

	for (size_t i = 0; i < PARTS; i++) {
		iov[i] = (struct iovec){ at, shape[i] };
		at += shape[i] + 3;
	}
	return wf_op_iov_len(iov, PARTS);
}

static uint8_t *byte_at(const struct iovec *iov, size_t offset)
{
	size_t i = 0;

	while (offset >= iov[i].iov_len)
		offset -= iov[i++].iov_len;
	return (uint8_t *)iov[i].iov_base + offset;
}

static void check_scatter(const struct iovec *iov, size_t offset, size_t len)
{
	uint8_t from[ROOM], want[ROOM];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	memset(memory, 0xee, sizeof(memory));
	for (size_t i = 0; i < len; i++)
		*byte_at(iov, offset + i) = from[i];
	memcpy(want, memory, sizeof(want));
	memset(memory, 0xee, sizeof(memory));
	wf_op_iov_scatter(iov, PARTS, offset, from, len);
	assert_memory_equal(memory, want, sizeof(want));
}

static void check_gather(const struct iovec *iov, size_t offset, size_t len)
{
	uint8_t got[ROOM + 1];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + 1);
	memset(got, 0xee, sizeof(got));
	wf_op_iov_gather(iov, PARTS, offset, got, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(got[i], *byte_at(iov, offset + i));
	assert_int_equal(got[len], 0xee);
}

static void check_slice(const struct iovec *iov, size_t offset, size_t len)
{
	struct iovec part[PARTS + 1];
	size_t count;

	part[PARTS].iov_base = memory;
	count = wf_op_iov_slice(iov, PARTS, offset, len, part);
	assert_true(count <= PARTS);
	assert_ptr_equal(part[PARTS].iov_base, memory);
	assert_int_equal(wf_op_iov_len(part, count), len);
	/* The kernel is given no empty parts. */
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(part[i].iov_len, 0);
	for (size_t i = 0; i < len; i++)
		assert_ptr_equal(byte_at(part, i), byte_at(iov, offset + i));
}

static void every_part(void (*check)(const struct iovec *iov, size_t offset,
				     size_t len))
{
	struct iovec iov[PARTS];

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		size_t total = lay_out(shapes[i], iov);

		for (size_t offset = 0; offset <= total; offset++) {
			for (size_t len = 0; len <= total - offset; len++)
				check(iov, offset, len);
		}
	}
}

static void test_scatter(void **state)
{
	(void)state;
	every_part(check_scatter);
}

static void test_gather(void **state)
{
	(void)state;
	every_part(check_gather);
}

static void test_slice(void **state)
{
	(void)state;
	every_part(check_slice);
}

static void test_empty(void **state)
{
	struct iovec out[1];

	(void)state;
	assert_int_equal(wf_op_iov_len(NULL, 0), 0);
	assert_int_equal(wf_op_iov_slice(NULL, 0, 0, 0, out), 0);
	wf_op_iov_scatter(NULL, 0, 0, NULL, 0);
	wf_op_iov_gather(NULL, 0, 0, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
