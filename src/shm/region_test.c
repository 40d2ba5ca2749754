/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of a channel's memory: a region that one side makes can be mapped
 * by the other, cannot be resized, and nothing else is accepted.
 */
#include "shm/region.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOTS 5
#define LINES 9

static void test_both_see_the_same(void **state)
{
	struct wf_shm_region a, b;
	int memfd;

	(void)state;
	assert_int_equal(wf_shm_region_create(&a, SLOTS, LINES, &memfd), 0);
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), 0);
	assert_ptr_not_equal(a.base, b.base);
	assert_int_equal(a.slot_count, 32);
	assert_int_equal(a.line_count, 512);
	assert_int_equal(a.bytes, wf_shm_region_bytes(SLOTS, LINES));
	assert_int_equal((uintptr_t)a.slots % WF_LINE, 0);
	assert_int_equal((uintptr_t)a.data % WF_LINE, 0);
	/* First and last of each part. */
	a.data[0] = 1;
	a.data[512 * WF_LINE - 1] = 2;
	a.slots[31].tag = 3;
	a.shares[WF_SHM_SHARES - 1].len = 4;
	b.replies[WF_SHM_REPLIES - 1].len = 5;
	assert_int_equal(b.data[0], 1);
	assert_int_equal(b.data[512 * WF_LINE - 1], 2);
	assert_int_equal(b.slots[31].tag, 3);
	assert_int_equal(b.shares[WF_SHM_SHARES - 1].len, 4);
	assert_int_equal(a.replies[WF_SHM_REPLIES - 1].len, 5);
	assert_true((uint8_t *)(a.slots + 32) <= a.data);
	assert_true(a.data + 512 * WF_LINE <= (uint8_t *)a.replies);
	assert_true((uint8_t *)(a.replies + WF_SHM_REPLIES) <=
		    (uint8_t *)a.shares);
	assert_true((uint8_t *)(a.shares + WF_SHM_SHARES) == a.returns);
	assert_true(a.returns + WF_SHM_RETURNS * WF_SHM_RETURN_MAX ==
		    (uint8_t *)a.base + a.bytes);
	/* Slots are empty: no sequence is 0 before the first wrap. */
	assert_int_equal(atomic_load(&b.slots[0].word), 0);
	wf_shm_region_unmap(&b);
	assert_null(b.base);
	wf_shm_region_unmap(&b);
	wf_shm_region_unmap(&a);
	close(memfd);
}

/* Bug of libfabric's shm: a region that shrinks is a SIGBUS. */
static void test_sealed(void **state)
{
	struct wf_shm_region a;
	struct stat st;
	int memfd;

	(void)state;
	assert_int_equal(wf_shm_region_create(&a, SLOTS, LINES, &memfd), 0);
	assert_int_equal(ftruncate(memfd, 0), -1);
	assert_int_equal(ftruncate(memfd, (off_t)a.bytes - 1), -1);
	assert_int_equal(ftruncate(memfd, (off_t)a.bytes + 4096), -1);
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(fstat(memfd, &st), 0);
	assert_int_equal(st.st_size, a.bytes);
	assert_true(fcntl(memfd, F_GETFD) & FD_CLOEXEC);
	wf_shm_region_unmap(&a);
	close(memfd);
}

