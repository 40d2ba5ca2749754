/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of copying from both sides: every chunk exactly once, whoever is
 * faster; and descriptions that make no sense.
 */
#include "shm/share.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CHUNK ((size_t)16 << 10)
#define LEN (40 * CHUNK + 123)
#define CHUNKS 41

static struct wf_shm_share share;
static atomic_uchar copied[CHUNKS]; /* how often */

static int count_copy(void *arg, uint64_t offset, uint64_t part)
{
	uint64_t chunk = offset / CHUNK;

	(void)arg;
	if (offset % CHUNK || chunk >= CHUNKS ||
	    part != (chunk == CHUNKS - 1 ? 123 : CHUNK))
		return -EINVAL;
	atomic_fetch_add(&copied[chunk], 1);
	return 0;
}

static void open_share(size_t len)
{
	struct iovec to = { NULL, len };

	memset(copied, 0, sizeof(copied));
	/* The contents that an earlier message left there must not count. */
	memset(&share, 0xff, sizeof(share));
	wf_shm_share_open(&share, &to, 1, len, CHUNK);
	assert_int_equal(atomic_load(&share.claimed), 0);
	assert_int_equal(atomic_load(&share.sender_done), 0);
	assert_int_equal(atomic_load(&share.sender_failed), 0);
}

static void check_all_once(void)
{
	for (int i = 0; i < CHUNKS; i++)
		assert_int_equal(copied[i], 1);
}

static void *copy_all(void *arg)
{
	uint32_t *done = arg;
	int ret;

	do
		ret = wf_shm_share_copy(&share, CHUNK, LEN, count_copy, NULL,
					done);
	while (!ret);
	return ret == 1 ? NULL : done;
}

static void test_alone(void **state)
{
	uint32_t done = 0;

	(void)state;
	open_share(LEN);
	assert_null(copy_all(&done));
	assert_int_equal(done, CHUNKS);
	check_all_once();
	/* Coming late there is nothing to do. */
	assert_null(copy_all(&done));
	assert_int_equal(done, CHUNKS);
}

static void test_together(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		uint32_t mine = 0, theirs = 0;
		pthread_t thread;
		void *bad;

		open_share(LEN);
		assert_int_equal(
			pthread_create(&thread, NULL, copy_all, &theirs), 0);
		assert_null(copy_all(&mine));
		assert_int_equal(pthread_join(thread, &bad), 0);
		assert_null(bad);
		assert_int_equal(mine + theirs, CHUNKS);
		check_all_once();
	}
}

static int fail_copy(void *arg, uint64_t offset, uint64_t part)
{
	(void)part;
	return offset >= *(uint64_t *)arg ? -EPERM : 0;
}

static void test_failure_counts_what_was_done(void **state)
{
	uint64_t from = 5 * CHUNK;
	uint32_t done = 0;

	(void)state;
	open_share(LEN);
	assert_int_equal(
		wf_shm_share_copy(&share, CHUNK, LEN, fail_copy, &from, &done),
		-EPERM);
	assert_int_equal(done, 5);
}

/* A call gives others a turn before a large message is done. */
static void test_budget(void **state)
{
	uint64_t never = UINT64_MAX;
	uint32_t done = 0;

	(void)state;
	open_share((size_t)1 << 30);
	assert_int_equal(wf_shm_share_copy(&share, CHUNK, (uint64_t)1 << 30,
					   fail_copy, &never, &done),
			 0);
	assert_in_range(done * CHUNK, (size_t)1 << 20, (size_t)64 << 20);
}

/* The counter is the peer's to write: it chooses among our chunks at most. */
static void test_hostile_counter(void **state)
{
	static const uint32_t values[] = { CHUNKS, CHUNKS + 1, UINT32_MAX,
					   UINT32_MAX / 2, 1u << 31 };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint32_t done = 0;

		open_share(LEN);
		atomic_store(&share.claimed, values[i]);
		assert_int_equal(wf_shm_share_copy(&share, CHUNK, LEN,
						   count_copy, NULL, &done),
				 1);
		assert_int_equal(done, 0);
	}
}

