/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of SMM: alignment, coalescing, bad frees, any memory, threads,
 * processes that share a pool and die inside.
 */
#include "weft/smm.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chan/smm_defs.h"

#define POOL_SIZE (1u << 20)

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_refuses_bad_pools(void **state)
{
	static uint8_t memory[8192];

	(void)state;
	assert_int_equal(smm_init(NULL, 4096, 0), -EINVAL);
	assert_int_equal(smm_init(memory, 0, 0), -EINVAL);
	assert_int_equal(smm_init(memory, sizeof(memory), 5), -EINVAL);
	assert_int_equal(smm_init(memory, sizeof(memory), -1), -EINVAL);
	assert_int_equal(smm_init(memory, SIZE_MAX, 0), -EINVAL);
	assert_int_equal(smm_init(memory, 100, 0), -ENOMEM);
	assert_int_equal(smm_init(memory, sizeof(memory), 0xffff), -ENOMEM);
	memset(memory, 0, sizeof(memory));
	errno = 0;
	assert_null(smm_alloc(memory, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(smm_alloc(NULL, 1));
	assert_int_equal(smm_free(memory, memory + 4096), -EINVAL);
	assert_int_equal(smm_free(NULL, memory), -EINVAL);
	assert_int_equal(smm_available(memory, NULL), 0);
}

/* Every size of pool, at every odd address: a request that does not fit is
 * refused, and memory that is given lies inside. */
static void test_any_memory(void **state)
{
	static uint8_t memory[20000];

	(void)state;
	for (size_t size = 1; size < 9000; size += 37) {
		uint8_t *start = memory + size % 101;
		uint8_t *end = start + size;
		uint8_t *ptr;
		int err;

		memset(memory, 0xa5, sizeof(memory));
		err = smm_init(start, size, 63);
		assert_true(!err || err == -ENOMEM);
		while (!err && (ptr = smm_alloc(start, 64))) {
			assert_true(ptr >= start && ptr + 64 <= end);
			assert_int_equal((uintptr_t)ptr % 64, 0);
			memset(ptr, 0x5a, 64);
		}
		if (!err)
			assert_int_equal(smm_available(start, NULL), 0);
		for (uint8_t *p = end; p < memory + sizeof(memory); p++)
			assert_int_equal(*p, 0xa5);
		for (uint8_t *p = memory; p < start; p++)
			assert_int_equal(*p, 0xa5);
	}
}

/* A bug of the old SMM: the header of a block broke the alignment of what the
 * user got. */
static void test_alignment(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE);

	(void)state;
	assert_non_null(memory);
	for (int align = 1; align <= 65536; align *= 2) {
		assert_int_equal(smm_init(memory + 3, POOL_SIZE - 3, align - 1),
				 0);
		for (int i = 1; i < 7; i++) {
			void *ptr = smm_alloc(memory + 3, (size_t)i * 100);

			assert_non_null(ptr);
			assert_int_equal((uintptr_t)ptr % (uintptr_t)align, 0);
		}
	}
	free(memory);
}

static void test_whole_pool_and_back(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE);
	size_t all, largest;
	void *ptr[3];

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	all = smm_available(memory, &largest);
	assert_int_equal(all, largest);
	assert_true(all > POOL_SIZE / 10 * 8);
	ptr[0] = smm_alloc(memory, all);
	assert_non_null(ptr[0]);
	assert_null(smm_alloc(memory, 1));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(smm_free(memory, ptr[0]), 0);
	/* Freed in each order, three neighbours become one again. */
	for (int order = 0; order < 6; order++) {
		static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 },
						  { 1, 0, 2 }, { 1, 2, 0 },
						  { 2, 0, 1 }, { 2, 1, 0 } };

		for (int i = 0; i < 3; i++) {
			ptr[i] = smm_alloc(memory, all / 3 & ~(size_t)63);
			assert_non_null(ptr[i]);
		}
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				smm_free(memory, ptr[orders[order][i]]), 0);
		assert_int_equal(smm_available(memory, &largest), all);
		assert_int_equal(largest, all);
	}
	assert_null(smm_alloc(memory, all + 1));
	assert_null(smm_alloc(memory, SIZE_MAX));
	assert_null(smm_alloc(memory, 0));
	assert_int_equal(errno, EINVAL);
	free(memory);
}

