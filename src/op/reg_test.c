/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations: keys, bounds and access, as the owner and as a peer see them.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>

#include <cmocka.h>

#include "op/reg.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct fixture {
	struct wf_regs regs;
	struct wf_reg_view view; /* as a peer maps it */
	struct wf_reg_known known;
};

static int open_regs(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	if (wf_op_regs_open(&f.regs, true) ||
	    wf_op_reg_map(&f.view, f.regs.memfd))
		return -1;
	*state = &f;
	return 0;
}

static int close_regs(void **state)
{
	struct fixture *f = *state;

	wf_op_reg_unmap(&f->view);
	wf_op_regs_close(&f->regs);
	return 0;
}

static int add(struct fixture *f, uint64_t key, uint64_t access, uint32_t flags,
	       uintptr_t base, size_t len)
{
	const struct iovec iov = { (void *)base, len };

	return wf_op_regs_add(&f->regs, key, access, flags, &iov, 1);
}

static int find(struct fixture *f, uint64_t key, uint64_t addr, uint64_t len,
		uint64_t access, struct wf_reg_target *target)
{
	const struct wf_reg_access want = {
		.addr = addr,
		.len = len,
		.key = key,
		.access = access,
	};

	return wf_op_reg_find(&f->view, &want, target);
}

/* Once more with what is known from the last time: that makes no difference. */
static int find_both(struct fixture *f, uint64_t key, uint64_t addr,
		     uint64_t len, uint64_t access,
		     struct wf_reg_target *target)
{
	const struct wf_reg_access want = {
		.addr = addr,
		.len = len,
		.key = key,
		.access = access,
	};
	struct wf_reg_target again = { 0 };
	int err = find(f, key, addr, len, access, target);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(wf_op_reg_find_known(&f->view, &f->known,
						      &want, &again),
				 err);
		if (err)
			continue;
		assert_int_equal(again.slot, target->slot);
		assert_int_equal(again.flags, target->flags);
		assert_int_equal(again.seg_count, target->seg_count);
		assert_memory_equal(again.segs, target->segs,
				    again.seg_count * sizeof(again.segs[0]));
	}
	return err;
}

static void test_bounds(void **state)
{
	struct fixture *f = *state;
	struct wf_reg_target t;

	assert_int_equal(add(f, 5, RW, 0, 0x10000, 100), 0);
	assert_int_equal(find_both(f, 5, 0x10000, 100, FI_REMOTE_READ, &t), 0);
	assert_int_equal(t.seg_count, 1);
	assert_int_equal((uintptr_t)t.segs[0].iov_base, 0x10000);
	assert_int_equal(find_both(f, 5, 0x10000 + 99, 1, FI_REMOTE_WRITE, &t),
			 0);
	assert_int_equal(find_both(f, 5, 0x10000 + 99, 2, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 5, 0x10000 - 1, 1, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 5, 0x10000, 101, RW, &t), -ENOENT);
	/* Sums that wrap. */
	assert_int_equal(find_both(f, 5, UINT64_MAX, 2, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 5, 0x10000, UINT64_MAX, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 6, 0x10000, 1, RW, &t), -ENOENT);
}

static void test_access(void **state)
{
	struct fixture *f = *state;
	struct wf_reg_target t;

	assert_int_equal(add(f, 1, FI_REMOTE_READ, 0, 0x1000, 8), 0);
	assert_int_equal(add(f, 2, FI_REMOTE_WRITE, 0, 0x1000, 8), 0);
	assert_int_equal(add(f, 3, 0, 0, 0x1000, 8), 0);
	assert_int_equal(find_both(f, 1, 0x1000, 8, FI_REMOTE_READ, &t), 0);
	assert_int_equal(find_both(f, 1, 0x1000, 8, FI_REMOTE_WRITE, &t),
			 -ENOENT);
	assert_int_equal(find_both(f, 2, 0x1000, 8, FI_REMOTE_READ, &t),
			 -ENOENT);
	assert_int_equal(find_both(f, 2, 0x1000, 8, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 3, 0x1000, 8, FI_REMOTE_READ, &t),
			 -ENOENT);
}

