/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the matcher: which message meets which receive, and in which
 * order; and random runs side by side with two plain lists that are searched
 * from the front.
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

/* Takes the receive that a message would meet off the queue. */
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
	uint64_t bucket = wf_match_hash(1, ANY) >> 56;
	struct wf_match m;
	struct wf_rx rx[2];
	struct wf_ux ux[2];
	uint64_t other = 2;

	(void)state;
	while (wf_match_hash(other, ANY) >> 56 != bucket)
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
	while ((wf_match_hash(1, other) ^ wf_match_hash(1, 5)) >> 56)
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
	wf_match_ux_renamed(&m);
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
	assert_int_equal(m.exact_any + m.special, 0);
}

/* -- against a model ------------------------------------------------------- */

#define RECEIVES 600
#define MESSAGES 600

/* A mix says what is drawn. */
struct mix {
	const uint64_t *masks;
	size_t mask_count;
	unsigned tags;	/* different tags */
	unsigned depth; /* receives and messages that wait, at most */
	unsigned steps; /* after which receives or messages become more */
	bool directed;	/* some receives name their source */
};

struct model {
	struct wf_match m;
	const struct mix *mix;
	struct wf_rx rx[RECEIVES];
	struct wf_ux ux[MESSAGES];
	struct wf_rx *posted[RECEIVES]; /* oldest first */
	struct wf_ux *parked[MESSAGES];
	int posted_count;
	int parked_count;
};

static uint64_t random_tag(const struct mix *mix)
{
	/* Few values, so that they meet; some far apart. */
	return (uint64_t)((unsigned)random() % mix->tags)
	       << (random() % 2 ? 40 : 0);
}

static uint64_t random_src(void)
{
	return random() % 3 ? (uint64_t)(random() % 3) : ANY;
}

static uint64_t random_ignore(const struct mix *mix)
{
	return mix->masks[(size_t)random() % mix->mask_count];
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

static struct wf_rx *spare_rx(struct model *model)
{
	for (unsigned i = 0; i < model->mix->depth; i++) {
		if (!model->rx[i].context)
			return &model->rx[i];
	}
	return NULL;
}

static struct wf_ux *spare_ux(struct model *model)
{
	for (unsigned i = 0; i < model->mix->depth; i++) {
		if (!model->ux[i].owner)
			return &model->ux[i];
	}
	return NULL;
}

static void unpost(struct model *model, int at)
{
	wf_match_unpost(&model->m, model->posted[at]);
	model->posted[at]->context = NULL;
	forget((void **)model->posted, &model->posted_count, at);
}

static void unpark(struct model *model, int at)
{
	wf_match_unpark(&model->m, model->parked[at]);
	model->parked[at]->owner = NULL;
	forget((void **)model->parked, &model->parked_count, at);
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
		unpost(model, at);
		return;
	}
	assert_null(got);
	ux = spare_ux(model);
	if (!ux)
		return;
	park(&model->m, ux, tag, src);
	ux->owner = ux; /* in use */
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
		unpark(model, at);
		return;
	}
	assert_null(got);
	rx = spare_rx(model);
	if (!rx)
		return;
	post(&model->m, rx, tag, ignore, src);
	rx->context = rx; /* in use */
	model->posted[model->posted_count++] = rx;
}

/* Other events happen: a cancelled receive, a message that is claimed or whose
 * endpoint closes, a sender that gets another name. */
static void model_disturb(struct model *model)
{
	int at;

	if (model->posted_count) {
		struct wf_rx *rx;

		at = (int)(random() % model->posted_count);
		rx = model->posted[at];
		assert_ptr_equal(wf_match_find_context(&model->m, rx), rx);
		unpost(model, at);
	}
	if (model->parked_count) {
		unpark(model, (int)(random() % model->parked_count));
	}
	if (model->parked_count && random() % 8 == 0) {
		at = (int)(random() % model->parked_count);
		model->parked[at]->src = random_src();
		wf_match_ux_renamed(&model->m);
	}
}

static void run_model(const struct mix *mix, int steps, unsigned seed)
{
	struct model *model = calloc(1, sizeof(*model));
	struct wf_list *pos, *tmp;
	struct wf_rx *rx;

	assert_non_null(model);
	model->mix = mix;
	wf_match_init(&model->m);
	srandom(seed);
	for (int i = 0; i < steps; i++) {
		/* Now more receives, now more messages. */
		bool receive = (unsigned)random() % 100 <
			       ((unsigned)i / mix->steps % 2 ? 75u : 25u);

		if (receive)
			model_receive(model, random_tag(mix),
				      random_ignore(mix),
				      mix->directed ? random_src() : ANY);
		else
			model_message(model, random_tag(mix), random_src());
		if (i % 97 == 0)
			model_disturb(model);
	}
	assert_int_equal(model->m.unexpected, model->parked_count);
	wf_list_for_each (pos, tmp, &model->m.ux_order)
		wf_match_unpark(&model->m,
				wf_container_of(pos, struct wf_ux, order));
	while ((rx = wf_match_first(&model->m)))
		wf_match_unpost(&model->m, rx);
	assert_int_equal(model->m.exact_any + model->m.special, 0);
	assert_int_equal(model->m.masked + model->m.strays, 0);
	wf_match_fini(&model->m);
	free(model);
}

/* The protocol bits that MPI ignores always, its tag, its source. */
#define P (3ull << 62)
#define T 0xffffull
#define S (0xffffull << 32)

