/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of the kernels, compiled as plain C: what it compresses, zlib
 * decompresses, and the other way round; checksums are the right ones; nothing
 * is written outside of the room. On a GPU the results are the same, bit by
 * bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include <weft/wd_comp_drv.h>

#include "alg/drivers.h"
#include "cuda/deflate.h"
#include "cuda/inflate.h"
#include "tools/comp/bench.h"

#define GUARD 64
#define CORPUS (2u << 20)

static uint8_t *corpus;
static size_t corpus_len;
static uint32_t random_state = 1;

static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

/* A room that is framed, so that a byte outside of it is seen. */
static uint8_t *make_room(size_t len)
{
	uint8_t *room = malloc(len + 2 * GUARD);

	assert_non_null(room);
	memset(room, 0xa5, len + 2 * GUARD);
	return room + GUARD;
}

static void free_room(uint8_t *room, size_t len)
{
	for (size_t i = 0; i < GUARD; i++) {
		assert_int_equal(room[-1 - (long)i], 0xa5);
		assert_int_equal(room[len + i], 0xa5);
	}
	free(room - GUARD);
}

static struct wf_piece deflate_piece(const uint8_t *src, size_t len,
				     uint8_t *dst, size_t room, uint32_t flags)
{
	static struct wf_deflate_space space;
	static uint32_t tokens[WF_PIECE_TOKENS];
	struct wf_piece piece = { .src_len = (uint32_t)len,
				  .dst_len = (uint32_t)room,
				  .flags = flags,
				  .status = WF_PIECE_NONE };

	memset(&space, 0x5a, sizeof(space));
	wf_piece_deflate(&piece, src, dst, tokens, &space);
	return piece;
}

static struct wf_piece inflate_piece(const uint8_t *src, size_t len,
				     uint8_t *dst, size_t room, uint32_t flags,
				     const uint8_t *dict, size_t dict_len)
{
	static struct wf_inflate_space space;
	struct wf_piece piece = { .src_len = (uint32_t)len,
				  .dst_len = (uint32_t)room,
				  .dict_len = (uint32_t)dict_len,
				  .flags = flags,
				  .status = WF_PIECE_NONE };

	memset(&space, 0x5a, sizeof(space));
	wf_piece_inflate(&piece, src, dst, dict, &space);
	return piece;
}

/* By zlib, as a whole stream or up to a flush. */
static void check_zlib(const uint8_t *packed, size_t len, const uint8_t *plain,
		       size_t plain_len, int final)
{
	uint8_t *out = make_room(plain_len);
	struct wd_comp_job job = {
		.src = packed,
		.src_len = len,
		.dst = out,
		.dst_len = plain_len,
		.flush = final ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
	};
	int ret = wf_drv_zlib.inflate(&job);

	assert_int_equal(ret, final ? 0 : -ENODATA);
	assert_true(final ? job.ended : job.border);
	assert_int_equal(job.produced, plain_len);
	assert_int_equal(job.consumed, len);
	assert_memory_equal(out, plain, plain_len);
	free_room(out, plain_len);
}

/* There and back, by zlib and by ourselves. Returns the compressed size. */
static size_t check_round(const uint8_t *plain, size_t len, int final)
{
	size_t room = WF_PIECE_BOUND(len);
	uint8_t *packed = make_room(room), *out = make_room(len);
	uint32_t flags = (final ? WF_PIECE_FINAL : 0) | WF_PIECE_CRC32;
	struct wf_piece p = deflate_piece(plain, len, packed, room, flags);
	uint32_t crc = wd_comp_check(
		WD_COMP_GZIP, wd_comp_check_init(WD_COMP_GZIP), plain, len);
	size_t size = p.produced;

	assert_int_equal(p.status, WF_PIECE_OK);
	assert_int_equal(p.consumed, len);
	assert_int_equal(p.check, crc);
	assert_true(size <= room);
	check_zlib(packed, size, plain, len, final);
	p = inflate_piece(packed, size, out, len, WF_PIECE_CRC32, NULL, 0);
	assert_int_equal(p.status, final ? WF_PIECE_OK : WF_PIECE_SHORT);
	assert_int_equal(p.border, !final);
	assert_int_equal(p.produced, len);
	assert_int_equal(p.consumed, size);
	assert_int_equal(p.check, crc);
	assert_memory_equal(out, plain, len);
	free_room(packed, room);
	free_room(out, len);
	return size;
}

static void test_round(void **state)
{
	static const size_t sizes[] = { 0,    1,    2,	   3,	 4,   5,
					7,    8,    31,	   32,	 33,  63,
					64,   65,   100,   258,	 259, 260,
					1000, 4096, 65535, 65536 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int final = 0; final < 2; final++) {
			check_round(corpus, sizes[i], final);
			check_round(corpus + 1 + i, sizes[i], final);
		}
	}
}

