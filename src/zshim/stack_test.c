/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with the smallest stack that the system allows (16 KiB) can use
 * zlib, and so they can use us: uncompress(), Z_FULL_FLUSH and
 * deflateGetDictionary() once had frames of 15 to 32 KiB. Each call runs on a
 * stack of its own that is marked before, so that a test that fails says how
 * much was used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <zlib.h>

#define SIZE 200000u
#define ROOM (256u << 10) /* below the stack, so that nothing is damaged */
#define ALLOWED (16u << 10)
#define MARK 0xa5

/* Sanitizers make every frame larger, and check more than this test does. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static uint8_t data[SIZE], packed[SIZE * 2], plain[SIZE];
static uLongf packed_len;
static uint8_t room[ROOM + ALLOWED] __attribute__((aligned(4096)));
static int result;

static void *do_compress(void *arg)
{
	packed_len = sizeof(packed);
	result = compress2(packed, &packed_len, data, SIZE, *(int *)arg);
	return NULL;
}

static void *do_uncompress(void *arg)
{
	uLongf len = SIZE;

	(void)arg;
	result = uncompress(plain, &len, packed, packed_len);
	return NULL;
}

static void *do_uncompress_small(void *arg)
{
	uLongf len = SIZE;

	(void)arg;
	/* An empty stream. */
	result = uncompress(plain, &len,
			    (const Bytef *)"\x78\x9c\x03\x00\x00\x00\x00\x01",
			    8);
	return NULL;
}

static void *do_flushes(void *arg)
{
	static const int flushes[] = { Z_FULL_FLUSH, Z_SYNC_FLUSH, Z_BLOCK,
				       Z_PARTIAL_FLUSH, Z_FULL_FLUSH };
	z_stream s = { 0 };
	uInt len;

	result = deflateInit2(&s, *(int *)arg, Z_DEFLATED, 31, 8, 0);
	s.next_out = packed;
	s.avail_out = sizeof(packed);
	s.next_in = data;
	for (size_t i = 0; i < 5 && !result; i++) {
		/* Large ones first, then small ones: pieces, then zlib. */
		s.avail_in = i ? 30000 / (uInt)i : 80000;
		result = deflate(&s, flushes[i]);
		if (!result)
			result = deflateGetDictionary(&s, NULL, &len);
		if (!result && len > 32768)
			result = 1;
	}
	if (!result)
		result = deflate(&s, Z_FINISH) != Z_STREAM_END;
	deflateEnd(&s);
	return NULL;
}

/* Bytes of its stack that a thread used for this, with what the C library keeps
 * there for every thread. */
static size_t thread_depth(void *(*func)(void *), int *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t i = 0;

	memset(room, MARK, sizeof(room));
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, room + ROOM, ALLOWED), 0);
	assert_int_equal(pthread_create(&thread, &attr, func, arg), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	while (i < sizeof(room) && room[i] == MARK)
		i++;
	return sizeof(room) - i;
}

static void *(*in_coroutine)(void *);
static int *coroutine_arg;

static void coroutine(void)
{
	in_coroutine(coroutine_arg);
}

/* The same for a coroutine of this thread. */
static size_t coroutine_depth(void *(*func)(void *), int *arg)
{
	ucontext_t here, there;
	size_t i = 0;

	memset(room, MARK, sizeof(room));
	in_coroutine = func;
	coroutine_arg = arg;
	assert_int_equal(getcontext(&there), 0);
	there.uc_stack.ss_sp = room + ROOM;
	there.uc_stack.ss_size = ALLOWED;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	assert_int_equal(swapcontext(&here, &there), 0);
	while (i < sizeof(room) && room[i] == MARK)
		i++;
	return sizeof(room) - i;
}

typedef size_t (*measure)(void *(*func)(void *), int *arg);

static void check(measure depth, const char *name, void *(*func)(void *),
		  int *arg)
{
	size_t used;

	if (SANITIZED)
		return;
	used = depth(func, arg);
	print_message("%-20s level %d: %zu bytes\n", name, arg ? *arg : 0,
		      used);
	assert_int_equal(result, 0);
	assert_in_range(used, 0, ALLOWED);
}

static void check_all(measure depth)
{
	int levels[] = { 6, 1, 9 };

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)((i * 2654435761u >> 13 & 15) + i / 999);
	check(depth, "small uncompress()", do_uncompress_small, NULL);
	for (size_t i = 0; i < 3; i++) {
		check(depth, "compress()", do_compress, &levels[i]);
		check(depth, "uncompress()", do_uncompress, NULL);
		check(depth, "flushes", do_flushes, &levels[i]);
	}
}

/* The first of these calls also finds zlib and the drivers. */
static void test_small_stacks(void **state)
{
	(void)state;
	check_all(thread_depth);
}

/* A bug: the first thread was taken to have a large stack wherever it was. */
static void test_coroutine(void **state)
{
	(void)state;
	check_all(coroutine_depth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_stacks),
		cmocka_unit_test(test_coroutine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
