/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PEEK, CLAIM and DISCARD in all combinations, between two processes, for
 * messages of every protocol. The sender asks for delivery completions, so that
 * the test sees that each way to finish a message also completes it at the
 * sender.
 */
#include "msg_util.h"

#define DATA 0x1122334455667788ull
#define MESSAGES 6

static const size_t sizes[] = { 0, 8, 1000, 10000, 100000, 1 << 20 };

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct fi_context contexts[MESSAGES];
	struct weft_test_comp comp;

	(void)arg;
	weft_test_sync(
		line); /* the receiver has seen that no message is there */
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		uint8_t *bufs[MESSAGES];

		for (uint64_t m = 0; m < MESSAGES; m++) {
			bufs[m] = msg_alloc(sizes[i]);
			weft_test_fill(bufs[m], sizes[i], m);
			POST(fi_tsenddata(t->ep, bufs[m], sizes[i], NULL,
					  DATA + m, peer, m, &contexts[m]));
		}
		weft_test_sync(line);
		/* Each completes when the receiver has finished with it. */
		for (uint64_t m = 0; m < MESSAGES; m++) {
			uint64_t which = MESSAGES;

			CHECK(weft_test_get_driving(line, &which,
						    sizeof(which)));
			weft_test_wait(t->txcq, &comp);
			CHECK_EQ(comp.ret, 1);
			CHECK(comp.entry.op_context == &contexts[which]);
			CHECK(!weft_test_poll(t->txcq, &comp));
			weft_test_put(line, &which, sizeof(which));
			free(bufs[which]);
		}
	}
}

/* -- receiver -------------------------------------------------------------- */

static void post(struct weft_test *t, uint64_t tag, uint64_t ignore,
		 uint64_t flags, void *buf, size_t len,
		 struct fi_context *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = buf ? 1 : 0,
		.addr = FI_ADDR_UNSPEC,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	POST(fi_trecvmsg(t->ep, &msg, flags));
}

/* The message is there, and the completion describes it correctly. */
static void expect_found(struct weft_test *t, uint64_t tag, size_t len,
			 struct fi_context *context)
{
	struct weft_test_comp comp;

	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	CHECK_EQ(comp.entry.len, len);
	CHECK_EQ(comp.entry.tag, tag);
	CHECK_EQ(comp.entry.data, DATA + tag);
}

static void expect_nothing(struct weft_test *t, uint64_t tag, uint64_t flags)
{
	struct fi_context context;
	struct weft_test_comp comp;

	post(t, tag, 0, FI_PEEK | flags, NULL, 0, &context);
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, -FI_ENOMSG);
	CHECK(comp.entry.op_context == &context);
	CHECK_EQ(comp.entry.tag, tag);
	CHECK(comp.err.flags & FI_RECV);
}

/* Peeks until the message is there. */
static void peek(struct weft_test *t, uint64_t tag, uint64_t flags, size_t len,
		 struct fi_context *context)
{
	struct weft_test_comp comp;

	for (;;) {
		post(t, tag, 0, FI_PEEK | flags, NULL, 0, context);
		weft_test_wait(t->rxcq, &comp);
		if (comp.ret == 1)
			break;
		CHECK_EQ(comp.ret, -FI_ENOMSG);
		weft_test_progress();
	}
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.entry.len, len);
	CHECK_EQ(comp.entry.tag, tag);
	CHECK_EQ(comp.entry.data, DATA + tag);
}

/* The sender gets the completion of @which, and of no other message. */
static void ended(struct weft_test_line *line, uint64_t which)
{
	weft_test_put(line, &which, sizeof(which));
	CHECK(weft_test_get_driving(line, &which, sizeof(which)));
}