static size_t taken(int memfd)
{
	struct stat st;

	assert_int_equal(fstat(memfd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

/* Bug: 116 KiB were taken for a peer that sends one message; 192 processes that
 * know each other had 4.1 GiB. Pages that are used get memory first, because
 * touching a page that has none may be a signal. */
static void test_allocates_used_pages(void **state)
{
	static const size_t page = 4096;
	struct wf_shm_region a, b;
	int memfd;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != (long)page)
		skip();
	assert_int_equal(wf_shm_region_create(&a, 8, 10, &memfd), 0);
	assert_int_equal(wf_shm_region_map(&b, memfd, 8, 10), 0);
	if (a.returns_ready)
		skip(); /* an old kernel: all of it */
	assert_int_equal(taken(memfd), page);
	assert_int_equal(a.slots_ready, WF_SHM_FIRST_SLOTS);
	assert_int_equal(a.lines_ready, 0);
	a.slots[WF_SHM_FIRST_SLOTS - 1].tag = 1;
	assert_int_equal(b.slots[WF_SHM_FIRST_SLOTS - 1].tag, 1);
	assert_int_equal(taken(memfd), page);
	assert_int_equal(wf_shm_region_grow_lines(&a, 1), 0);
	assert_int_equal(a.lines_ready, 64);
	assert_int_equal(taken(memfd), 2 * page);
	assert_int_equal(wf_shm_region_grow_lines(&a, 65), 0);
	assert_int_equal(a.lines_ready, 128);
	assert_int_equal(wf_shm_region_grow_lines(&a, 1), 0);
	assert_int_equal(taken(memfd), 3 * page);
	assert_int_equal(wf_shm_region_grow_slots(&a, WF_SHM_FIRST_SLOTS + 1),
			 0);
	assert_int_equal(a.slots_ready, WF_SHM_FIRST_SLOTS + 32);
	assert_int_equal(taken(memfd), 4 * page);
	assert_int_equal(wf_shm_region_grow_replies(&a), 0);
	assert_int_equal(taken(memfd), 5 * page);
	a.replies[WF_SHM_REPLIES - 1].len = 1;
	assert_int_equal(wf_shm_region_grow_shares(&a), 0);
	assert_int_equal(taken(memfd), 6 * page);
	assert_int_equal(wf_shm_region_grow_returns(&a), 0);
	assert_int_equal(taken(memfd), 8 * page);
	assert_int_equal(wf_shm_region_grow_slots(&a, 256), 0);
	assert_int_equal(wf_shm_region_grow_lines(&a, 1024), 0);
	assert_int_equal(a.slots_ready, 256);
	assert_int_equal(a.lines_ready, 1024);
	assert_int_equal(taken(memfd), a.bytes);
	wf_shm_region_unmap(&a);
	wf_shm_region_unmap(&b);
	close(memfd);
}

static void test_child_does_not_inherit(void **state)
{
	struct wf_shm_region a;
	unsigned char page;
	int memfd, status;
	pid_t pid;

	(void)state;
	assert_int_equal(wf_shm_region_create(&a, SLOTS, LINES, &memfd), 0);
	pid = fork();
	if (!pid)
		_exit(mincore(a.base, WF_SHM_PAGE, &page) == -1 &&
				      errno == ENOMEM ?
			      0 :
			      1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	wf_shm_region_unmap(&a);
	close(memfd);
}

/* Tests what a peer sends and says, and one thing wrong with it. */
static void test_refusals(void **state)
{
	static const struct {
		unsigned int slots, lines;
	} said[] = { { SLOTS + 1, LINES },
		     { SLOTS, LINES - 1 },
		     { SLOTS, LINES + 1 },
		     { WF_SHM_SLOTS_LOG2_MIN - 1, LINES },
		     { WF_SHM_SLOTS_LOG2_MAX + 1, LINES },
		     { SLOTS, WF_SHM_LINES_LOG2_MIN - 1 },
		     { SLOTS, WF_SHM_LINES_LOG2_MAX + 1 },
		     { 63, 63 },
		     { 255, 255 } };
	struct wf_shm_region a, b = { 0 };
	int memfd;

	(void)state;
	assert_int_equal(wf_shm_region_create(&a, SLOTS, LINES, &memfd), 0);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		assert_int_equal(wf_shm_region_map(&b, memfd, said[i].slots,
						   said[i].lines),
				 -EPROTO);
		assert_null(b.base);
	}
	a.header->magic ^= 1;
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), -EPROTO);
	a.header->magic ^= 1;
	/* Same size, other geometry: 32 more slots, 32 lines fewer is not
	 * possible with powers of two, but the header must agree anyway. */
	a.header->slots_log2 ^= 1;
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), -EPROTO);
	a.header->slots_log2 ^= 1;
	a.header->layout++;
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), -EPROTO);
	assert_null(b.base);
	a.header->layout--;
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), 0);
	wf_shm_region_unmap(&a);
	wf_shm_region_unmap(&b);
	close(memfd);
}

static void test_refuses_what_may_shrink(void **state)
{
	size_t bytes = wf_shm_region_bytes(SLOTS, LINES);
	struct wf_shm_header header = {
		.magic = WF_SHM_MAGIC,
		.layout = WF_SHM_LAYOUT,
		.slots_log2 = SLOTS,
		.lines_log2 = LINES,
	};
	struct wf_shm_region b = { 0 };
	int memfd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(memfd, (off_t)bytes), 0);
	assert_int_equal(pwrite(memfd, &header, sizeof(header), 0),
			 sizeof(header));
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), -EPROTO);
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), -EPROTO);
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(wf_shm_region_map(&b, memfd, SLOTS, LINES), 0);
	wf_shm_region_unmap(&b);
	/* Things that are no memfd at all. */
	assert_int_not_equal(wf_shm_region_map(&b, null, SLOTS, LINES), 0);
	assert_int_not_equal(wf_shm_region_map(&b, -1, SLOTS, LINES), 0);
	assert_null(b.base);
	close(null);
	close(memfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_see_the_same),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_allocates_used_pages),
		cmocka_unit_test(test_child_does_not_inherit),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_refuses_what_may_shrink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
