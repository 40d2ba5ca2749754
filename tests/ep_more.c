/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MORE on every call that takes it: operations that were held back are sent
 * with the next one, complete, and keep their order, whatever comes in between.
 */
#include "amo_util.h"

#define BATCHES 50
#define BATCH 13
#define WORDS (BATCH + 1)

/* -- one batch of each kind ------------------------------------------------ */

static uint64_t more(int i)
{
	return FI_COMPLETION | (i < BATCH - 1 ? FI_MORE : 0);
}

static void wait_all(struct weft_test *t, int count)
{
	while (count--)
		weft_test_wait_ok(t->txcq, NULL);
}

static void send_batch(struct weft_test *t, fi_addr_t peer, uint64_t first)
{
	uint64_t numbers[BATCH];

	for (int i = 0; i < BATCH; i++) {
		struct iovec iov = { &numbers[i], 8 };
		struct fi_msg_tagged tagged = {
			.msg_iov = &iov, .iov_count = 1, .addr = peer, .tag = 1
		};
		struct fi_msg msg = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = peer };

		numbers[i] = first + (uint64_t)i;
		if (first % 2)
			POST(fi_sendmsg(t->ep, &msg, more(i)));
		else
			POST(fi_tsendmsg(t->ep, &tagged, more(i)));
	}
	wait_all(t, BATCH);
}

static void write_batch(struct weft_test *t, fi_addr_t peer,
			const struct rma_target *target, uint64_t first)
{
	uint64_t numbers[WORDS];

	for (int i = 0; i < BATCH; i++) {
		uint64_t at = target->base + (uint64_t)i * 8;
		struct iovec iov = { &numbers[i], 8 };
		struct fi_rma_iov rma = { at, 8, target->key };
		struct fi_msg_rma msg = { .msg_iov = &iov,
					  .iov_count = 1,
					  .addr = peer,
					  .rma_iov = &rma,
					  .rma_iov_count = 1 };

		numbers[i] = first + (uint64_t)i;
		POST(fi_writemsg(t->ep, &msg, more(i) | FI_DELIVERY_COMPLETE));
	}
	wait_all(t, BATCH);
	memset(numbers, 0, sizeof(numbers));
	for (int i = 0; i < BATCH; i++) {
		uint64_t at = target->base + (uint64_t)i * 8;
		struct iovec iov = { &numbers[i], 8 };
		struct fi_rma_iov rma = { at, 8, target->key };
		struct fi_msg_rma msg = { .msg_iov = &iov,
					  .iov_count = 1,
					  .addr = peer,
					  .rma_iov = &rma,
					  .rma_iov_count = 1 };

		POST(fi_readmsg(t->ep, &msg, more(i)));
	}
	wait_all(t, BATCH);
	for (int i = 0; i < BATCH; i++)
		CHECK_EQ(numbers[i], first + (uint64_t)i);
}

static void atomic_batch(struct weft_test *t, fi_addr_t peer,
			 const struct rma_target *target)
{
	static const uint64_t one = 1;
	uint64_t addr = target->base + BATCH * 8, before, after;
	struct fi_ioc ioc = { (void *)(uintptr_t)&one, 1 };
	struct fi_rma_ioc rma = { addr, 1, target->key };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = peer,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };
	struct fi_ioc result = { &before, 1 };

	rma_get(t, peer, target, BATCH * 8, &before, 8);
	after = before;
	for (int i = 0; i < BATCH; i++)
		POST(fi_atomicmsg(t->ep, &msg, more(i) | FI_DELIVERY_COMPLETE));
	wait_all(t, BATCH);
	result.addr = &after;
	POST(fi_fetch_atomicmsg(t->ep, &msg, &result, NULL, 1, FI_COMPLETION));
	wait_all(t, 1);
	CHECK_EQ(after, before + BATCH);
}

/* -- sides ----------------------------------------------------------------- */

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);

	(void)arg;
	for (uint64_t i = 0; i < BATCHES; i++) {
		send_batch(t, peer, i * BATCH);
		write_batch(t, peer, &target, i);
		atomic_batch(t, peer, &target);
	}
	weft_test_sync(line);
}

/* Receives with FI_MORE as well. */
static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	static uint64_t words[WORDS];
	uint64_t numbers[BATCH];
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	rma_offer(t, line, words, sizeof(words), &mr);
	for (uint64_t k = 0; k < BATCHES; k++) {
		for (int i = 0; i < BATCH; i++) {
			struct iovec iov = { &numbers[i], 8 };
			struct fi_msg_tagged tagged = { .msg_iov = &iov,
							.iov_count = 1,
							.addr = FI_ADDR_UNSPEC,
							.tag = 1 };
			struct fi_msg msg = { .msg_iov = &iov,
					      .iov_count = 1,
					      .addr = FI_ADDR_UNSPEC };

			if (k * BATCH % 2)
				POST(fi_recvmsg(t->ep, &msg, more(i)));
			else
				POST(fi_trecvmsg(t->ep, &tagged, more(i)));
		}
		for (int i = 0; i < BATCH; i++)
			weft_test_wait_ok(t->rxcq, NULL);
		for (int i = 0; i < BATCH; i++)
			CHECK_EQ(numbers[i], k * BATCH + (uint64_t)i);
	}
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
}

int main(void)
{
	struct weft_test_opts opts = { .caps = AMO_CAPS };

	weft_test_begin(60);
	weft_test_pair(&opts, receiver, sender, NULL);
	opts.threading = FI_THREAD_SAFE;
	weft_test_pair(&opts, receiver, sender, NULL);
	return 0;
}
