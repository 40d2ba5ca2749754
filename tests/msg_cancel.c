/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancelled receives: each is reported once and removed from the queue, and its
 * message goes to the next receive.
 */
#include "msg_util.h"

static struct weft_test a, b;
static fi_addr_t to_b;

static void post(bool tagged, void *buf, uint64_t ignore,
		 struct fi_context *context)
{
	if (tagged)
		CHECK_OK(weft_test_trecv(&b, buf, 100, 7, ignore, context));
	else
		CHECK_OK(weft_test_recv(&b, buf, 100, context));
}

static void send_one(bool tagged, const char *text)
{
	if (tagged)
		CHECK_OK(weft_test_tsend(&a, text, 8, to_b, 7, NULL));
	else
		CHECK_OK(weft_test_send(&a, text, 8, to_b, NULL));
	weft_test_wait_ok(a.txcq, NULL);
}

static void test_cancel(bool tagged, uint64_t ignore)
{
	struct fi_context context[4];
	struct weft_test_comp comp;
	char buf[4][100];

	CHECK_EQ(fi_cancel(&b.ep->fid, &context[0]), -FI_ENOENT);
	for (int i = 0; i < 4; i++)
		post(tagged, buf[i], ignore, &context[i]);
	CHECK_OK(fi_cancel(&b.ep->fid, &context[0]));
	CHECK_OK(fi_cancel(&b.ep->fid, &context[2]));
	for (int i = 0; i <= 2; i += 2) {
		weft_test_wait(b.rxcq, &comp);
		CHECK_EQ(comp.ret, -FI_ECANCELED);
		CHECK(comp.entry.op_context == &context[i]);
		CHECK(comp.err.flags & FI_RECV);
		CHECK(comp.err.flags & (tagged ? FI_TAGGED : FI_MSG));
	}
	CHECK_EQ(fi_cancel(&b.ep->fid, &context[2]), -FI_ENOENT);
	/* The messages skip the cancelled receives. */
	send_one(tagged, "message");
	weft_test_wait_ok(b.rxcq, &context[1]);
	CHECK(!strcmp(buf[1], "message"));
	send_one(tagged, "another");
	weft_test_wait_ok(b.rxcq, &context[3]);
	CHECK(!strcmp(buf[3], "another"));
	/* Too late to cancel. */
	CHECK_EQ(fi_cancel(&b.ep->fid, &context[3]), -FI_ENOENT);
	msg_expect_quiet(b.rxcq, 5);
	/* Later messages go to the next receive. */
	post(tagged, buf[0], ignore, &context[0]);
	CHECK_OK(fi_cancel(&b.ep->fid, &context[0]));
	weft_test_wait_err(b.rxcq, &context[0], FI_ECANCELED);
	send_one(tagged, "waiting");
	weft_test_progress_for(5);
	post(tagged, buf[1], ignore, &context[1]);
	weft_test_wait_ok(b.rxcq, &context[1]);
	CHECK(!strcmp(buf[1], "waiting"));
}

static void test_cancel_multi(void)
{
	char buf[1000];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = buf,
	};
	struct weft_test_comp comp;

	POST(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV));
	send_one(false, "message");
	weft_test_wait(b.rxcq, &comp);
	CHECK(comp.entry.buf == buf);
	CHECK_OK(fi_cancel(&b.ep->fid, buf));
	weft_test_wait_err(b.rxcq, buf, FI_ECANCELED);
	CHECK_EQ(fi_cancel(&b.ep->fid, buf), -FI_ENOENT);
}

/* More than a queue holds, cancelled in a different order. */
static void test_cancel_many(void)
{
	enum { COUNT = 500 };
	static struct fi_context context[COUNT];
	static bool seen[COUNT];
	struct weft_test_comp comp;
	char buf[8];

	for (size_t i = 0; i < COUNT; i++)
		CHECK_OK(weft_test_trecv(&b, buf, 8, i, i % 3 ? 0 : 1,
					 &context[i]));
	for (size_t i = 0; i < COUNT; i++)
		CHECK_OK(fi_cancel(&b.ep->fid, &context[i * 7 % COUNT]));
	for (size_t i = 0; i < COUNT; i++) {
		size_t at;

		weft_test_wait(b.rxcq, &comp);
		CHECK_EQ(comp.ret, -FI_ECANCELED);
		at = (size_t)((struct fi_context *)comp.entry.op_context -
			      context);
		CHECK(at < COUNT && !seen[at]);
		seen[at] = true;
	}
	msg_expect_quiet(b.rxcq, 5);
}

int main(void)
{
	weft_test_begin(60);
	weft_test_open(&a, NULL);
	weft_test_open(&b, NULL);
	to_b = weft_test_know(&a, &b);
	test_cancel(false, 0);
	test_cancel(true, 0);
	test_cancel(true, 0xff);
	test_cancel_multi();
	test_cancel_many();
	weft_test_close(&a);
	weft_test_close(&b);
	return 0;
}
