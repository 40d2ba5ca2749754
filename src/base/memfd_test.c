/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check which memfds of others may be touched.
 */
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 8192
#define HUGE_BYTES ((size_t)2 << 20)

static int make(unsigned int flags, size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)bytes) ||
	    (seals && fcntl(fd, F_ADD_SEALS, seals))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_sound(int fd, size_t bytes)
{
	bool sound;

	assert_true(fd >= 0);
	sound = wf_base_memfd_is_sound(fd, bytes);
	close(fd);
	return sound;
}

static void test_ours(void **state)
{
	(void)state;
	assert_true(is_sound(wf_base_memfd_create("test", BYTES), BYTES));
	assert_true(
		is_sound(wf_base_memfd_create_sparse("test", BYTES), BYTES));
}

/* Bug: a peer that was given a board could seal it against writing, and nobody
 * could connect after that. */
static void test_no_more_seals(void **state)
{
	int fd = wf_base_memfd_create("test", BYTES);

	(void)state;
	assert_int_equal(wf_base_memfd_seal_seals(fd), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	assert_int_equal(errno, EPERM);
	assert_true(is_sound(fd, BYTES));
}

static void test_size_and_seals(void **state)
{
	(void)state;
	assert_true(is_sound(make(0, BYTES, F_SEAL_SHRINK), BYTES));
	assert_false(is_sound(make(0, BYTES, F_SEAL_GROW), BYTES));
	assert_false(is_sound(make(0, BYTES, 0), BYTES));
	assert_false(is_sound(make(0, BYTES / 2, F_SEAL_SHRINK), BYTES));
	assert_false(is_sound(open("/dev/null", O_RDWR | O_CLOEXEC), 0));
}

/* Bug: pages of a hugetlb memfd may be missing when they are touched, which is
 * a signal; its size and seals look right. */
static void test_huge_pages(void **state)
{
	int fd = make(MFD_HUGETLB, HUGE_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);

	(void)state;
	if (fd < 0)
		skip(); /* the kernel has none */
	assert_false(is_sound(fd, HUGE_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_no_more_seals),
		cmocka_unit_test(test_size_and_seals),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
