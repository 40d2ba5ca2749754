/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks and the search for their begins: every border of a stream is found,
 * and from every one of them the rest comes out right once the window is known,
 * whether that is after the chunk or in the middle of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp.h>

#include "deflate/chunk.h"
#include "deflate/find.h"

#define PLAIN (1u << 20)
#define BORDERS 64
#define ROOM (4u << 20)

static uint8_t *plain, *packed, *whole;
static size_t packed_len;
static struct wf_chunk chunk;
static uint8_t table[65536];
static struct {
	uint64_t bit;
	size_t out;
} borders[BORDERS];
static size_t borders_count;

/* Lines that are like others, far back and near. */
static void make_plain(void)
{
	uint32_t seed = 9;
	size_t at = 0;

	while (at < PLAIN) {
		seed = seed * 1664525u + 1013904223u;
		if (at > 70000 && seed >> 30) {
			size_t back = 1 + (seed >> 4) % 65000;
			size_t n = 4 + (seed >> 20) % 40;

			for (; n-- && at < PLAIN; at++)
				plain[at] = plain[at - back];
		} else {
			plain[at++] = (uint8_t)('a' + (seed >> 24) % 40);
		}
	}
}

/* All borders at which another block follows, by decompressing in order. */
static void find_borders(void)
{
	struct wf_border at = { 0, false };
	uint8_t window[WF_CHUNK_WINDOW];
	size_t have = 0, out = 0;

	for (;;) {
		chunk.stop = at.bit + 1;
		chunk.exact = true;
		wf_deflate_chunk_begin(&chunk, at,
				       window + WF_CHUNK_WINDOW - have, have);
		if (wf_deflate_chunk_run(&chunk) != WF_CHUNK_STOP ||
		    chunk.border.member)
			break;
		assert_true(wf_deflate_chunk_window(&chunk, window, &have));
		out += wf_chunk_total(&chunk);
		at = chunk.border;
		assert_memory_equal(window + WF_CHUNK_WINDOW - have,
				    plain + out - have, have);
		/* The last block is not looked for. */
		if ((packed[at.bit / 8] | packed[at.bit / 8 + 1] << 8) >>
			    (at.bit & 7) &
		    1)
			break;
		assert_true(borders_count < BORDERS);
		borders[borders_count].bit = at.bit;
		borders[borders_count++].out = out;
	}
	assert_true(borders_count > 3);
}

static int set_up(void **state)
{
	struct wd_comp_ctx ctx = { .comp_level = 6, .driver = "zlib" };
	size_t in = PLAIN;

	(void)state;
	plain = malloc(PLAIN);
	packed = malloc(PLAIN + 1024);
	whole = malloc(PLAIN);
	chunk.room = malloc(ROOM);
	chunk.size = ROOM;
	if (!plain || !packed || !whole || !chunk.room ||
	    wf_deflate_chunk_init(&chunk))
		return -1;
	make_plain();
	packed_len = PLAIN + 1024;
	if (wd_alg_deflate(&ctx, plain, &in, packed, &packed_len))
		return -1;
	chunk.in = packed;
	chunk.len = packed_len;
	find_borders();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	wf_deflate_chunk_exit(&chunk);
	free(chunk.room);
	free(whole);
	free(packed);
	free(plain);
	return 0;
}

static void test_found(void **state)
{
	uint64_t from = 1;

	(void)state;
	for (size_t i = 0; i < borders_count; i++) {
		uint64_t bit = borders[i].bit;

		assert_int_equal(
			wf_deflate_find_block(packed, packed_len, bit, bit + 1),
			bit);
		/* Nothing that is none before it. */
		assert_int_equal(wf_deflate_find_block(packed, packed_len, from,
						       packed_len * 8),
				 bit);
		assert_int_equal(
			wf_deflate_find_block(packed, packed_len, from, bit),
			WF_FIND_NONE);
		from = bit + 1;
	}
}

/* It reads nothing behind its input: a sanitizer sees to that. */
static void test_bounds(void **state)
{
	size_t at = borders[1].bit / 8;

	(void)state;
	for (size_t len = 0; len < 200; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, packed + at, len);
		wf_deflate_find_block(copy, len, borders[1].bit & 7, len * 8);
		wf_deflate_find_block(copy, len, 0, UINT64_MAX / 2);
		wf_deflate_find_member(copy, len, 0, UINT64_MAX / 2);
		free(copy);
	}
}

