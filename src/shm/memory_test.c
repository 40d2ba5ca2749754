/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a ring is taken before anybody touches it, by the sender, and no
 * more of it than is needed. Without memory messages wait, and go when there is
 * some. A page that was touched and not taken would be a signal where memory is
 * short (SIGBUS); here it is seen as a page too many.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "shm/doze.h"
#include <poll.h>

#include "shm/joined_test.h"
#include "shm/put.h"

#define PAGE 4096
#define SLOTS_LOG2 8
#define LINES_LOG2 10

static int fail_populates; /* so many */

int __real_madvise(void *base, size_t bytes, int advice);
int __wrap_madvise(void *base, size_t bytes, int advice);

/* The linker has weft's calls come here (src/meson.build). */
int __wrap_madvise(void *base, size_t bytes, int advice)
{
	if (advice == MADV_POPULATE_WRITE && fail_populates > 0) {
		fail_populates--;
		errno = ENOMEM;
		return -1;
	}
	return __real_madvise(base, bytes, advice);
}

/* Pages that the file has, whoever made them. */
static size_t pages_there(const struct wf_shm_region *region)
{
	unsigned char there[64];
	size_t count = 0;

	assert_true(region->bytes <= sizeof(there) * PAGE);
	assert_int_equal(mincore(region->base, region->bytes, there), 0);
	for (size_t i = 0; i < region->bytes / PAGE; i++)
		count += there[i] & 1;
	return count;
}

static size_t pages_taken(const struct wf_shm_region *region)
{
	return (WF_SHM_SLOTS_AT + region->slots_ready * sizeof(*region->slots) +
		PAGE - 1) /
		       PAGE +
	       (size_t)region->lines_ready * WF_LINE / PAGE +
	       region->replies_ready + region->shares_ready +
	       region->returns_ready * WF_SHM_RETURNS;
}

/* Skipped where pages are larger, or where a ring is taken as a whole. */
static struct joined *open_ring(enum wf_shm_way way)
{
	struct joined *j = joined_open_sized(way, SLOTS_LOG2, LINES_LOG2);

	if (sysconf(_SC_PAGESIZE) == PAGE && !j->out->region.returns_ready)
		return j;
	joined_close(j);
	skip();
	return NULL;
}

static int inject(struct joined *j, const struct joined_buf *from, size_t len)
{
	struct joined_buf part = *from;
	struct wf_tx tx;

	part.len = len;
	part.iov[0].iov_len = len;
	tx = joined_tx(&part, 1);
	tx.inject = true;
	return wf_shm_out_send(j->out, &tx);
}

static void test_small_messages(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;

	(void)state;
	joined_alloc(&from, 4096, 1);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(inject(j, &from, 8), 0);
		joined_drive(j);
	}
	assert_int_equal(j->rxq.tagged.unexpected, 1000);
	/* One page is what a peer costs that is kept up with. */
	assert_int_equal(pages_there(&j->out->region), 1);
	assert_int_equal(inject(j, &from, 200), 0);
	joined_drive(j);
	assert_int_equal(pages_there(&j->out->region), 2);
	free(from.memory);
	joined_close(j);
}

/* Bursts that the receiver reads in part, of all sizes. */
static void test_bursts(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	const struct wf_shm_region *region = &j->out->region;
	struct joined_buf from;

	(void)state;
	joined_alloc(&from, 4096, 1);
	srand(1);
	for (int round = 0; round < 40; round++) {
		int count = rand() % (round < 30 ? 40 : 300);
		size_t most = round % 3 ? 96 : 4096;

		for (int i = 0; i < count; i++) {
			inject(j, &from, (size_t)rand() % (most + 1));
			if (!(rand() % (1 + round)))
				wf_shm_in_poll(j->in, 1 + rand() % 8);
			if (!(rand() % 64))
				wf_shm_in_credit(j->in);
			assert_int_equal(pages_there(region),
					 pages_taken(region));
		}
		for (int i = 0; i < 64; i++)
			joined_drive(j);
		wf_shm_in_credit(j->in);
	}
	/* A lap that begins when all was read, and of which nothing is read. In the
	 * rounds above it depends on the clock when credit is returned, and with it
	 * whether there is such a lap. */
	do {
		inject(j, &from, 8);
		wf_shm_in_poll(j->in, 8);
		wf_shm_in_credit(j->in);
	} while (j->out->slot_lap.pos);
	for (uint32_t i = 0; i < 2 * WF_SHM_FIRST_SLOTS; i++) {
		inject(j, &from, 8);
		assert_int_equal(pages_there(region), pages_taken(region));
	}
	for (int i = 0; i < 64; i++)
		joined_drive(j);
	/* Beyond the windows that a sender stays in (out.c). */
	assert_true(region->slots_ready > WF_SHM_FIRST_SLOTS);
	assert_true(region->lines_ready > 128);
	free(from.memory);
	joined_close(j);
}

/* Copying by both sides, and reading without CMA, let the receiver use this
 * memory. */
static void test_large_messages(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_case c = { .len = 40000, .tx_parts = 1, .rx_parts = 1 };
	const struct wf_shm_region *region = &j->out->region;

	(void)state;
	joined_exchange(j, &c, 1);
	assert_true(region->shares_ready);
	assert_int_equal(pages_there(region), 3);
	j->to.attr.share_min = 0;
	joined_exchange(j, &c, 2);
	assert_int_equal(pages_there(region), 3);
	assert_false(region->returns_ready);
	joined_close(j);
}

