/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the matcher: who meets whom, in which order; and a long random
 * run side by side with two plain lists that are searched from the front.
 */
#include "match/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define ANY WF_MATCH_ANY

static void post(struct wf_match *m, struct wf_rx *rx, uint64_t tag,
		 uint64_t ignore, uint64_t src)
{
	*rx = (struct wf_rx){ .tag = tag, .ignore = ignore, .src = src };
	wf_match_post(m, rx);
}

/* What a message would meet; takes it off. */
static struct wf_rx *take(struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_rx *rx = wf_match_find(m, tag, src);

	if (rx)
		wf_match_unpost(m, rx);
	return rx;
}

static void park(struct wf_match *m, struct wf_ux *ux, uint64_t tag,
		 uint64_t src)
{
	*ux = (struct wf_ux){ .tag = tag, .src = src };
	wf_match_park(m, ux);
}

static void test_exact(void **state)
{
	struct wf_match m;
	struct wf_rx rx[3];

	(void)state;
	wf_match_init(&m);
	assert_null(wf_match_find(&m, 5, 1));
	post(&m, &rx[0], 5, 0, ANY);
	post(&m, &rx[1], 6, 0, ANY);
	post(&m, &rx[2], 5, 0, ANY);
	assert_null(take(&m, 7, 1));
	assert_ptr_equal(take(&m, 6, 1), &rx[1]);
	assert_ptr_equal(take(&m, 5, ANY), &rx[0]);
	assert_ptr_equal(take(&m, 5, 9), &rx[2]);
	assert_null(take(&m, 5, 1));
}

/* Tags that share a bucket are still different tags. */
static void test_colliding_tags(void **state)
{
	uint32_t bucket = wf_match_hash(1, ANY);
	struct wf_match m;
	struct wf_rx rx[2];
	struct wf_ux ux[2];
	uint64_t other = 2;

	(void)state;
	while (wf_match_hash(other, ANY) != bucket)
		other++;
	wf_match_init(&m);
	post(&m, &rx[0], 1, 0, ANY);
	post(&m, &rx[1], other, 0, ANY);
	assert_ptr_equal(take(&m, other, 3), &rx[1]);
	assert_null(take(&m, other, 3));
	assert_ptr_equal(take(&m, 1, 3), &rx[0]);
	park(&m, &ux[0], 1, 3);
	park(&m, &ux[1], other, 3);
	assert_ptr_equal(wf_match_find_ux(&m, other, 0, ANY), &ux[1]);
	assert_ptr_equal(wf_match_find_ux(&m, 1, 0, ANY), &ux[0]);
}

static void test_directed(void **state)
{
	struct wf_match m;
	struct wf_rx rx[3];

	(void)state;
	wf_match_init(&m);
	post(&m, &rx[0], 5, 0, 1);
	post(&m, &rx[1], 5, 0, 2);
	post(&m, &rx[2], 5, 0, ANY);
	assert_ptr_equal(take(&m, 5, 2), &rx[1]);
	/* Nobody knows the sender: only a receive from anyone takes it. */
	assert_ptr_equal(take(&m, 5, ANY), &rx[2]);
	assert_null(take(&m, 5, ANY));
	assert_null(take(&m, 5, 2));
	assert_ptr_equal(take(&m, 5, 1), &rx[0]);
}

/* Senders that share a bucket are still different senders. */
static void test_colliding_senders(void **state)
{
	struct wf_match m;
	struct wf_rx rx[2];
	uint64_t other = 6;

	(void)state;
	while (wf_match_hash(1, other) != wf_match_hash(1, 5))
		other++;
	wf_match_init(&m);
	post(&m, &rx[0], 1, 0, other);
	post(&m, &rx[1], 1, 0, 5);
	assert_ptr_equal(take(&m, 1, 5), &rx[1]);
	assert_null(take(&m, 1, 5));
	assert_ptr_equal(take(&m, 1, other), &rx[0]);
}

