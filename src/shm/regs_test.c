/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of a peer's registrations: when the table is mapped, who owns the
 * descriptor, and how many are kept.
 */
#include "shm/regs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>

#include <cmocka.h>

#define KEPT 64 /* as in regs.c */
#define KEY 5

static struct wf_regs table;

static int setup(void **state)
{
	const struct iovec iov = { &table, sizeof(table) };

	(void)state;
	return wf_op_regs_open(&table, false) ||
	       wf_op_regs_add(&table, KEY, FI_REMOTE_READ, WF_REG_OFFSETS, &iov,
			      1);
}

static int teardown(void **state)
{
	(void)state;
	wf_op_regs_close(&table);
	return 0;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool knows_the_key(const struct wf_shm_regs *regs)
{
	struct wf_reg_target target;

	return !wf_op_reg_find_key(&regs->view, KEY, &target);
}

static void test_mapped_when_needed(void **state)
{
	int fd = dup(table.memfd), kept = fd;
	struct wf_shm_regs regs;

	(void)state;
	assert_int_equal(wf_shm_regs_take(&regs, &fd), 0);
	assert_int_equal(fd, -1);
	assert_null(regs.view.entries);
	assert_true(is_open(kept));
	assert_int_equal(wf_shm_regs_map(&regs), 0);
	assert_true(knows_the_key(&regs));
	assert_false(is_open(kept)); /* the mapping needs none */
	assert_int_equal(wf_shm_regs_map(&regs), 0);
	wf_shm_regs_close(&regs);
	assert_null(regs.view.entries);
}

static void test_never_needed(void **state)
{
	int fd = dup(table.memfd), kept = fd;
	struct wf_shm_regs regs;

	(void)state;
	assert_int_equal(wf_shm_regs_take(&regs, &fd), 0);
	wf_shm_regs_close(&regs);
	assert_false(is_open(kept));
	wf_shm_regs_close(&regs);
}

static int table_opened_with(int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", table.memfd);
	return open(path, flags | O_CLOEXEC);
}

/* @fd is refused, and stays the caller's. */
static void refused(int fd)
{
	struct wf_shm_regs regs;
	int given = fd;

	assert_true(fd >= 0);
	assert_int_equal(wf_shm_regs_take(&regs, &given), -EPROTO);
	assert_int_equal(given, fd);
	assert_int_equal(regs.memfd, -1);
	assert_null(regs.view.entries);
	wf_shm_regs_close(&regs);
	assert_int_equal(close(fd), 0);
}

/* Bug: what a peer sent was checked before it was used, not before it was kept.
 * The peer's own end of a channel's socket, for example, hid its death for the
 * life of the channel; and a table that cannot be read was tried for ever. */
static void test_no_table(void **state)
{
	int memfd = memfd_create("no table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct wf_shm_regs regs;
	int none = -1, pair[2];

	(void)state;
	assert_int_equal(wf_shm_regs_take(&regs, &none), -EPROTO);
	assert_int_equal(ftruncate(memfd, WF_REG_BYTES), 0);
	refused(memfd); /* not sealed */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	refused(pair[0]);
	refused(pair[1]);
	refused(table_opened_with(O_WRONLY));
	refused(table_opened_with(O_PATH));
}

/* Beyond the limit a table is mapped at once, and the descriptor stays the
 * caller's. */
static void test_few_are_kept(void **state)
{
	struct wf_shm_regs regs[KEPT + 1];
	int fd;

	(void)state;
	for (int i = 0; i < KEPT; i++) {
		fd = dup(table.memfd);
		assert_int_equal(wf_shm_regs_take(&regs[i], &fd), 0);
		assert_null(regs[i].view.entries);
	}
	fd = dup(table.memfd);
	assert_int_equal(wf_shm_regs_take(&regs[KEPT], &fd), 0);
	assert_true(knows_the_key(&regs[KEPT]));
	assert_true(is_open(fd));
	wf_shm_regs_close(&regs[KEPT]);
	/* One that is mapped makes room for another, and so does one that a
	 * child of ours gives up. */
	assert_int_equal(wf_shm_regs_map(&regs[0]), 0);
	assert_int_equal(wf_shm_regs_take(&regs[KEPT], &fd), 0);
	assert_int_equal(fd, -1);
	wf_shm_regs_forked(&regs[1]);
	fd = dup(table.memfd);
	assert_int_equal(wf_shm_regs_take(&regs[1], &fd), 0);
	assert_int_equal(fd, -1);
	for (int i = 0; i <= KEPT; i++)
		wf_shm_regs_close(&regs[i]);
}

/* With few descriptors, most are left to peers and to the application. */
static void test_short_of_descriptors(void **state)
{
	struct rlimit before, few;
	struct wf_shm_regs regs[3];
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 32;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 3; i++) {
		fd = dup(table.memfd);
		assert_int_equal(wf_shm_regs_take(&regs[i], &fd), 0);
		assert_int_equal(!regs[i].view.entries, i < 2);
	}
	close(fd);
	for (int i = 0; i < 3; i++)
		wf_shm_regs_close(&regs[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A process that had none left keeps none for a while. Last: it lasts. */
static void test_no_descriptors(void **state)
{
	struct wf_shm_regs regs, more;
	int fd = dup(table.memfd);

	(void)state;
	assert_int_equal(wf_shm_regs_take(&regs, &fd), 0);
	assert_int_equal(fd, -1);
	assert_false(wf_shm_regs_scarce(ENOMEM));
	assert_true(wf_shm_regs_scarce(EMFILE));
	fd = dup(table.memfd);
	assert_int_equal(wf_shm_regs_take(&more, &fd), 0);
	assert_true(knows_the_key(&more));
	assert_int_equal(close(fd), 0);
	wf_shm_regs_close(&more);
	wf_shm_regs_close(&regs);
	assert_false(wf_shm_regs_scarce(ENFILE)); /* nothing to give back */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_when_needed),
		cmocka_unit_test(test_never_needed),
		cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_few_are_kept),
		cmocka_unit_test(test_short_of_descriptors),
		cmocka_unit_test(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