static void receive(struct weft_test *t, uint64_t tag, uint64_t flags,
		    size_t len, struct fi_context *context)
{
	uint8_t *buf = msg_alloc(len);

	post(t, tag, 0, flags, buf, len, context);
	expect_found(t, tag, len, context);
	CHECK(weft_test_holds(buf, len, tag));
	free(buf);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	struct fi_context one, two;

	(void)peer;
	(void)arg;
	expect_nothing(t, 0, 0);
	expect_nothing(t, 0, FI_CLAIM);
	expect_nothing(t, 0, FI_DISCARD);
	weft_test_sync(line);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		size_t len = sizes[i];

		weft_test_sync(line);
		/* 0: peeked twice, then received as usual. */
		peek(t, 0, 0, len, &one);
		peek(t, 0, 0, len, &one);
		expect_nothing(t, 77, 0);
		receive(t, 0, 0, len, &two);
		expect_nothing(t, 0, 0);
		ended(line, 0);
		/* 1: claimed, then received. */
		peek(t, 1, FI_CLAIM, len, &one);
		expect_nothing(t, 1, 0);
		/* 2: discarded. Bug of libfabric's shm: never completed at the
		 * sender. */
		peek(t, 2, FI_DISCARD, len, &two);
		expect_nothing(t, 2, 0);
		ended(line, 2);
		receive(t, 1, FI_CLAIM, len, &one);
		ended(line, 1);
		/* 3: claimed, then discarded. */
		peek(t, 3, FI_CLAIM, len, &one);
		post(t, 3, 0, FI_CLAIM | FI_DISCARD, NULL, 0, &one);
		expect_found(t, 3, len, &one);
		ended(line, 3);
		expect_nothing(t, 3, 0);
		/* 4 and 5: two claims at a time, finished in reverse order; a
		 * wildcard finds the first. */
		post(t, 0, ~0ull, FI_PEEK | FI_CLAIM, NULL, 0, &one);
		expect_found(t, 4, len, &one);
		peek(t, 5, FI_CLAIM, len, &two);
		receive(t, 5, FI_CLAIM, len, &two);
		ended(line, 5);
		receive(t, 4, FI_CLAIM, len, &one);
		ended(line, 4);
	}
}

/* Invalid claims are refused, and their pointers not followed. */
static void test_wrong_claims(void)
{
	struct fi_context context = { { NULL } };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC };
	struct weft_test t;

	weft_test_open(&t, NULL);
	CHECK(fi_trecvmsg(t.ep, &msg, FI_CLAIM) < 0);
	msg.context = &context;
	CHECK(fi_trecvmsg(t.ep, &msg, FI_CLAIM) < 0);
	CHECK(fi_trecvmsg(t.ep, &msg, FI_CLAIM | FI_DISCARD) < 0);
	CHECK(fi_trecvmsg(t.ep, &msg, FI_DISCARD) < 0);
	context.internal[0] = &t;
	CHECK(fi_trecvmsg(t.ep, &msg, FI_CLAIM) < 0);
	weft_test_close(&t);
}

/* Closing the endpoint frees claimed messages that were never received. */
static void test_close_with_claim(void)
{
	static const size_t lens[] = { 8, 10000, 100000 };
	struct fi_context contexts[3];
	void *buf = msg_alloc(100000);
	struct weft_test a, b;
	fi_addr_t to;

	weft_test_open(&a, NULL);
	weft_test_open(&b, NULL);
	to = weft_test_know(&a, &b);
	for (uint64_t i = 0; i < 3; i++)
		POST(fi_tsenddata(a.ep, buf, lens[i], NULL, DATA + i, to, i,
				  NULL));
	for (uint64_t i = 0; i < 3; i++)
		peek(&b, i, FI_CLAIM, lens[i], &contexts[i]);
	weft_test_close(&b);
	weft_test_close(&a);
	free(buf);
}

static void run_pair(void)
{
	const struct weft_test_opts opts = { .tx_flags = FI_DELIVERY_COMPLETE };

	weft_test_pair(&opts, sender, receiver, NULL);
}

/* Without CMA everything goes through the ring. */
static void without_cma(struct weft_test_line *line, void *arg)
{
	(void)line;
	(void)arg;
	setenv("FI_WEFT_CMA", "0", 1);
	run_pair();
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(without_cma, NULL);
	run_pair();
	test_wrong_claims();
	test_close_with_claim();
	return 0;
}