/* A bug of the old SMM: an assertion instead of an answer. */
static void test_bad_frees(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE), *a, *b, *c;
	size_t before;

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	a = smm_alloc(memory, 1000);
	b = smm_alloc(memory, 1000);
	c = smm_alloc(memory, 64);
	assert_true(a && b && c);
	before = smm_available(memory, NULL);
	assert_int_equal(smm_free(memory, NULL), 0);
	assert_int_equal(smm_free(memory, a + 64), -EINVAL); /* its middle */
	assert_int_equal(smm_free(memory, a + 1), -EINVAL);
	assert_int_equal(smm_free(memory, memory), -EINVAL);
	assert_int_equal(smm_free(memory, &before), -EINVAL);
	assert_int_equal(smm_free(memory, memory + POOL_SIZE), -EINVAL);
	assert_int_equal(smm_free(memory, memory + POOL_SIZE - 64), -EINVAL);
	assert_int_equal(smm_available(memory, NULL), before);
	assert_int_equal(smm_free(memory, b), 0);
	assert_int_equal(smm_free(memory, b), -EINVAL); /* twice */
	assert_int_equal(smm_free(memory, a), 0);
	assert_int_equal(smm_free(memory, b), -EINVAL); /* now in a's run */
	assert_int_equal(smm_free(memory, a), -EINVAL);
	assert_int_equal(smm_free(memory, c), 0);
	free(memory);
}

struct held {
	uint8_t *ptr;
	size_t size;
	uint8_t value;
};

/* Random work; a block keeps its content, and all is whole at the end. */
static void churn(void *pool, uint64_t seed, int rounds)
{
	enum { HELD = 64 };
	struct held held[HELD] = { 0 };
	uint64_t random = seed * 2654435761u + 1;

	while (rounds--) {
		struct held *h = &held[next_random(&random) % HELD];

		if (h->ptr) {
			for (size_t i = 0; i < h->size; i++) {
				if (h->ptr[i] != h->value)
					abort();
			}
			if (smm_free(pool, h->ptr))
				abort();
			h->ptr = NULL;
			continue;
		}
		h->size = 1 + next_random(&random) %
				      (next_random(&random) % 8 ? 500 : 30000);
		h->value = (uint8_t)next_random(&random);
		h->ptr = smm_alloc(pool, h->size);
		if (h->ptr)
			memset(h->ptr, h->value, h->size);
	}
	for (int i = 0; i < HELD; i++) {
		if (held[i].ptr && smm_free(pool, held[i].ptr))
			abort();
	}
}

static void check_whole(void *pool, size_t all)
{
	size_t largest;

	assert_int_equal(smm_available(pool, &largest), all);
	assert_int_equal(largest, all);
}

static void *churn_thread(void *pool)
{
	churn(pool, (uint64_t)pthread_self(), 6000);
	return NULL;
}

static void test_threads(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE);
	pthread_t threads[4];
	size_t all;

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	all = smm_available(memory, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, churn_thread, memory),
			0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_whole(memory, all);
	free(memory);
}

static void *map_pool(int fd)
{
	void *pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);

	assert_ptr_not_equal(pool, MAP_FAILED);
	return pool;
}

/* Two mappings of one pool at different addresses, in two processes. */
static void test_processes(void **state)
{
	int fd = memfd_create("smm", MFD_CLOEXEC);
	uint8_t *here, *there;
	size_t all;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(ftruncate(fd, POOL_SIZE), 0);
	here = map_pool(fd);
	assert_int_equal(smm_init(here, POOL_SIZE, 63), 0);
	all = smm_available(here, NULL);
	pid = fork();
	if (!pid) {
		there = map_pool(fd);
		if (there == here)
			_exit(2);
		churn(there, 7, 20000);
		_exit(0);
	}
	churn(here, 8, 20000);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_whole(here, all);
	munmap(here, POOL_SIZE);
	close(fd);
}