static void test_offsets_over_segments(void **state)
{
	struct fixture *f = *state;
	const struct iovec iov[3] = {
		{ (void *)0x1000, 10 },
		{ (void *)0x2000, 0 },
		{ (void *)0x3000, 20 },
	};
	struct wf_reg_target t;

	assert_int_equal(
		wf_op_regs_add(&f->regs, 9, RW, WF_REG_OFFSETS, iov, 3), 0);
	assert_int_equal(find_both(f, 9, 0, 30, RW, &t), 0);
	assert_int_equal(t.seg_count, 2);
	assert_int_equal(find_both(f, 9, 8, 4, RW, &t), 0);
	assert_int_equal(t.seg_count, 2);
	assert_int_equal((uintptr_t)t.segs[0].iov_base, 0x1008);
	assert_int_equal(t.segs[0].iov_len, 2);
	assert_int_equal((uintptr_t)t.segs[1].iov_base, 0x3000);
	assert_int_equal(t.segs[1].iov_len, 2);
	assert_int_equal(find_both(f, 9, 10, 20, RW, &t), 0);
	assert_int_equal(t.seg_count, 1);
	assert_int_equal(find_both(f, 9, 10, 21, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 9, 31, 0, RW, &t), -ENOENT);
}

/* By virtual addresses, an access lies in one segment. */
static void test_addresses_over_segments(void **state)
{
	struct fixture *f = *state;
	const struct iovec iov[2] = { { (void *)0x1000, 16 },
				      { (void *)0x5000, 16 } };
	struct wf_reg_target t;

	assert_int_equal(wf_op_regs_add(&f->regs, 9, RW, 0, iov, 2), 0);
	assert_int_equal(find_both(f, 9, 0x5004, 12, RW, &t), 0);
	assert_int_equal(find_both(f, 9, 0x1008, 9, RW, &t), -ENOENT);
	assert_int_equal(find_both(f, 9, 0x3000, 1, RW, &t), -ENOENT);
}

static void test_all_memory(void **state)
{
	struct fixture *f = *state;
	struct wf_reg_target t;

	assert_int_equal(add(f, 77, RW, WF_REG_OFFSETS, 0, SIZE_MAX), 0);
	assert_int_equal(find_both(f, 77, 0xdeadbeef, 4096, RW, &t), 0);
	assert_int_equal((uintptr_t)t.segs[0].iov_base, 0xdeadbeef);
	assert_int_equal(find_both(f, 77, UINT64_MAX - 4, 5, RW, &t), -ENOENT);
}

static void test_keys(void **state)
{
	struct fixture *f = *state;
	struct wf_reg_target t;
	uint64_t key = wf_op_regs_new_key(&f->regs);

	assert_int_equal(add(f, key, RW, 0, 0x1000, 8), 0);
	assert_int_equal(add(f, key, RW, 0, 0x2000, 8), -EEXIST);
	assert_int_not_equal(wf_op_regs_new_key(&f->regs), key);
	wf_op_regs_del(&f->regs, key);
	assert_int_equal(find_both(f, key, 0x1000, 8, RW, &t), -ENOENT);
	wf_op_regs_del(&f->regs, key); /* harmless */
	assert_int_equal(add(f, key, RW, 0, 0x2000, 8), 0);
	assert_int_equal(find_both(f, key, 0x2000, 8, RW, &t), 0);
	assert_int_equal(f->regs.count, 1);
}

/* Keys that begin their chains at one slot, in any order of coming and going.
 */
static void test_chains(void **state)
{
	struct fixture *f = *state;
	uint64_t keys[64];
	struct wf_reg_target t;

	for (int i = 0; i < 64; i++)
		keys[i] = (uint64_t)i << 60 | (uint64_t)i << 40 | 3;
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 64; i++)
			assert_int_equal(add(f, keys[i], RW, 0, 0x1000u + i, 1),
					 0);
		for (int i = round % 2; i < 64; i += 2)
			wf_op_regs_del(&f->regs, keys[i]);
		for (int i = 0; i < 64; i++) {
			int want = i % 2 == round % 2 ? -ENOENT : 0;

			assert_int_equal(
				find_both(f, keys[i], 0x1000u + i, 1, RW, &t),
				want);
		}
		for (int i = 0; i < 64; i++)
			wf_op_regs_del(&f->regs, keys[i]);
	}
	assert_int_equal(f->regs.count, 0);
}