static void test_merged_by_order_of_posting(void **state)
{
	struct wf_match m;
	struct wf_rx rx[5];

	(void)state;
	wf_match_init(&m);
	post(&m, &rx[0], 0x10, 0xf, ANY);
	post(&m, &rx[1], 0x12, 0, ANY);
	post(&m, &rx[2], 0x12, 0, 3);
	post(&m, &rx[3], 0, ~0ull, 3);
	post(&m, &rx[4], 0x12, 0, ANY);
	assert_ptr_equal(take(&m, 0x12, 3), &rx[0]);
	assert_ptr_equal(take(&m, 0x12, 3), &rx[1]);
	assert_ptr_equal(take(&m, 0x12, 3), &rx[2]);
	assert_ptr_equal(take(&m, 0x12, 3), &rx[3]);
	assert_ptr_equal(take(&m, 0x12, 3), &rx[4]);
	assert_null(take(&m, 0x12, 3));
}

static void test_ignored_bits(void **state)
{
	struct wf_match m;
	struct wf_rx rx[2];

	(void)state;
	wf_match_init(&m);
	post(&m, &rx[0], 0xff00, 0x00ff, ANY);
	assert_null(take(&m, 0xfe00, 1));
	assert_ptr_equal(take(&m, 0xff77, 1), &rx[0]);
	/* Bits of the receive's own tag below the mask do not count. */
	post(&m, &rx[1], 0xff11, 0x00ff, 4);
	assert_null(take(&m, 0xff22, 1));
	assert_ptr_equal(take(&m, 0xff22, 4), &rx[1]);
}

static void test_unexpected_in_order_of_arrival(void **state)
{
	struct wf_match m;
	struct wf_ux ux[4];

	(void)state;
	wf_match_init(&m);
	assert_null(wf_match_find_ux(&m, 0, ~0ull, ANY));
	park(&m, &ux[0], 8, 1);
	park(&m, &ux[1], 9, 2);
	park(&m, &ux[2], 8, 2);
	park(&m, &ux[3], 8, 1);
	assert_ptr_equal(wf_match_find_ux(&m, 0, ~0ull, ANY), &ux[0]);
	assert_ptr_equal(wf_match_find_ux(&m, 8, 0, ANY), &ux[0]);
	assert_ptr_equal(wf_match_find_ux(&m, 8, 0, 2), &ux[2]);
	assert_ptr_equal(wf_match_find_ux(&m, 0, ~0ull, 2), &ux[1]);
	assert_null(wf_match_find_ux(&m, 9, 0, 1));
	wf_match_unpark(&m, &ux[0]);
	assert_ptr_equal(wf_match_find_ux(&m, 8, 0, ANY), &ux[2]);
	assert_ptr_equal(wf_match_find_ux(&m, 8, 0, 1), &ux[3]);
	/* The sender got a name after the message had come. */
	ux[2].src = 1;
	assert_ptr_equal(wf_match_find_ux(&m, 8, 0, 1), &ux[2]);
}

static void test_context_and_first(void **state)
{
	int context[2];
	struct wf_match m;
	struct wf_rx rx[2];

	(void)state;
	wf_match_init(&m);
	assert_null(wf_match_first(&m));
	post(&m, &rx[0], 1, 0, ANY);
	rx[0].context = &context[0];
	post(&m, &rx[1], 1, 1, ANY);
	rx[1].context = &context[1];
	assert_ptr_equal(wf_match_find_context(&m, &context[0]), &rx[0]);
	assert_ptr_equal(wf_match_find_context(&m, &context[1]), &rx[1]);
	assert_null(wf_match_find_context(&m, &m));
	wf_match_unpost(&m, &rx[1]);
	assert_ptr_equal(wf_match_first(&m), &rx[0]);
	wf_match_unpost(&m, &rx[0]);
	assert_null(wf_match_first(&m));
	assert_int_equal(m.exact_any + m.exact_directed + m.wild, 0);
}

/* -- against a model ------------------------------------------------------- */

#define RECEIVES 64
#define MESSAGES 64

struct model {
	struct wf_match m;
	struct wf_rx rx[RECEIVES];
	struct wf_ux ux[MESSAGES];
	struct wf_rx *posted[RECEIVES]; /* oldest first */
	struct wf_ux *parked[MESSAGES];
	int posted_count;
	int parked_count;
};

