/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the choice between ring, CMA and records written around the
 * caches: which way wins on machines as they
 * were measured, what a trial costs, and that the sender follows.
 */
#include "shm/pace.h"

#include "shm/joined_test.h"
#include "shm/put.h"

#define LEN 8192

/* A machine says what 8 KiB take by each way, ns: one at a time, and in a
 * burst, as docs/performance.md has them. Without a third figure nothing goes
 * around the caches. */
struct machine {
	uint32_t alone[WF_SHM_PACE_WAYS];
	uint32_t burst[WF_SHM_PACE_WAYS];
};

static const struct machine xeon = { { 2380, 2620 }, { 870, 1635 } };
static const struct machine near_caches = { { 2430, 1010 }, { 1300, 900 } };
static const struct machine far_caches = { { 2900, 4400 }, { 1450, 3100 } };
/* The two uses want different ways. */
static const struct machine odd = { { 2400, 1800 }, { 900, 1600 } };
static const struct machine near_three = { { 2430, 1010, 1700 },
					   { 1300, 900, 1200 } };
static const struct machine far_three = { { 2900, 3800, 1850 },
					  { 1450, 3700, 820 } };

/* A pair of processes that exist as numbers only. */
struct pair {
	struct wf_shm_pace pace;
	const struct machine *machine;
	uint32_t now; /* begins near the end of what a stamp holds */
	uint32_t messages;
	uint32_t by[WF_SHM_PACE_WAYS];
	size_t len;
	uint32_t disturbed; /* one of so many messages waits for 300 us */
};

static struct pair open_pair(const struct machine *machine)
{
	return (struct pair){
		.machine = machine,
		.now = UINT32_MAX - 50000,
		.len = LEN,
		.pace.may_go_around = machine->alone[WF_SHM_PACE_AROUND],
	};
}

static enum wf_shm_pace_way way_of(const struct pair *p)
{
	if (wf_shm_pace_is_around(p->pace.told, p->len))
		return WF_SHM_PACE_AROUND;
	if (p->len <= WF_SHM_PACE_MIN ||
	    wf_shm_pace_is_ring(p->pace.told, p->len, true))
		return WF_SHM_PACE_RING;
	return WF_SHM_PACE_CMA;
}

static uint32_t stamp(const struct pair *p)
{
	return p->pace.told & WF_SHM_WAYS_STAMP ? wf_shm_pace_stamp(p->now) : 0;
}

static void complete(struct pair *p, enum wf_shm_pace_way way, uint32_t begin)
{
	p->by[way]++;
	p->messages++;
	if (p->disturbed && !(p->messages % p->disturbed))
		p->now += 300000;
	if (!wf_shm_pace_pass(&p->pace, p->len))
		wf_shm_pace_note(&p->pace, p->len, way, begin, p->now | 1);
}

static void one_at_a_time(struct pair *p, int count)
{
	for (int i = 0; i < count; i++) {
		enum wf_shm_pace_way way = way_of(p);
		uint32_t begin = stamp(p);

		p->now += p->machine->alone[way];
		complete(p, way, begin);
		p->now += 5000; /* the answer, and what the program does */
	}
}

/* The sender sends a window as the word says when it begins, and waits. By CMA the
 * receiver completes eight at once. */
static void in_bursts(struct pair *p, int windows)
{
	enum { WINDOW = 64, BATCH = 8 };

	for (int i = 0; i < windows; i++) {
		enum wf_shm_pace_way way = way_of(p);
		uint32_t begin = stamp(p);
		int batch = way == WF_SHM_PACE_CMA ? BATCH : 1;

		p->now += p->machine->alone[way] - p->machine->burst[way];
		for (int k = 0; k < WINDOW; k++) {
			if (!(k % batch))
				p->now += (uint32_t)batch *
					  p->machine->burst[way];
			complete(p, way, begin);
		}
		p->now += 2000;
	}
}