/* Walks a pool, and accepts every state that is possible after somebody died
 * with the lock. */
static size_t walk(struct wf_smm_pool *pool, size_t *used)
{
	uint32_t at, tag, free_granules = 0;
	bool last_free = false;

	*used = 0;
	for (at = 0; at < pool->count; at += tag & WF_SMM_TAG_SIZE) {
		tag = pool->tags[at];
		assert_true(tag & WF_SMM_TAG_SIZE);
		if ((tag & WF_SMM_TAG_STATE) == WF_SMM_TAG_FREE) {
			assert_false(last_free);
			free_granules += tag & WF_SMM_TAG_SIZE;
			assert_int_equal(
				pool->tags[at + (tag & WF_SMM_TAG_SIZE) - 1],
				tag);
		} else {
			*used += tag & WF_SMM_TAG_SIZE;
		}
		last_free = (tag & WF_SMM_TAG_STATE) == WF_SMM_TAG_FREE;
	}
	assert_int_equal(at, pool->count);
	return free_granules;
}

/* Killed at random points, often inside: the next one repairs and goes on. */
static void test_killed_inside(void **state)
{
	int fd = memfd_create("smm", MFD_CLOEXEC);
	uint8_t *memory;
	size_t all, used;

	(void)state;
	assert_int_equal(ftruncate(fd, POOL_SIZE), 0);
	memory = map_pool(fd);
	for (int i = 0; i < 60; i++) {
		struct wf_smm_pool *pool = (void *)memory;
		int status;
		pid_t pid;

		assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
		all = smm_available(memory, NULL);
		pid = fork();
		if (!pid) {
			churn(memory, (uint64_t)i, 1 << 30);
			_exit(0);
		}
		usleep(1000 + (useconds_t)(i * 37 % 300));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* The blocks that it held stay taken; the rest must be
		 * usable. */
		churn(memory, 99, 200);
		assert_int_equal(walk(pool, &used), pool->free);
		assert_int_equal((pool->free + used) * 64, all);
	}
	munmap(memory, POOL_SIZE);
	close(fd);
}

/* Rubbish where the bookkeeping was: an error for ever, not a crash. */
static void test_not_recoverable(void **state)
{
	uint8_t *memory = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct wf_smm_pool *pool = (void *)memory;
	int status;
	void *ptr;
	pid_t pid;

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	ptr = smm_alloc(memory, 100);
	pid = fork();
	if (!pid) {
		pthread_mutex_lock(&pool->lock);
		memset(pool->tags, 0xee, 64);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 2; i++) {
		assert_null(smm_alloc(memory, 1));
		assert_int_equal(errno, ENOTRECOVERABLE);
		assert_int_equal(smm_free(memory, ptr), -ENOTRECOVERABLE);
	}
	munmap(memory, POOL_SIZE);
}

/* -- what threads keep ----------------------------------------------------- */

static void *free_and_leave(void *arg)
{
	void **blocks = arg; /* the pool, then blocks, then NULL */

	for (int i = 1; blocks[i]; i++)
		assert_int_equal(smm_free(blocks[0], blocks[i]), 0);
	return NULL;
}

/* Blocks that a thread kept when it ended are found by the thread that needs
 * them: small ones, and all of them together as one. */