static void test_full(void **state)
{
	struct fixture *f = *state;
	uint64_t key = 0;

	while (!add(f, key, RW, 0, 0x1000, 8))
		key++;
	assert_int_equal(key, WF_REG_MAX);
	assert_int_equal(add(f, key, RW, 0, 0x1000, 8), -ENOSPC);
	wf_op_regs_del(&f->regs, 12345);
	assert_int_equal(add(f, key, RW, 0, 0x1000, 8), 0);
}

/* A peer that has the descriptor cannot write what others rely on. */
static void test_read_only(void **state)
{
	struct fixture *f = *state;

	assert_ptr_equal(mmap(NULL, WF_REG_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED, f->regs.memfd, 0),
			 MAP_FAILED);
	assert_int_equal(pwrite(f->regs.memfd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(f->regs.memfd, 0), -1);
}

static void test_foreign_descriptor(void **state)
{
	struct wf_reg_view view;
	int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, WF_REG_BYTES), 0);
	assert_int_equal(wf_op_reg_map(&view, fd), -EPROTO);
	close(fd);
}

static void test_watch(void **state)
{
	struct fixture *f = *state;
	struct wf_cntr writes = { .waker = WF_WAKER_NONE };
	struct wf_cntr reads = { .waker = WF_WAKER_NONE };
	const struct wf_reg_watch watch = { &reads, &writes };
	struct wf_reg_target t;

	assert_int_equal(add(f, 4, RW, 0, 0x1000, 8), 0);
	assert_int_equal(wf_op_regs_watch(&f->regs, 5, &watch), -ENOENT);
	assert_int_equal(wf_op_reg_find_key(&f->view, 4, &t), 0);
	assert_false(t.flags & WF_REG_EVENTS);
	assert_int_equal(find_both(f, 4, 0x1000, 8, RW, &t), 0);
	assert_int_equal(wf_op_regs_watch(&f->regs, 4, &watch), 0);
	assert_int_equal(find_both(f, 4, 0x1000, 8, RW, &t), 0);
	assert_true(t.flags & WF_REG_EVENTS);
	wf_op_regs_count_locked(&f->regs, t.slot, true);
	wf_op_regs_count_locked(&f->regs, t.slot, true);
	wf_op_regs_count_locked(&f->regs, t.slot, false);
	assert_int_equal(atomic_load(&writes.value), 2);
	assert_int_equal(atomic_load(&reads.value), 1);
	wf_op_regs_del(&f->regs, 4);
	assert_int_not_equal(find_both(f, 4, 0x1000, 8, RW, &t), 0);
	wf_op_regs_count_locked(&f->regs, t.slot, true);
	assert_int_equal(atomic_load(&writes.value), 2);
}

static atomic_bool stop;

/* One key whose registration changes all the time, always as a whole. */
static void *change(void *arg)
{
	struct fixture *f = arg;

	for (uint64_t i = 1; !atomic_load(&stop); i = i % 1000 + 1) {
		add(f, 1, RW, 0, i * 0x10000, i);
		wf_op_regs_del(&f->regs, 1);
	}
	return NULL;
}

static void test_reader_sees_whole_entries(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	int found = 0;

	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change, f), 0);
	for (int i = 0; i < 200000 && found < 2000; i++) {
		uint64_t n = (uint64_t)i % 1000 + 1;
		struct wf_reg_target t;

		/* Found means that address and length belong together: one
		 * byte more is never there. */
		if (!find(f, 1, n * 0x10000, n, RW, &t))
			found++;
		assert_int_not_equal(find(f, 1, n * 0x10000, n + 1, RW, &t), 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_regs, close_regs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bounds),
		TEST(test_access),
		TEST(test_offsets_over_segments),
		TEST(test_addresses_over_segments),
		TEST(test_all_memory),
		TEST(test_keys),
		TEST(test_chains),
		TEST(test_full),
		TEST(test_read_only),
		TEST(test_foreign_descriptor),
		TEST(test_watch),
		TEST(test_reader_sees_whole_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