static const uint64_t few[] = { 0, 0, 0, 1, 7, ~0ull, 7ull << 40 };
static const uint64_t mpi[] = { P, P, P, P, P, P, P, P | T, P | S, P | S | T };
static const uint64_t many[] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3 << 8, 5ull << 40, ~0ull, ~1ull
};

#define MASKS(array) .masks = array, .mask_count = sizeof(array) / 8

static void test_random_short(void **state)
{
	const struct mix mix = { MASKS(few), .tags = 6, .depth = 12,
				 .steps = 100, .directed = true };

	(void)state;
	for (unsigned seed = 0; seed < 200; seed++)
		run_model(&mix, 500, seed);
}

static void test_random_as_mpi(void **state)
{
	const struct mix mix = { MASKS(mpi), .tags = 500, .depth = 600,
				 .steps = 1500, .directed = true };

	(void)state;
	run_model(&mix, 15000, 1);
}

static void test_random_from_anyone(void **state)
{
	const struct mix mix = { MASKS(mpi), .tags = 2000, .depth = 600,
				 .steps = 1500 };

	(void)state;
	run_model(&mix, 15000, 2);
}

/* More masks than there are lanes, on both sides. */
static void test_random_many_masks(void **state)
{
	const struct mix mix = { MASKS(many), .tags = 3000, .depth = 600,
				 .steps = 1500, .directed = true };

	(void)state;
	run_model(&mix, 15000, 3);
}

static void test_random_exact(void **state)
{
	const struct mix mix = { .masks = few,
				 .mask_count = 1,
				 .tags = 3000,
				 .depth = 600,
				 .steps = 1500,
				 .directed = true };

	(void)state;
	run_model(&mix, 15000, 4);
}

/* -- depth ----------------------------------------------------------------- */

#define DEEP 4000

/* Thousands that wait are not searched one by one: a search for a tag that no
 * other has touches a short chain. The lengths of chains are counted, because a
 * time would depend on the machine. */
static uint32_t longest(const struct wf_chains *chains)
{
	uint32_t most = 0;

	for (uint64_t i = 0; i < 1ull << (64 - chains->shift); i++) {
		const struct wf_list *head = &chains->heads[i];
		uint32_t length = 0;

		for (const struct wf_list *pos = head->next; pos != head;
		     pos = pos->next)
			length++;
		most = length > most ? length : most;
	}
	return most;
}

static void test_deep_receives(void **state)
{
	struct wf_match *m = calloc(1, sizeof(*m));
	struct wf_rx *rx = calloc(DEEP, sizeof(*rx));

	(void)state;
	assert_non_null(m);
	assert_non_null(rx);
	wf_match_init(m);
	for (uint64_t i = 0; i < DEEP; i++)
		post(m, &rx[i], i << 8, i % 2 ? P : P | S, ANY);
	assert_int_equal(m->strays, 0);
	assert_ptr_equal(wf_match_find(m, 3000 << 8, 1), &rx[3000]);
	assert_ptr_equal(wf_match_find(m, P | 3001 << 8, 1), &rx[3001]);
	for (uint64_t i = DEEP; i-- > DEEP / 2;)
		assert_ptr_equal(take(m, i << 8, 1), &rx[i]);
	for (uint64_t i = DEEP / 2; i < DEEP; i++)
		post(m, &rx[i], i << 8, P, ANY);
	assert_true(longest(&m->posted) < 12);
	while (wf_match_first(m))
		wf_match_unpost(m, wf_match_first(m));
	wf_match_fini(m);
	free(rx);
	free(m);
}

static void test_deep_messages(void **state)
{
	struct wf_match *m = calloc(1, sizeof(*m));
	struct wf_ux *ux = calloc(DEEP, sizeof(*ux));

	(void)state;
	assert_non_null(m);
	assert_non_null(ux);
	wf_match_init(m);
	for (uint64_t i = 0; i < DEEP / 40; i++)
		park(m, &ux[i], i << 8, i % 8);
	for (int i = 0; i < 20; i++) {
		assert_ptr_equal(wf_match_find_ux(m, 50 << 8, P, ANY), &ux[50]);
		assert_ptr_equal(wf_match_find_ux(m, 50 << 8, P, 2), &ux[50]);
	}
	assert_null(wf_match_find_ux(m, 50 << 8, P, 1));
	for (uint64_t i = DEEP / 40; i < DEEP; i++)
		park(m, &ux[i], i << 8, i % 8);
	assert_int_equal(m->ux_lane_count, 2);
	assert_true(longest(&m->ux_lanes[0].chains) < 12);
	assert_true(longest(&m->ux_lanes[1].chains) < 12);
	for (uint64_t i = DEEP; i-- > 0;) {
		assert_ptr_equal(wf_match_find_ux(m, i << 8, P, i % 8), &ux[i]);
		wf_match_unpark(m, &ux[i]);
	}
	assert_int_equal(m->ux_lane_count, 0);
	wf_match_fini(m);
	free(ux);
	free(m);
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
		cmocka_unit_test(test_random_short),
		cmocka_unit_test(test_random_as_mpi),
		cmocka_unit_test(test_random_from_anyone),
		cmocka_unit_test(test_random_many_masks),
		cmocka_unit_test(test_random_exact),
		cmocka_unit_test(test_deep_receives),
		cmocka_unit_test(test_deep_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