static void test_kept_is_not_lost(void **state)
{
	enum { BLOCKS = 12 };
	uint8_t *memory = malloc(POOL_SIZE);
	void *blocks[BLOCKS + 2] = { memory }, *whole;
	pthread_t thread;
	size_t all;

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	all = smm_available(memory, NULL);
	for (int round = 0; round < 20; round++) {
		for (int i = 1; i <= BLOCKS; i++) {
			blocks[i] = smm_alloc(memory, (size_t)(i % 4) * 64 + 1);
			assert_non_null(blocks[i]);
		}
		pthread_create(&thread, NULL, free_and_leave, blocks);
		pthread_join(thread, NULL);
		for (int i = 1; i <= BLOCKS; i++)
			assert_int_equal(smm_free(memory, blocks[i]), -EINVAL);
		whole = smm_alloc(memory, all);
		assert_non_null(whole);
		assert_null(smm_alloc(memory, 1));
		assert_int_equal(smm_free(memory, whole), 0);
	}
	check_whole(memory, all);
	free(memory);
}

/* A thread's memory of a block is worth nothing once others have taken the
 * block. */
static void test_kept_is_taken(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE);
	void *small, *whole;
	size_t all;

	(void)state;
	assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
	all = smm_available(memory, NULL);
	for (int i = 0; i < 3; i++) {
		small = smm_alloc(memory, 64);
		assert_int_equal(smm_free(memory, small), 0);
		whole = smm_alloc(memory, all);
		assert_non_null(whole);
		assert_null(smm_alloc(memory, 64));
		assert_int_equal(smm_free(memory, whole), 0);
	}
	check_whole(memory, all);
	free(memory);
}

/* Memory that becomes a pool again: a kept block of the old one is not given
 * out. */
static void test_kept_of_the_past(void **state)
{
	uint8_t *memory = malloc(POOL_SIZE);
	uint8_t *seen[64];

	(void)state;
	for (int round = 0; round < 10; round++) {
		assert_int_equal(smm_init(memory, POOL_SIZE, 63), 0);
		for (int i = 0; i < 64; i++) {
			seen[i] = smm_alloc(memory, 200);
			assert_non_null(seen[i]);
			for (int j = 0; j < i; j++)
				assert_ptr_not_equal(seen[j], seen[i]);
		}
		for (int i = 0; i < 64; i++)
			assert_int_equal(smm_free(memory, seen[i]), 0);
	}
	free(memory);
}

struct race {
	void *pool;
	void *_Atomic ptr;
	atomic_int freed;
	pthread_barrier_t barrier;
};

static void *free_at_once(void *arg)
{
	struct race *race = arg;

	for (int i = 0; i < 20000; i++) {
		pthread_barrier_wait(&race->barrier);
		if (!smm_free(race->pool, race->ptr))
			race->freed++;
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

/* Two threads free the same block at the same moment, kept or not: one of them
 * is told so, and the block is there once. */
static void test_double_free_at_once(void **state)
{
	struct race race = { .pool = malloc(POOL_SIZE) };
	pthread_t thread;
	size_t all;

	(void)state;
	assert_int_equal(smm_init(race.pool, POOL_SIZE, 63), 0);
	all = smm_available(race.pool, NULL);
	pthread_barrier_init(&race.barrier, NULL, 2);
	pthread_create(&thread, NULL, free_at_once, &race);
	for (int i = 0; i < 20000; i++) {
		race.ptr = smm_alloc(race.pool, i % 3 ? 100 : POOL_SIZE / 2);
		assert_non_null(race.ptr);
		race.freed = 0;
		pthread_barrier_wait(&race.barrier);
		if (!smm_free(race.pool, race.ptr))
			race.freed++;
		pthread_barrier_wait(&race.barrier);
		assert_int_equal(race.freed, 1);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&race.barrier);
	check_whole(race.pool, all);
	free(race.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_pools),
		cmocka_unit_test(test_any_memory),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_whole_pool_and_back),
		cmocka_unit_test(test_bad_frees),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_kept_is_not_lost),
		cmocka_unit_test(test_kept_is_taken),
		cmocka_unit_test(test_kept_of_the_past),
		cmocka_unit_test(test_double_free_at_once),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_killed_inside),
		cmocka_unit_test(test_not_recoverable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