static void test_data(void **state)
{
	uint8_t *data = malloc(WF_PIECE_MOST);

	(void)state;
	assert_non_null(data);
	memset(data, 0, WF_PIECE_MOST);
	/* 255 matches and a block that describes one distance. */
	assert_true(check_round(data, WF_PIECE_MOST, 1) < 400);
	for (uint32_t i = 0; i < WF_PIECE_MOST; i++)
		data[i] = (uint8_t)(next_random() >> 24);
	/* Stored: some bytes a block, and no more. */
	assert_true(check_round(data, WF_PIECE_MOST, 1) < WF_PIECE_MOST + 40);
	assert_true(check_round(data, 12345, 0) < 12345 + 20);
	/* Few symbols, rarely one more: the longest codes. */
	for (uint32_t i = 0; i < WF_PIECE_MOST; i++)
		data[i] = (uint8_t)wf_bits_count(next_random() & next_random() &
						 next_random() & 0xfffff);
	check_round(data, WF_PIECE_MOST, 1);
	for (uint32_t i = 0, next = 1, value = 0; i < WF_PIECE_MOST; i++) {
		/* How often a byte comes grows as Fibonacci's numbers do. */
		if (i == next) {
			next = next * 8 / 5 + 1;
			value++;
		}
		data[(i * 40503u) & 0xffff] = (uint8_t)value;
	}
	check_round(data, WF_PIECE_MOST, 1);
	for (uint32_t period = 1; period < 40; period++) {
		for (uint32_t i = 0; i < 3000; i++)
			data[i] = (uint8_t)(i % period * 37);
		check_round(data, 3000, 1);
	}
	free(data);
}

/* As good as zlib's level 1 within 5 %, which the driver's table claims. */
static void test_size(void **state)
{
	uint8_t *packed = malloc(2 * WF_PIECE_MOST);
	size_t ours = 0, theirs = 0;

	(void)state;
	assert_non_null(packed);
	for (size_t at = 0; at + WF_PIECE_MOST <= corpus_len;
	     at += WF_PIECE_MOST) {
		struct wd_comp_job job = {
			.src = corpus + at,
			.src_len = WF_PIECE_MOST,
			.dst = packed,
			.dst_len = 2 * WF_PIECE_MOST,
			.level = 1,
			.window = 15,
		};

		assert_int_equal(wf_drv_zlib.deflate(&job), 0);
		theirs += job.produced;
		ours += check_round(corpus + at, WF_PIECE_MOST, 1);
	}
	print_message("%zu bytes: %zu, zlib's level 1: %zu\n", corpus_len, ours,
		      theirs);
	assert_true(ours * 100 <= theirs * 105);
	free(packed);
}

/* Too little room is said, and kept to. */
static void test_room(void **state)
{
	uint8_t *packed = make_room(WF_PIECE_BOUND(20000));
	struct wf_piece p;
	size_t size;

	(void)state;
	p = deflate_piece(corpus, 20000, packed, WF_PIECE_BOUND(20000),
			  WF_PIECE_FINAL);
	size = p.produced;
	for (size_t room = 0; room < 20000; room += 1 + room / 3) {
		uint8_t *out = make_room(room);

		p = inflate_piece(packed, size, out, room, 0, NULL, 0);
		assert_int_equal(p.status, WF_PIECE_FULL);
		assert_int_equal(p.produced, room);
		assert_memory_equal(out, corpus, room);
		free_room(out, room);
	}
	for (size_t room = 0; room < size; room += 4 + room / 12 * 4) {
		uint8_t *out = make_room(room);

		p = deflate_piece(corpus, 20000, out, room, WF_PIECE_FINAL);
		assert_int_equal(p.status, WF_PIECE_FULL);
		free_room(out, room);
	}
	/* And a stream that is cut anywhere. */
	for (size_t cut = 0; cut < size; cut += 1 + cut / 20) {
		uint8_t *out = make_room(20000);

		p = inflate_piece(packed, cut, out, 20000, 0, NULL, 0);
		assert_int_equal(p.status, WF_PIECE_SHORT);
		assert_int_equal(p.border, !cut);
		assert_memory_equal(out, corpus, p.produced);
		free_room(out, 20000);
	}
	free_room(packed, WF_PIECE_BOUND(20000));
}

/* The output of zlib, at each level, begins at any address, and follows other
 * data. */
static void test_zlib(void **state)
{
	const size_t len = 300000;
	uint8_t *packed = malloc(2 * len);

	(void)state;
	assert_non_null(packed);
	for (int level = 1; level < 10; level++) {
		size_t dict_len = level % 2 ? 0 : 3000u * (size_t)level;
		struct wd_comp_job job = {
			.src = corpus + 40000,
			.src_len = len,
			.dst = packed + level,
			.dst_len = 2 * len - 9,
			.dict = corpus + 40000 - dict_len,
			.dict_len = dict_len,
			.level = level,
			.window = 15,
		};
		uint8_t *out = make_room(len);
		struct wf_piece p;

		assert_int_equal(wf_drv_zlib.deflate(&job), 0);
		p = inflate_piece(job.dst, job.produced, out, len,
				  WF_PIECE_ADLER32, job.dict, dict_len);
		assert_int_equal(p.status, WF_PIECE_OK);
		assert_int_equal(p.consumed, job.produced);
		assert_int_equal(p.produced, len);
		assert_memory_equal(out, job.src, len);
		assert_int_equal(p.check,
				 wd_comp_check(WD_COMP_ZLIB,
					       wd_comp_check_init(WD_COMP_ZLIB),
					       out, len));
		free_room(out, len);
	}
	free(packed);
}

static int setup(void **state)
{
	(void)state;
	corpus = malloc(CORPUS);
	if (!corpus)
		return -1;
	corpus_len = wf_tools_comp_corpus(corpus, CORPUS);
	return corpus_len < 400000 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	free(corpus);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round), cmocka_unit_test(test_data),
		cmocka_unit_test(test_size),  cmocka_unit_test(test_room),
		cmocka_unit_test(test_zlib),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
