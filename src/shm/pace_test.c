/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the choice between ring and CMA: what the receiver tells, what the
 * sender makes of it, and that it tries again.
 */
#include "shm/pace.h"

#include "shm/joined_test.h"
#include "shm/put.h"

#define CALL 1300

static void test_limits(void **state)
{
	const size_t most = 16384;

	(void)state;
	/* Near caches: all through the ring. Far ones: nothing but one record. */
	assert_int_equal(wf_shm_pace_ring_max(1, 1, CALL, most), most);
	assert_int_equal(wf_shm_pace_ring_max(450, 150, CALL, most), most);
	assert_int_equal(wf_shm_pace_ring_max(1500, 800, CALL, most),
			 WF_SHM_PUT_MAX);
	assert_int_equal(
		wf_shm_pace_ring_max(UINT32_MAX, UINT32_MAX, CALL, most),
		WF_SHM_PUT_MAX);
	/* A Xeon on which 8 KiB are faster by CMA, and 5 KiB are not slower,
	 * whichever side is the slower one. */
	assert_in_range(wf_shm_pace_ring_max(900, 250, 500, most), 4500, 7000);
	assert_in_range(wf_shm_pace_ring_max(350, 800, 500, most), 4500, 7000);
	/* A slower call is worth more copying. */
	assert_true(wf_shm_pace_ring_max(700, 500, 3000, most) >
		    wf_shm_pace_ring_max(700, 500, 300, most));
}

/* Better at once, worse after eight, and scaled to 4 KiB. */
static void test_told(void **state)
{
	struct wf_shm_pace pace = { 0 };

	(void)state;
	assert_int_equal(wf_shm_pace_note(&pace, 900, 4096), 900);
	assert_int_equal(wf_shm_pace_note(&pace, 950, 4096), 0);
	assert_int_equal(wf_shm_pace_note(&pace, 100, 2048), 200);
	for (int i = 0; i < 20; i++)
		wf_shm_pace_note(&pace, 200, 4096);
	assert_int_equal(pace.told, 200);
	/* One that is disturbed does not count, but 16 of them do. */
	wf_shm_pace_note(&pace, 5000, 4096);
	assert_int_equal(pace.told, 200);
	for (int i = 0; i < 16; i++)
		wf_shm_pace_note(&pace, 1000, 4096);
	assert_int_equal(pace.told, 1000);
	/* 0 would say that nothing is known. */
	assert_int_equal(wf_shm_pace_note(&pace, 0, 4096), 1);
}

static struct joined *open_learning(uint64_t call_ns)
{
	struct joined *j = joined_open(WF_SHM_WAY_CMA);

	j->from.attr.cma_min = 8193;
	j->from.attr.call_ns = call_ns;
	j->out->learns = call_ns;
	j->out->eager_max = 8192;
	return j;
}

static uint64_t chunked(const struct joined *j)
{
	return wf_base_stats_get(&j->from.stats, WF_SHM_STAT_sent_chunked);
}

static bool goes_by_ring(struct joined *j, size_t len, uint64_t tag)
{
	struct joined_case c = { len, 1, 1, false, false };
	uint64_t before = chunked(j);

	joined_exchange(j, &c, tag);
	return chunked(j) != before;
}

static int by_ring(struct joined *j, size_t len, int count)
{
	int ring = 0;

	for (int i = 0; i < count; i++)
		ring += goes_by_ring(j, len, (uint64_t)i + 1);
	return ring;
}

static void tell(struct joined *j, uint32_t pace)
{
	/* The receiver of the test clocks no records that are so small. */
	j->out->chunk = 1024;
	j->out->pace.told = pace;
	atomic_store(&j->out->region.header->pace, pace);
}

static void test_sender_follows(void **state)
{
	struct joined *j = open_learning(CALL);

	(void)state;
	tell(j, 100);
	assert_int_equal(by_ring(j, 16384, 50), 50);
	assert_int_equal(by_ring(j, 16385, 10), 0);
	/* Now and then one is tried, so that the receiver can tell. */
	tell(j, 5000);
	assert_in_range(by_ring(j, 16384, 300), 1, 4);
	assert_in_range(by_ring(j, 5000, 300), 1, 4);
	tell(j, 100);
	assert_int_equal(by_ring(j, 5000, 50), 50);
	joined_close(j);
}

/* The user's word stays. */
static void test_set_by_user(void **state)
{
	struct joined *j = open_learning(0);

	(void)state;
	tell(j, 100);
	assert_int_equal(by_ring(j, 8193, 50), 0);
	tell(j, 5000);
	assert_int_equal(by_ring(j, 8192, 50), 50);
	joined_close(j);
}

static void test_both_clock(void **state)
{
	struct joined *j = open_learning(CALL);

	(void)state;
	assert_int_equal(atomic_load(&j->out->region.header->pace), 0);
	by_ring(j, 8192, 10);
	assert_true(atomic_load(&j->out->region.header->pace));
	assert_true(j->out->pace.told);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_sender_follows),
		cmocka_unit_test(test_set_by_user),
		cmocka_unit_test(test_both_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
