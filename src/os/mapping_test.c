/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check which file is found behind memory of this process, and
 * which is opened of another one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"

#define BYTES ((size_t)256 << 10)
#define AT 8192 /* of the file, where its mapping begins */

static void *map(int flags, int fd)
{
	void *base = NULL;

	assert_int_equal(wf_os_mmap_at(&base, BYTES, PROT_READ | PROT_WRITE,
				       flags, fd, fd < 0 ? 0 : AT),
			 0);
	return base;
}

static int make(void)
{
	int fd = wf_os_memfd_create("weft-mapping");

	assert_true(fd >= 0);
	assert_int_equal(wf_os_ftruncate(fd, AT + BYTES), 0);
	return fd;
}

static void expect_none(const void *base, size_t bytes)
{
	struct wf_os_mapping found;

	assert_true(wf_os_memfd_behind(base, bytes, &found) < 0);
}

static void test_memfd(void **state)
{
	struct wf_os_mapping found;
	struct wf_os_stat st;
	int fd = make();
	uint8_t *base = map(MAP_SHARED, fd);
	void *again = NULL;

	(void)state;
	assert_int_equal(wf_os_memfd_behind(base + 100, BYTES - 100, &found),
			 0);
	assert_int_equal(found.offset, AT + 100);
	assert_true(found.fd != fd);
	assert_int_equal(wf_os_fstat(found.fd, &st), 0);
	assert_int_equal(st.inode, found.inode);
	assert_int_equal(wf_os_mmap_at(&again, BYTES, PROT_READ, MAP_SHARED,
				       found.fd, AT),
			 0);
	strcpy((char *)base + 5000, "the same");
	assert_string_equal((char *)again + 5000, "the same");
	wf_os_munmap(again, BYTES);
	wf_os_close(found.fd);
	expect_none(base + 100, BYTES); /* reaches beyond the mapping */
	expect_none(base, 0);
	wf_os_close(fd);
	expect_none(base, BYTES); /* nobody has a descriptor */
	wf_os_munmap(base, BYTES);
	expect_none(base, BYTES);
}

/* Two protections are two mappings. */
static void test_two_mappings(void **state)
{
	int fd = make();
	uint8_t *base = map(MAP_SHARED, fd);

	(void)state;
	assert_int_equal(wf_os_mprotect(base, BYTES / 4, PROT_READ), 0);
	expect_none(base, BYTES);
	wf_os_munmap(base, BYTES);
	wf_os_close(fd);
}

static void test_other_memory(void **state)
{
	static uint8_t own[BYTES];
	int fd = make();
	void *copy = map(MAP_PRIVATE, fd);
	void *shared = map(MAP_SHARED | MAP_ANONYMOUS, -1);

	(void)state;
	expect_none(own, sizeof(own));
	expect_none(copy, BYTES);
	expect_none(shared, BYTES);
	wf_os_munmap(copy, BYTES);
	wf_os_munmap(shared, BYTES);
	wf_os_close(fd);
}

static void test_open_by_number(void **state)
{
	struct wf_os_stat st, seen;
	int fd = make(), opened;

	(void)state;
	assert_int_equal(wf_os_fstat(fd, &st), 0);
	opened = wf_os_fd_open(getpid(), (uint32_t)fd, st.inode, true);
	assert_true(opened >= 0);
	assert_int_equal(wf_os_fstat(opened, &seen), 0);
	assert_int_equal(seen.inode, st.inode);
	assert_int_equal(wf_os_ftruncate(opened, 2 * BYTES), 0);
	wf_os_close(opened);
	opened = wf_os_fd_open(getpid(), (uint32_t)fd, st.inode, false);
	assert_true(opened >= 0);
	assert_true(wf_os_ftruncate(opened, BYTES) < 0);
	wf_os_close(opened);
	assert_int_equal(
		wf_os_fd_open(getpid(), (uint32_t)fd, st.inode + 1, true),
		-ESTALE);
	wf_os_close(fd);
	assert_int_equal(wf_os_fd_open(getpid(), (uint32_t)fd, st.inode, true),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memfd),
		cmocka_unit_test(test_two_mappings),
		cmocka_unit_test(test_other_memory),
		cmocka_unit_test(test_open_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