static void test_member(void **state)
{
	uint8_t bytes[64] = { 0 };

	(void)state;
	memcpy(bytes + 20, "\x1f\x8b\x08\x20", 4); /* a flag that is none */
	memcpy(bytes + 30, "\x1f\x1f\x8b\x08\x00", 5);
	assert_int_equal(wf_deflate_find_member(bytes, 64, 0, 64), 31);
	assert_int_equal(wf_deflate_find_member(bytes, 64, 32, 64),
			 WF_FIND_NONE);
	assert_int_equal(wf_deflate_find_member(bytes, 40, 0, 40),
			 WF_FIND_NONE);
}

/* This struct holds what the caller knows, and from which block on. */
struct knower {
	unsigned int after;
	const uint8_t *window;
};

static enum wf_chunk_answer ask(void *arg, const uint8_t **window)
{
	struct knower *k = arg;

	if (k->after--)
		return WF_CHUNK_GO_ON;
	*window = k->window;
	return WF_CHUNK_HAVE;
}

static void check_rest(size_t out, const uint8_t *window)
{
	size_t total = wf_chunk_total(&chunk);

	assert_int_equal(out + total, PLAIN);
	wf_deflate_chunk_table(table, window);
	for (size_t at = 0; at < chunk.wide; at += 1000) {
		size_t n = chunk.wide - at < 1000 ? chunk.wide - at : 1000;

		memcpy(whole + at,
		       wf_deflate_chunk_resolve(&chunk, at, n, table), n);
	}
	memcpy(whole + chunk.wide, chunk.narrow_at, chunk.narrow);
	assert_memory_equal(whole, plain + out, total);
}

static void test_unknown(void **state)
{
	(void)state;
	chunk.exact = false;
	chunk.stop = UINT64_MAX;
	for (size_t i = 0; i < borders_count; i++) {
		struct wf_border at = { borders[i].bit, false };
		uint8_t window[WF_CHUNK_WINDOW], last[WF_CHUNK_WINDOW];
		size_t out = borders[i].out, have;

		if (out < WF_CHUNK_WINDOW)
			continue;
		memcpy(window, plain + out - WF_CHUNK_WINDOW, WF_CHUNK_WINDOW);
		/* Never told, and told before the second and third block. */
		for (unsigned int after = 0; after < 3; after++) {
			struct knower k = { after, window };

			have = WF_CHUNK_WINDOW;
			chunk.ask = after ? ask : NULL;
			chunk.arg = &k;
			wf_deflate_chunk_begin(&chunk, at, NULL, 0);
			assert_int_equal(wf_deflate_chunk_run(&chunk),
					 WF_CHUNK_AFTER);
			assert_true(chunk.wide);
			memcpy(last, window, sizeof(last));
			assert_true(
				wf_deflate_chunk_window(&chunk, last, &have));
			assert_memory_equal(last,
					    plain + PLAIN - WF_CHUNK_WINDOW,
					    WF_CHUNK_WINDOW);
			check_rest(out, window);
		}
		/* Markers before the begin of the data are seen. */
		have = 10;
		chunk.ask = NULL;
		wf_deflate_chunk_begin(&chunk, at, NULL, 0);
		wf_deflate_chunk_run(&chunk);
		memcpy(last, window, sizeof(last));
		assert_false(wf_deflate_chunk_window(&chunk, last, &have));
	}
}

/* A piece that has too little room or input ends at a border. */
static void test_short(void **state)
{
	(void)state;
	chunk.ask = NULL;
	chunk.size = WF_CHUNK_ROOM_LEAST;
	wf_deflate_chunk_begin(&chunk, (struct wf_border){ 0, false }, plain,
			       0);
	assert_int_equal(wf_deflate_chunk_run(&chunk), WF_CHUNK_FULL);
	assert_memory_equal(chunk.narrow_at, plain, chunk.narrow);
	chunk.size = ROOM;
	for (size_t len = packed_len - 300; len < packed_len; len++) {
		uint8_t *copy = malloc(len);

		assert_non_null(copy);
		memcpy(copy, packed, len);
		chunk.in = copy;
		chunk.len = len;
		wf_deflate_chunk_begin(&chunk, (struct wf_border){ 0, false },
				       plain, 0);
		assert_int_equal(wf_deflate_chunk_run(&chunk), WF_CHUNK_SHORT);
		assert_false(chunk.border.member);
		free(copy);
	}
	chunk.in = packed;
	chunk.len = packed_len;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),  cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_member), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