static void test_one_at_a_time(void **state)
{
	struct pair p;

	(void)state;
	p = open_pair(&xeon);
	one_at_a_time(&p, 500);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p = open_pair(&near_caches);
	one_at_a_time(&p, 500);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	p = open_pair(&far_caches);
	one_at_a_time(&p, 500);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p = open_pair(&odd);
	one_at_a_time(&p, 500);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
}

static void test_in_bursts(void **state)
{
	struct pair p;

	(void)state;
	p = open_pair(&xeon);
	in_bursts(&p, 60);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p = open_pair(&near_caches);
	in_bursts(&p, 60);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	p = open_pair(&far_caches);
	in_bursts(&p, 60);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p = open_pair(&odd);
	in_bursts(&p, 60);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
}

/* Of three ways the fastest is found, also when the processors move, and few
 * messages take another one. */
static void test_three_ways(void **state)
{
	struct pair p = open_pair(&far_three);

	(void)state;
	one_at_a_time(&p, 1000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_AROUND);
	p.machine = &near_three;
	one_at_a_time(&p, 20000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	p.machine = &far_three;
	one_at_a_time(&p, 20000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_AROUND);
	in_bursts(&p, 600);
	assert_int_equal(way_of(&p), WF_SHM_PACE_AROUND);
	p = open_pair(&near_three);
	in_bursts(&p, 1000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	assert_true(p.by[WF_SHM_PACE_CMA] < p.messages / 25);
	assert_true(p.by[WF_SHM_PACE_AROUND] < p.messages / 25);
}

/* Without CMA, and for small messages, the other two are compared; where there is
 * only one way, there is no trial. */
static void test_two_of_three(void **state)
{
	struct pair p = open_pair(&far_three);

	(void)state;
	p.pace.has_no_cma = true;
	one_at_a_time(&p, 1000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_AROUND);
	assert_int_equal(p.by[WF_SHM_PACE_CMA], 0);
	for (size_t len = WF_SHM_PACE_LEAST; len <= WF_SHM_PACE_MIN;
	     len += 512) {
		p = open_pair(&far_three);
		p.len = len;
		one_at_a_time(&p, 1000);
		assert_int_equal(way_of(&p), WF_SHM_PACE_AROUND);
		p = open_pair(&near_three);
		p.len = len;
		one_at_a_time(&p, 1000);
		assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
		assert_in_range(p.by[WF_SHM_PACE_AROUND], 16, 64);
		assert_int_equal(p.by[WF_SHM_PACE_CMA], 0);
		p = open_pair(&near_caches);
		p.len = len;
		one_at_a_time(&p, 20000);
		assert_int_equal(p.pace.told, 0);
	}
}

/* A host that moves processors, and a program that changes its habit. */
static void test_follows_change(void **state)
{
	struct pair p = open_pair(&near_caches);

	(void)state;
	one_at_a_time(&p, 50000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	p.machine = &far_caches;
	one_at_a_time(&p, 20000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p.machine = &odd;
	one_at_a_time(&p, 20000);
	assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
	in_bursts(&p, 600);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
}

/* A process that is not running for a while says nothing about a way. */
static void test_disturbed(void **state)
{
	for (uint32_t every = 50; every < 500; every += 37) {
		struct pair p = open_pair(&xeon);

		p.disturbed = every;
		one_at_a_time(&p, 20000);
		assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
		assert_true(p.by[WF_SHM_PACE_RING] < p.messages / 20);
		p = open_pair(&near_caches);
		p.disturbed = every;
		one_at_a_time(&p, 20000);
		assert_int_equal(way_of(&p), WF_SHM_PACE_RING);
		assert_true(p.by[WF_SHM_PACE_CMA] < p.messages / 20);
	}
	(void)state;
}

/* Few messages take the worse way. If it is clearly slower, and messages come one
 * at a time, the first trial has one run of each. */
static void test_price(void **state)
{
	struct pair p = open_pair(&near_caches);

	(void)state;
	one_at_a_time(&p, 100);
	assert_in_range(p.by[WF_SHM_PACE_CMA], 16, 20);
	assert_false(p.pace.told & WF_SHM_WAYS_STAMP);
	p = open_pair(&far_caches);
	one_at_a_time(&p, 100);
	assert_in_range(p.by[WF_SHM_PACE_RING], 32 + 16, 32 + 21);
	assert_int_equal(way_of(&p), WF_SHM_PACE_CMA);
	p = open_pair(&near_caches);
	one_at_a_time(&p, 50000);
	assert_true(p.by[WF_SHM_PACE_CMA] < p.messages / 40);
	p = open_pair(&xeon);
	in_bursts(&p, 1000);
	assert_true(p.by[WF_SHM_PACE_RING] < p.messages / 25);
}

/* Nothing is learnt from messages without a stamp, and nobody waits for them; a
 * sender that does not follow is let alone. */
static void test_ends(void **state)
{
	struct wf_shm_pace pace = { 0 };
	uint32_t stamped = 0, now = 1;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		wf_shm_pace_note(&pace, LEN, WF_SHM_PACE_RING, 0, 0);
		stamped += !!(pace.told & WF_SHM_WAYS_STAMP);
	}
	assert_in_range(stamped, 1, 5000);
	assert_true(wf_shm_pace_is_ring(pace.told, LEN, false));
	pace = (struct wf_shm_pace){ 0 };
	stamped = 0;
	for (int i = 0; i < 100000; i++) {
		wf_shm_pace_note(&pace, LEN, WF_SHM_PACE_CMA, now, now + 1000);
		now = (now + 4000) | 1;
		stamped += !!(pace.told & WF_SHM_WAYS_STAMP);
	}
	assert_in_range(stamped, 1, 20000);
	assert_false(wf_shm_pace_is_ring(pace.told, LEN, true));
}

/* Each kind has its own way, and none but 1024 to 20480 bytes has one. */
static void test_kinds(void **state)
{
	uint32_t told = WF_SHM_WAYS_KNOWN(0) | WF_SHM_WAYS_KNOWN(1) |
			WF_SHM_WAYS_RING(1) | WF_SHM_WAYS_RING(5);

	(void)state;
	assert_false(wf_shm_pace_is_open(0));
	assert_false(wf_shm_pace_is_open(1023));
	assert_true(wf_shm_pace_is_open(1024));
	assert_true(wf_shm_pace_is_open(20480));
	assert_false(wf_shm_pace_is_open(20481));
	assert_int_equal(wf_shm_pace_kind(4097), 0);
	assert_int_equal(wf_shm_pace_kind(20480), WF_SHM_PACE_LARGE - 1);
	assert_int_equal(wf_shm_pace_kind(1024), WF_SHM_PACE_LARGE);
	assert_int_equal(wf_shm_pace_kind(2048), WF_SHM_PACE_LARGE);
	assert_int_equal(wf_shm_pace_kind(2049), WF_SHM_PACE_KINDS - 1);
	assert_int_equal(wf_shm_pace_kind(4096), WF_SHM_PACE_KINDS - 1);
	assert_false(wf_shm_pace_is_ring(told, 4097, true));
	assert_false(wf_shm_pace_is_ring(told, 6144, true));
	assert_true(wf_shm_pace_is_ring(told, 6145, false));
	assert_true(wf_shm_pace_is_ring(told, 8192, false));
	/* Not known. */
	assert_true(wf_shm_pace_is_ring(told, 8193, true));
	assert_false(wf_shm_pace_is_ring(told, 16384, false));
}

/* -- a channel ---------------------------------------------------------------- */

static struct joined *open_learning(bool learns)
{
	struct joined *j = joined_open(WF_SHM_WAY_CMA);

	j->from.attr.cma_min = 8193;
	j->from.attr.learns = learns;
	j->out->learns = learns;
	j->out->eager_max = 8192;
	return j;
}

static void tell(struct joined *j, uint32_t told)
{
	j->in->pace.told = told;
	atomic_store(&j->out->region.header->ways, told);
}

/* Messages of all lengths arrive as they were sent, whatever the sender was asked
 * for and however many pieces there are. */
static void test_around(void **state)
{
	static const size_t lens[] = { 1024, 1025, 2047, 4095,
				       4096, 4097, 8191, 20480 };
	struct joined *j = open_learning(true);
	uint64_t tag = 1;

	(void)state;
	/* Without stamps there is no trial. */
	j->in->features &= ~WF_SHM_FEATURE_AROUND;
	j->from.attr.eager_max = 32768;
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (uint32_t parts = 1; parts <= 3; parts += 2) {
			struct joined_case c = { lens[i], parts, 1, false,
						 false };

			atomic_store(&j->out->region.header->ways,
				     ~WF_SHM_WAYS_STAMP);
			joined_exchange(j, &c, tag++);
			c.late = true;
			joined_exchange(j, &c, tag++);
		}
	}
	joined_close(j);
}

/* A message of the fast path says how it was written, and when, if it is asked. */
static void test_put_around(void **state)
{
	struct joined *j = open_learning(true);
	const struct wf_shm_slot *slot = wf_shm_put_slot(j->out);
	static uint8_t bytes[WF_SHM_PUT_MAX];
	uint64_t word;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	assert_true(wf_shm_put(j->out, 0, 1, 0, bytes, 2000));
	word = atomic_load(&slot->word);
	assert_false(WF_SHM_WORD_FLAGS(word) &
		     (WF_SHM_SLOT_AROUND | WF_SHM_SLOT_STAMPED));
	tell(j, WF_SHM_WAYS_STAMP |
			WF_SHM_WAYS_AROUND(wf_shm_pace_kind(sizeof(bytes))));
	slot = wf_shm_put_slot(j->out);
	assert_true(wf_shm_put(j->out, 0, 2, 0, bytes, 2000));
	word = atomic_load(&slot->word);
	assert_false(WF_SHM_WORD_FLAGS(word) & WF_SHM_SLOT_AROUND);
	assert_true(WF_SHM_WORD_FLAGS(word) & WF_SHM_SLOT_STAMPED);
	assert_true(slot->eager.stamp);
	slot = wf_shm_put_slot(j->out);
	assert_true(wf_shm_put(j->out, 0, 3, 0, bytes, sizeof(bytes)));
	word = atomic_load(&slot->word);
	assert_true(WF_SHM_WORD_FLAGS(word) & WF_SHM_SLOT_AROUND);
	assert_memory_equal(j->out->data + (size_t)(32 + 32) * WF_LINE, bytes,
			    sizeof(bytes));
	slot = wf_shm_put_slot(j->out);
	assert_true(wf_shm_put(j->out, 0, 4, 0, bytes, 1000));
	word = atomic_load(&slot->word);
	assert_false(WF_SHM_WORD_FLAGS(word) &
		     (WF_SHM_SLOT_AROUND | WF_SHM_SLOT_STAMPED));
	joined_close(j);
}

static uint64_t chunked(const struct joined *j)
{
	return wf_base_stats_get(&j->from.stats, WF_SHM_STAT_sent_chunked);
}

static int by_ring(struct joined *j, size_t len, int count)
{
	struct joined_case c = { len, 1, 1, false, false };
	uint64_t before = chunked(j);

	for (int i = 0; i < count; i++)
		joined_exchange(j, &c, (uint64_t)i + 1);
	return (int)(chunked(j) - before);
}

static void test_sender_follows(void **state)
{
	struct joined *j = open_learning(true);

	(void)state;
	/* Too few for a trial. */
	assert_int_equal(by_ring(j, 8192, 5), 5);
	assert_int_equal(by_ring(j, 8193, 5), 0);
	tell(j,
	     WF_SHM_WAYS_KNOWN(1) | WF_SHM_WAYS_KNOWN(5) | WF_SHM_WAYS_RING(5));
	assert_int_equal(by_ring(j, 8192, 5), 0);
	assert_int_equal(by_ring(j, 16384, 5), 5);
	assert_int_equal(by_ring(j, 6144, 5), 5);
	/* The ring is not to carry these sizes at all. */
	assert_int_equal(by_ring(j, 20480, 5), 0);
	tell(j, UINT32_MAX);
	assert_int_equal(by_ring(j, 20480, 5), 0);
	assert_int_equal(by_ring(j, 40000, 5), 0);
	joined_close(j);
}

/* Bug: a receiver whose messages all came through the ring never tried whether
 * CMA is allowed, and so never compared the two. */
static void test_untried(void **state)
{
	struct joined *j = open_learning(true);

	(void)state;
	j->in->mover.way = WF_SHM_WAY_UNTRIED;
	by_ring(j, LEN, 300);
	assert_int_equal(j->in->mover.way, WF_SHM_WAY_CMA);
	assert_true(j->in->pace.told &
		    WF_SHM_WAYS_KNOWN(wf_shm_pace_kind(LEN)));
	/* The file that makes reads fast is there before they are compared. */
	assert_int_equal(j->in->mover.reads, 0);
	joined_close(j);
}

/* The user's word stays. */
static void test_set_by_user(void **state)
{
	struct joined *j = open_learning(false);

	(void)state;
	tell(j, WF_SHM_WAYS_KNOWN(1) | WF_SHM_WAYS_KNOWN(2) |
			WF_SHM_WAYS_RING(2) | WF_SHM_WAYS_STAMP);
	assert_int_equal(by_ring(j, 8193, 50), 0);
	assert_int_equal(by_ring(j, 8192, 50), 50);
	joined_close(j);
}

/* Both ways are tried and clocked, and one is chosen. */
static void test_trial(void **state)
{
	struct joined *j = open_learning(true);
	const struct wf_shm_pace *pace = &j->in->pace;
	uint32_t kind = wf_shm_pace_kind(LEN);
	int ring = by_ring(j, LEN, 300);

	(void)state;
	/* At most three runs by the ring, if it is slower, or by CMA. */
	assert_in_range(ring, 32 + 16, 300 - 16);
	assert_in_range(pace->best[WF_SHM_PACE_CMA], 100, UINT32_MAX - 1);
	assert_in_range(pace->best[WF_SHM_PACE_RING], 100, UINT32_MAX - 1);
	assert_true(pace->told & WF_SHM_WAYS_KNOWN(kind));
	assert_false(pace->told & WF_SHM_WAYS_STAMP);
	assert_int_equal(atomic_load(&j->out->region.header->ways), pace->told);
	joined_close(j);
}

/* The same for messages in one record. An old sender does not know the other way,
 * and is not asked. */
static void test_small_trial(void **state)
{
	struct joined *j = open_learning(true);
	const struct wf_shm_pace *pace = &j->in->pace;

	(void)state;
	j->in->features &= ~WF_SHM_FEATURE_AROUND;
	by_ring(j, 2048, 300);
	assert_int_equal(pace->told, 0);
	joined_close(j);
	j = open_learning(true);
	pace = &j->in->pace;
	j->in->mover.way = WF_SHM_WAY_UNTRIED;
	by_ring(j, 2048, 300);
	assert_in_range(pace->best[WF_SHM_PACE_AROUND], 100, UINT32_MAX - 1);
	assert_in_range(pace->best[WF_SHM_PACE_RING], 100, UINT32_MAX - 1);
	assert_false(pace->told & WF_SHM_WAYS_STAMP);
	/* Nobody asks for CMA for their sake. */
	assert_int_equal(j->in->mover.way, WF_SHM_WAY_UNTRIED);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_in_bursts),
		cmocka_unit_test(test_follows_change),
		cmocka_unit_test(test_disturbed),
		cmocka_unit_test(test_price),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_sender_follows),
		cmocka_unit_test(test_untried),
		cmocka_unit_test(test_set_by_user),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_three_ways),
		cmocka_unit_test(test_two_of_three),
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_put_around),
		cmocka_unit_test(test_small_trial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