/* A message that is acknowledged waits for the memory of the replies. */
static void test_waits_for_replies(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;
	struct wf_tx tx;

	(void)state;
	joined_alloc(&from, 200, 1);
	assert_int_equal(inject(j, &from, 200), 0);
	joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 1);
	tx = joined_tx(&from, 1);
	tx.delivery = true;
	fail_populates = 10000;
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 1);
	assert_int_equal(pages_there(&j->out->region), 2);
	fail_populates = 0;
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 2);
	/* The slot, the record, the replies. */
	assert_int_equal(pages_there(&j->out->region), 3);
	free(from.memory);
	joined_close(j);
}

/* A sender that asked for a reply and did not take that page: no signal. */
static void test_receiver_takes_replies(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;
	struct wf_tx tx;

	(void)state;
	joined_alloc(&from, 200, 1);
	tx = joined_tx(&from, 1);
	tx.delivery = true;
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	fail_populates = 10000;
	wf_shm_in_poll(j->in, 1);
	assert_int_equal(j->rxq.tagged.unexpected, 0);
	assert_false(j->in->broken);
	fail_populates = 0;
	joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 1);
	free(from.memory);
	joined_close(j);
}

/* A message waits for the memory of its record, and a thread that sleeps tries
 * again: the receiver has no reason to wake it. */
static void test_waits_for_memory(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	uint64_t now, deadline = UINT64_MAX;
	struct joined_buf from;

	(void)state;
	joined_alloc(&from, 4096, 1);
	fail_populates = 10000;
	assert_int_equal(inject(j, &from, 1000), 0); /* as a copy */
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 0);
	assert_int_equal(pages_there(&j->out->region), 1);
	assert_true(wf_shm_doze_begin(&j->from));
	now = wf_base_clock_ns();
	assert_false(wf_shm_doze_has_work(&j->from, &deadline));
	assert_true(deadline < now + WF_NS_PER_S);
	wf_shm_doze_end(&j->from);
	fail_populates = 0;
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 1);
	free(from.memory);
	joined_close(j);
}

/* A burst goes on in the slots that there are. */
static void test_burst_without_memory(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;
	int sent = 0;

	(void)state;
	joined_alloc(&from, 4096, 1);
	fail_populates = 10000;
	while (sent < 200) {
		sent += !inject(j, &from, 8);
		if (sent % 50 == 49)
			for (int i = 0; i < 10; i++)
				joined_drive(j);
	}
	assert_true(fail_populates < 10000);
	for (int i = 0; i < 100; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, 200);
	assert_int_equal(pages_there(&j->out->region), 1);
	fail_populates = 0;
	free(from.memory);
	joined_close(j);
}

/* Bug: the number of polls is the same after each poll of a program that polls
 * rarely, so every record was taken for one of a burst, and took more memory. */
static void test_rare_polls(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct wf_host *host = &j->from_core.host;
	static uint8_t buf[1000];

	(void)state;
	for (int i = 0; i < 400; i++) {
		assert_true(wf_shm_put(j->out, 0, 1, 0, buf, sizeof(buf)));
		joined_drive(j);
		wf_shm_in_credit(j->in);
		host->polls = WF_HOST_POLLS_PER_CLOCK - 1;
		host->now += 1000;
	}
	assert_true(j->out->region.lines_ready <= 128);
	joined_close(j);
}

/* Bug: records of a burst waited for memory for more of the ring, although its
 * start was free. */
static void test_burst_turns_without_memory(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;
	uint32_t ready;

	(void)state;
	joined_alloc(&from, 4096, 1);
	for (int i = 0; i < 400; i++) {
		if (i == 10)
			fail_populates = 1000000;
		assert_int_equal(inject(j, &from, 1000), 0);
		wf_core_progress(&j->to_core);
		wf_shm_in_credit(j->in);
		assert_true(wf_base_list_empty(&j->out->pending));
	}
	ready = j->out->region.lines_ready;
	assert_true(ready < j->out->region.line_count);
	fail_populates = 0;
	free(from.memory);
	joined_close(j);
}

/* Bug: an operation that finds no memory while another thread sleeps for the
 * endpoint was tried again only when something else woke that thread. */
static void test_short_while_asleep(void **state)
{
	struct joined *j = open_ring(WF_SHM_WAY_SELF);
	struct joined_buf from;
	struct pollfd loop = { .events = POLLIN };
	bool asleep = false;

	(void)state;
	joined_alloc(&from, 4096, 1);
	assert_int_equal(inject(j, &from, 8), 0);
	for (int i = 0; i < 1000 && !asleep; i++) {
		joined_drive(j);
		asleep = wf_core_sleep(&j->from_core);
	}
	assert_true(asleep);
	fail_populates = 100000;
	assert_int_equal(inject(j, &from, 200), 0);
	assert_false(wf_base_list_empty(&j->out->pending));
	fail_populates = 0;
	loop.fd = j->from_core.host.loop.epoll_fd;
	assert_int_equal(poll(&loop, 1, 10000), 1);
	free(from.memory);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rare_polls),
		cmocka_unit_test(test_burst_turns_without_memory),
		cmocka_unit_test(test_short_while_asleep),
		cmocka_unit_test(test_small_messages),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_large_messages),
		cmocka_unit_test(test_waits_for_replies),
		cmocka_unit_test(test_receiver_takes_replies),
		cmocka_unit_test(test_waits_for_memory),
		cmocka_unit_test(test_burst_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
