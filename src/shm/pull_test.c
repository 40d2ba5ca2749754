/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of parked messages at the receiver: those of a burst are read in one
 * system call, and each ends by itself if that call fails. Both ends are in this
 * process, which copies from its own memory by CMA.
 */
#include "shm/pull.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/shared.h"
#include "shm/joined_test.h"

#define PARKED 20000 /* above eager_max of joined_attr() */
#define MANY 12	     /* fewer than slots of the ring */

static int calls;
static struct joined *leaves; /* its sender leaves during the next call */

/* Instead of that of the C library. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long locals, const struct iovec *remote,
			 unsigned long remotes, unsigned long flags)
{
	calls++;
	if (leaves)
		wf_shared_store(&leaves->in->region.header->sender_left, 1,
				seq_cst);
	return syscall(SYS_process_vm_readv, pid, local, locals, remote,
		       remotes, flags);
}

/* NULL where the process may not even copy from itself. */
static struct joined *open_cma(void)
{
	uint64_t word = 0, copy;
	const struct iovec local = { &copy, sizeof(copy) };
	const struct iovec remote = { &word, sizeof(word) };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0)
		return NULL;
	return joined_open(WF_SHM_WAY_CMA);
}

struct burst {
	struct joined_buf from[MANY], to[MANY];
};

static void alloc_burst(struct burst *b, size_t len, uint32_t parts)
{
	for (int i = 0; i < MANY; i++) {
		joined_alloc(&b->from[i], len + (size_t)i, 1);
		joined_alloc(&b->to[i], len + (size_t)i, parts);
		joined_fill(&b->from[i], (uint64_t)i);
	}
}

static void send_burst(struct joined *j, struct burst *b, bool post)
{
	for (int i = 0; i < MANY; i++) {
		struct wf_tx tx = joined_tx(&b->from[i], (uint64_t)i);

		if (post)
			joined_post(j, &b->to[i], (uint64_t)i);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
}

static void expect(struct joined *j, struct burst *b, int i)
{
	struct wf_comp comp = joined_wait(j, &j->rxcq);

	joined_check_comp(&comp, (uint64_t)i, b->from[i].len);
	joined_check(&b->to[i], b->from[i].len, (uint64_t)i);
}

static void end_burst(struct joined *j, struct burst *b)
{
	for (int i = 0; i < MANY; i++) {
		struct wf_comp comp = joined_wait(j, &j->txq);

		assert_int_equal(joined_err(&comp), 0);
		free(b->from[i].memory);
		free(b->to[i].memory);
	}
	assert_int_equal(j->in->batch_count, 0);
	assert_int_equal(j->rxq.pool.in_use, 0);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	assert_false(j->in->broken);
	joined_close(j);
}

/* All of the burst is there when the receiver looks: it is read by two calls, of
 * eight messages and of four, and complete in order when the poll returns. */
static void test_burst(void **state)
{
	struct joined *j = open_cma();
	struct burst b;

	(void)state;
	if (!j)
		skip();
	alloc_burst(&b, PARKED, 1);
	send_burst(j, &b, true);
	calls = 0;
	assert_int_equal(wf_shm_in_poll(j->in, 64), MANY);
	assert_int_equal(calls, 2);
	assert_int_equal(wf_op_compq_count(&j->rxcq), MANY);
	for (int i = 0; i < MANY; i++)
		expect(j, &b, i);
	end_burst(j, &b);
}

/* A message alone waits for nobody. A budget of one makes every message alone. */
static void test_alone(void **state)
{
	struct joined *j = open_cma();
	struct burst b;

	(void)state;
	if (!j)
		skip();
	alloc_burst(&b, PARKED, 1);
	send_burst(j, &b, true);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(wf_shm_in_poll(j->in, 1), 1);
		expect(j, &b, i);
	}
	end_burst(j, &b);
}

/* Messages of several parts, of different sizes, and small ones between them. */
static void test_mixed(void **state)
{
	static const size_t lens[] = { PARKED, 9,    300000, PARKED,
				       70000,  5000, 140000, 30000,
				       PARKED, 1,    50000,  17000 };
	struct joined *j = open_cma();
	struct burst b;

	(void)state;
	if (!j)
		skip();
	for (int i = 0; i < MANY; i++) {
		joined_alloc(&b.from[i], lens[i], 1 + (uint32_t)i % 5 / 4);
		joined_alloc(&b.to[i], lens[i], 1 + (uint32_t)i % 7 / 5);
		joined_fill(&b.from[i], (uint64_t)i);
	}
	send_burst(j, &b, true);
	for (int left = MANY; left; left--) {
		struct wf_comp comp = joined_wait(j, &j->rxcq);
		int i = (int)(uintptr_t)comp.context;

		assert_true(i < MANY);
		joined_check_comp(&comp, (uint64_t)i, lens[i]);
		joined_check(&b.to[i], lens[i], (uint64_t)i);
	}
	end_burst(j, &b);
}

/* Nobody has posted receives: nothing is read until somebody does. */
static void test_unexpected(void **state)
{
	struct joined *j = open_cma();
	struct burst b;

	(void)state;
	if (!j)
		skip();
	alloc_burst(&b, PARKED, 1);
	send_burst(j, &b, false);
	calls = 0;
	assert_int_equal(wf_shm_in_poll(j->in, 64), MANY);
	assert_int_equal(calls, 0);
	for (int i = MANY; i-- > 0;) {
		joined_post(j, &b.to[i], (uint64_t)i);
		expect(j, &b, i);
	}
	end_burst(j, &b);
}

/* The sender's memory of one message is gone: that one fails, and no other. */
static void test_fault(void **state)
{
	enum { BAD = 3 };
	struct joined *j = open_cma();
	struct wf_comp comp;
	struct burst b;
	void *kept, *bad;

	(void)state;
	if (!j)
		skip();
	alloc_burst(&b, PARKED, 1);
	bad = mmap(NULL, PARKED * 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	assert_true(bad != MAP_FAILED);
	kept = b.from[BAD].iov[0].iov_base;
	b.from[BAD].iov[0].iov_base = bad;
	send_burst(j, &b, true);
	munmap(bad, PARKED * 2);
	b.from[BAD].iov[0].iov_base = kept;
	assert_int_equal(wf_shm_in_poll(j->in, 64), MANY);
	for (int i = 0; i < MANY; i++) {
		if (i != BAD) {
			expect(j, &b, i);
			continue;
		}
		comp = joined_wait(j, &j->rxcq);
		assert_int_equal(joined_err(&comp), FI_EFAULT);
	}
	for (int i = 0; i < MANY; i++) {
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), i == BAD ? FI_EFAULT : 0);
		free(b.from[i].memory);
		free(b.to[i].memory);
	}
	joined_close(j);
}

/* The sender gives everything up while its memory is read: the bytes that were
 * read do not count. */
static void test_sender_leaves(void **state)
{
	struct joined *j = open_cma();
	struct burst b;

	(void)state;
	if (!j)
		skip();
	alloc_burst(&b, PARKED, 1);
	send_burst(j, &b, true);
	leaves = j;
	wf_shm_in_poll(j->in, 64);
	leaves = NULL;
	for (struct wf_comp comp; joined_pop(&j->rxcq, &comp);)
		assert_int_equal(joined_err(&comp), FI_ECONNRESET);
	joined_close(j);
	for (int i = 0; i < MANY; i++) {
		free(b.from[i].memory);
		free(b.to[i].memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_unexpected),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_sender_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
