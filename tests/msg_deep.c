/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many messages that wait for their receives must not delay the message that is
 * received first. Bug of libfabric's shm: unexpected messages used up the
 * sender's slots, and the sender stalled.
 */
#include "msg_util.h"

#define LAST 100000

struct plan {
	uint64_t count;
	size_t len;
	uint64_t flags;
};

static const struct plan plans[] = {
	{ 200, 5000, 0 },
	{ 100, 200000, 0 },
	{ 200, 100, FI_DELIVERY_COMPLETE },
};

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	const struct plan *plan = arg;
	uint8_t *buf = msg_alloc(plan->len);
	struct iovec iov = { buf, plan->len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = peer,
	};

	weft_test_fill(buf, plan->len, 1);
	for (msg.tag = 0; msg.tag < plan->count; msg.tag++)
		POST(fi_tsendmsg(t->ep, &msg, plan->flags));
	CHECK_OK(weft_test_tsend(t, buf, 8, peer, LAST, NULL));
	for (uint64_t i = 0; i <= plan->count; i++)
		weft_test_wait_ok(t->txcq, NULL);
	weft_test_sync(line);
	free(buf);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	const struct plan *plan = arg;
	uint8_t *buf = msg_alloc(plan->len);

	(void)peer;
	CHECK_OK(weft_test_trecv(t, buf, 8, LAST, 0, NULL));
	weft_test_wait_ok(t->rxcq, NULL);
	for (uint64_t tag = plan->count; tag-- > 0;) {
		CHECK_OK(weft_test_trecv(t, buf, plan->len, tag, 0, NULL));
		weft_test_wait_ok(t->rxcq, NULL);
		CHECK(weft_test_holds(buf, plan->len, 1));
	}
	weft_test_sync(line);
	free(buf);
}

int main(void)
{
	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(plans); i++)
		weft_test_pair(NULL, sender, receiver, (void *)&plans[i]);
	return 0;
}
