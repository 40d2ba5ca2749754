/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer on another host is removed from the AV while operations to it are in
 * flight: each completes once. After it is inserted again, it is reached again;
 * another peer is not affected.
 */
#include "common/net.h"
#include "rma_util.h"

#define ROUNDS 6
#define EACH 16
#define KINDS 4
#define LARGE ((size_t)1 << 20)

static struct fi_context contexts[KINDS][EACH];

static const struct weft_test_opts opts = { .caps = RMA_CAPS };

/* -- who is removed ---------------------------------------------------------- */

static void peer_main(struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGE);
	struct weft_test t;
	struct fid_mr *mr;
	char mark;

	(void)arg;
	weft_test_open(&t, &opts);
	weft_test_meet(&t, line);
	rma_offer(&t, line, region, LARGE, &mr);
	/* The peer receives one message in each round, and leaves the others
	 * unreceived. */
	while (weft_test_get_driving(line, &mark, 1) && mark == 'r') {
		uint64_t word = 0;

		CHECK_OK(weft_test_trecv(&t, &word, sizeof(word), 1, 0, &word));
		weft_test_wait_ok(t.rxcq, &word);
		CHECK_EQ(word, 0x1234);
	}
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t);
	free(region);
}

/* -- who removes ------------------------------------------------------------- */

static void post(struct weft_test *t, fi_addr_t peer, uint8_t *buf,
		 const struct rma_target *target, int kind, int i)
{
	struct fi_context *context = &contexts[kind][i];

	switch (kind) {
	case 0:
		CHECK_OK(weft_test_tdeliver(t, buf, 100, peer, 7, context));
		break;
	case 1:
		CHECK_OK(weft_test_tsend(t, buf, LARGE, peer, 8, context));
		break;
	case 2:
		CHECK_OK(weft_test_tsend(t, buf, 30000, peer, 9, context));
		break;
	default:
		POST(fi_read(t->ep, buf, LARGE, NULL, peer, target->base,
			     target->key, context));
	}
}

static void take_all(struct weft_test *t)
{
	bool done[KINDS][EACH] = { 0 };

	for (int i = 0; i < KINDS * EACH; i++) {
		struct weft_test_comp comp;
		ptrdiff_t which;

		weft_test_wait(t->txcq, &comp);
		which = (struct fi_context *)comp.entry.op_context -
			&contexts[0][0];
		CHECK(which >= 0 && which < KINDS * EACH);
		CHECK(!done[which / EACH][which % EACH]);
		done[which / EACH][which % EACH] = true;
		/* Nobody received these. */
		if (which / EACH < 2)
			CHECK(comp.ret < 0);
	}
	msg_expect_quiet(t->txcq, 20);
}

static void say(struct weft_test *t, fi_addr_t peer,
		struct weft_test_line *line)
{
	static uint64_t word = 0x1234;
	struct fi_context context;

	weft_test_put(line, "r", 1);
	CHECK_OK(weft_test_tdeliver(t, &word, sizeof(word), peer, 1, &context));
	weft_test_wait_ok(t->txcq, &context);
}

int main(void)
{
	uint8_t *buf = msg_alloc(LARGE), name[WEFT_TEST_NAME_MAX] = { 0 };
	struct rma_target targets[2];
	struct weft_test_line lines[2];
	size_t len = sizeof(name);
	fi_addr_t peers[2];
	struct weft_test t;

	weft_test_begin(60);
	net_begin(1500);
	for (int i = 0; i < 2; i++)
		weft_test_fork(&lines[i], peer_main, NULL);
	weft_test_open(&t, &opts);
	for (int i = 0; i < 2; i++) {
		peers[i] = weft_test_meet(&t, &lines[i]);
		targets[i] = rma_learn(&lines[i]);
	}
	CHECK_OK(fi_av_lookup(t.av, peers[0], name, &len));
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 2; i++)
			say(&t, peers[i], &lines[i]);
		for (int i = 0; i < EACH; i++)
			for (int kind = 0; kind < KINDS; kind++)
				post(&t, peers[0], buf, &targets[0], kind, i);
		weft_test_progress_for(round * round);
		CHECK_OK(fi_av_remove(t.av, &peers[0], 1, 0));
		take_all(&t);
		say(&t, peers[1], &lines[1]);
		peers[0] = weft_test_insert(&t, name);
		say(&t, peers[0], &lines[0]);
		say(&t, peers[1], &lines[1]);
	}
	for (int i = 0; i < 2; i++) {
		weft_test_put(&lines[i], "e", 1);
		weft_test_join(&lines[i]);
	}
	weft_test_close(&t);
	free(buf);
	return 0;
}