static uint64_t random_tag(void)
{
	/* Few values, so that they meet; some far apart. */
	return (uint64_t)(random() % 6) << (random() % 2 ? 40 : 0);
}

static uint64_t random_src(void)
{
	return random() % 3 ? (uint64_t)(random() % 3) : ANY;
}

static uint64_t random_ignore(void)
{
	static const uint64_t masks[] = { 0, 0, 0, 1, 7, ~0ull, 7ull << 40 };

	return masks[(size_t)random() % (sizeof(masks) / sizeof(masks[0]))];
}

static bool meets(uint64_t tag, uint64_t src, const struct wf_rx *rx)
{
	return (rx->tag & ~rx->ignore) == (tag & ~rx->ignore) &&
	       (rx->src == ANY || rx->src == src);
}

static void forget(void **list, int *count, int at)
{
	for (--*count; at < *count; at++)
		list[at] = list[at + 1];
}

static void *spare(void *first, size_t size, int room, void **used, int count)
{
	for (int i = 0; i < room; i++) {
		char *item = (char *)first + (size_t)i * size;
		int at = 0;

		while (at < count && used[at] != item)
			at++;
		if (at == count)
			return item;
	}
	return NULL;
}

static void model_message(struct model *model, uint64_t tag, uint64_t src)
{
	struct wf_rx *got = wf_match_find(&model->m, tag, src);
	struct wf_ux *ux;
	int at = 0;

	while (at < model->posted_count && !meets(tag, src, model->posted[at]))
		at++;
	if (at < model->posted_count) {
		assert_ptr_equal(got, model->posted[at]);
		wf_match_unpost(&model->m, got);
		forget((void **)model->posted, &model->posted_count, at);
		return;
	}
	assert_null(got);
	ux = spare(model->ux, sizeof(*ux), MESSAGES, (void **)model->parked,
		   model->parked_count);
	if (!ux)
		return;
	park(&model->m, ux, tag, src);
	model->parked[model->parked_count++] = ux;
}

static void model_receive(struct model *model, uint64_t tag, uint64_t ignore,
			  uint64_t src)
{
	struct wf_rx want = { .tag = tag, .ignore = ignore, .src = src };
	struct wf_ux *got = wf_match_find_ux(&model->m, tag, ignore, src);
	struct wf_rx *rx;
	int at = 0;

	while (at < model->parked_count &&
	       !meets(model->parked[at]->tag, model->parked[at]->src, &want))
		at++;
	if (at < model->parked_count) {
		assert_ptr_equal(got, model->parked[at]);
		wf_match_unpark(&model->m, got);
		forget((void **)model->parked, &model->parked_count, at);
		return;
	}
	assert_null(got);
	rx = spare(model->rx, sizeof(*rx), RECEIVES, (void **)model->posted,
		   model->posted_count);
	if (!rx)
		return;
	post(&model->m, rx, tag, ignore, src);
	model->posted[model->posted_count++] = rx;
}

static void test_random_against_lists(void **state)
{
	struct model *model = calloc(1, sizeof(*model));

	(void)state;
	assert_non_null(model);
	wf_match_init(&model->m);
	srandom(2);
	for (int i = 0; i < 100000; i++) {
		/* Now more receives, now more messages. */
		bool receive = random() % 100 < (i / 1000 % 2 ? 65 : 35);

		if (receive)
			model_receive(model, random_tag(), random_ignore(),
				      random_src());
		else
			model_message(model, random_tag(), random_src());
		if (i % 97 == 0 && model->posted_count) {
			int at = (int)(random() % model->posted_count);

			wf_match_unpost(&model->m, model->posted[at]);
			forget((void **)model->posted, &model->posted_count,
			       at);
		}
	}
	assert_int_equal(model->m.unexpected, model->parked_count);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_colliding_tags),
		cmocka_unit_test(test_directed),
		cmocka_unit_test(test_colliding_senders),
		cmocka_unit_test(test_merged_by_order_of_posting),
		cmocka_unit_test(test_ignored_bits),
		cmocka_unit_test(test_unexpected_in_order_of_arrival),
		cmocka_unit_test(test_context_and_first),
		cmocka_unit_test(test_random_against_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