static void test_join_checks(void **state)
{
	struct wf_tx req = { .len = LEN };
	struct wf_shm_tx tx = { .req = &req };
	struct iovec to[2] = { { &share, 1000 }, { &tx, LEN - 1000 } };

	(void)state;
	wf_shm_share_open(&share, to, 2, LEN, CHUNK);
	assert_true(wf_shm_share_join(&share, &tx));
	assert_int_equal(tx.help.chunk, CHUNK);
	assert_int_equal(tx.help.len, LEN);
	assert_int_equal(tx.help.iov_count, 2);
	assert_ptr_equal(tx.help.iov[1].iov_base, &tx);

#define REFUSED(change)                                                        \
	do {                                                                   \
		wf_shm_share_open(&share, to, 2, LEN, CHUNK);                  \
		change;                                                        \
		assert_false(wf_shm_share_join(&share, &tx));                  \
	} while (0)

	REFUSED(share.chunk = 0);
	REFUSED(share.chunk = 64);
	REFUSED(share.len = LEN + 1);
	REFUSED(share.len = UINT64_MAX);
	REFUSED(share.iov_count = WF_SHM_SHARE_IOV + 1);
	REFUSED(share.iov_count = UINT32_MAX);
	REFUSED(share.iov_count = 1);
	REFUSED(share.iov[1].len--);
	REFUSED(share.iov[1].len = UINT64_MAX);
	/* More claims than the counter can count. */
	req.len = SIZE_MAX;
	REFUSED(share.len = UINT64_MAX; share.iov[1].len = UINT64_MAX - 1000;
		share.chunk = 4096);
}

/* The sender's part, into this process by CMA. */
static void test_help(void **state)
{
	struct wf_shm_mover mover;
	uint8_t *from = malloc(LEN), *to = calloc(1, LEN);
	struct iovec iov[3] = { { to, 1 },
				{ to + 1, 50000 },
				{ to + 50001, LEN - 50001 } };
	struct wf_tx req = {
		.len = LEN,
		.iov_count = 2,
		.iov = { { from, 777 }, { from + 777, LEN - 777 } },
	};
	struct wf_shm_tx tx = { .req = &req };

	uint64_t addr, value;

	(void)state;
	assert_true(from && to);
	for (size_t i = 0; i < LEN; i++)
		from[i] = (uint8_t)(i * 31 + i / 253);
	/* As if the guard page were that of another process. */
	wf_shm_mover_own_probe(&addr, &value);
	wf_shm_mover_open(&mover, getpid(), ~value, addr, value, true);
	mover.way = WF_SHM_WAY_CMA;
	wf_shm_share_open(&share, iov, 3, LEN, CHUNK);
	assert_true(wf_shm_share_join(&share, &tx));
	while (wf_shm_share_help(&share, &mover, &tx))
		;
	if (!atomic_load(&share.sender_failed)) {
		assert_int_equal(atomic_load(&share.sender_done), CHUNKS);
		assert_memory_equal(from, to, LEN);
	}
	/* Memory that is not there: said so, and no more is claimed. */
	iov[2].iov_base = (void *)(uintptr_t)4096;
	wf_shm_share_open(&share, iov, 3, LEN, CHUNK);
	assert_true(wf_shm_share_join(&share, &tx));
	assert_false(wf_shm_share_help(&share, &mover, &tx));
	assert_int_not_equal(atomic_load(&share.sender_failed), 0);
	/* In one process the receiver copies alone. */
	mover.way = WF_SHM_WAY_SELF;
	wf_shm_share_open(&share, iov, 3, LEN, CHUNK);
	assert_false(wf_shm_share_help(&share, &mover, &tx));
	assert_int_equal(atomic_load(&share.claimed), 0);
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_failure_counts_what_was_done),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_hostile_counter),
		cmocka_unit_test(test_join_checks),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
