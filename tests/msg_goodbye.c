/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver closes its endpoint as soon as it has what it waited for: the
 * sender, which asked for delivery confirmation, gets it. Bug (fabtests
 * rdm_multi_client -U): the sender gave up the channel before it read the
 * replies in it, and delivered messages failed with FI_ECONNRESET.
 *
 * This happens if the sender looks at sockets before it looks at replies, for
 * example because it made no progress for a while and then finds a large
 * message from a third endpoint.
 */
#include "msg_util.h"

#include <unistd.h>

#define ROUNDS 60
#define BURST 300 /* more than the ring of replies holds */
#define TAG 5
#define THIRD_TAG 6
#define THIRD_LEN 100000
#define LONG_NAP 3000 /* us; no look at sockets for a millisecond */

struct round {
	size_t len;
	int count;  /* messages before the receiver closes */
	bool warm;  /* the channel is opened before */
	bool third; /* another endpoint sends after the receiver has closed */
	useconds_t nap;
};

static const size_t sizes[] = { 100, 10 << 10, 1 << 20 };

static struct round round_of(size_t size, int i)
{
	static const useconds_t naps[] = { 0, 200, 2000 };

	return (struct round){
		.len = size,
		.count = size == 100 && i % 4 == 2 ? BURST : 1,
		.warm = i % 4,
		.third = size == 100 && i % 4 == 1,
		.nap = naps[i % 3],
	};
}

/* The third endpoint is in the receiver's process. */
struct third {
	struct weft_test t;
	fi_addr_t to;
	uint8_t buf[THIRD_LEN];
};

static struct third third;

static void third_sends(struct fi_context *context)
{
	CHECK_OK(weft_test_tsend(&third.t, third.buf, THIRD_LEN, third.to,
				 THIRD_TAG, context));
}

static void receive_and_go(struct weft_test_line *line, const struct round *r,
			   uint8_t *buf)
{
	struct fi_context contexts[BURST];
	struct weft_test t;
	uint64_t hello;

	weft_test_open(&t, NULL);
	if (r->warm)
		CHECK_OK(weft_test_trecv(&t, &hello, sizeof(hello), 0, 0,
					 &contexts[0]));
	weft_test_put(line, t.name, sizeof(t.name));
	if (r->warm)
		weft_test_wait_ok(t.rxcq, &contexts[0]);
	for (int i = 0; i < r->count; i++)
		CHECK_OK(
			weft_test_trecv(&t, buf, r->len, TAG, 0, &contexts[i]));
	for (int i = 0; i < r->count; i++)
		weft_test_wait_ok(t.rxcq, &contexts[i]);
	weft_test_close(&t);
	CHECK(weft_test_holds(buf, r->len, r->len));
	if (!r->third)
		return;
	third_sends(&contexts[0]);
	weft_test_put(line, &hello, 1);
	weft_test_wait_ok(third.t.txcq, &contexts[0]);
}

static void send_and_learn(struct weft_test *t, struct weft_test_line *line,
			   const struct round *r, const uint8_t *buf)
{
	struct fi_context contexts[BURST], from_third;
	uint8_t name[WEFT_TEST_NAME_MAX];
	uint64_t hello = 0;
	fi_addr_t peer;

	if (r->third)
		CHECK_OK(weft_test_trecv(t, third.buf, THIRD_LEN, THIRD_TAG, 0,
					 &from_third));
	CHECK(weft_test_get(line, name, sizeof(name)));
	peer = weft_test_insert(t, name);
	if (r->warm) {
		CHECK_OK(weft_test_tdeliver(t, &hello, sizeof(hello), peer, 0,
					    &contexts[0]));
		weft_test_wait_ok(t->txcq, &contexts[0]);
	}
	for (int i = 0; i < r->count; i++)
		CHECK_OK(weft_test_tdeliver(t, buf, r->len, peer, TAG,
					    &contexts[i]));
	/* Nobody drives the sender while the receiver closes. */
	if (r->third)
		CHECK(weft_test_get(line, &hello, 1));
	usleep(r->third ? LONG_NAP : r->nap);
	for (int i = 0; i < r->count; i++)
		weft_test_wait_ok(t->txcq, &contexts[i]);
	if (r->third)
		weft_test_wait_ok(t->rxcq, &from_third);
	CHECK_OK(fi_av_remove(t->av, &peer, 1, 0));
}

static void receiver(struct weft_test_line *line, void *arg)
{
	struct fi_context context;

	(void)arg;
	weft_test_open(&third.t, NULL);
	third.to = weft_test_meet(&third.t, line);
	third_sends(&context);
	weft_test_wait_ok(third.t.txcq, &context);
	for (size_t s = 0; s < COUNT_OF(sizes); s++) {
		uint8_t *buf = msg_alloc(sizes[s]);

		for (int i = 0; i < ROUNDS; i++) {
			struct round r = round_of(sizes[s], i);

			memset(buf, 0, sizes[s]);
			receive_and_go(line, &r, buf);
		}
		free(buf);
	}
	weft_test_close(&third.t);
}

int main(void)
{
	struct weft_test_line line;
	struct fi_context context;
	struct weft_test t;

	weft_test_begin(100);
	weft_test_fork(&line, receiver, NULL);
	weft_test_open(&t, NULL);
	weft_test_meet(&t, &line);
	CHECK_OK(weft_test_trecv(&t, third.buf, THIRD_LEN, THIRD_TAG, 0,
				 &context));
	weft_test_wait_ok(t.rxcq, &context);
	for (size_t s = 0; s < COUNT_OF(sizes); s++) {
		uint8_t *buf = msg_alloc(sizes[s]);

		weft_test_fill(buf, sizes[s], sizes[s]);
		for (int i = 0; i < ROUNDS; i++) {
			struct round r = round_of(sizes[s], i);

			send_and_learn(&t, &line, &r, buf);
		}
		free(buf);
	}
	weft_test_close(&t);
	weft_test_join(&line);
	return 0;
}
