/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PROGRESS_AUTO for data: the target computes (here it waits in read(2)) and
 * makes no call of libfabric. Messages, RMA and atomics of its peer complete
 * nevertheless, also where the target itself must do the work because CMA is
 * refused. The target finds all of them when it looks. Under manual progress
 * none of these operations would end.
 */
#include "rma_util.h"

#define LEN ((size_t)1 << 20)
#define FETCHES 200
#define AT 64 /* offset of the data in the region; the sum is before it */

static const size_t sizes[] = { 0, 8, 100, 4096, 20000, LEN };

/* The target acknowledges every operation before it completes. */
static void send_all(struct weft_test *t, fi_addr_t peer, uint8_t *buf)
{
	for (uint64_t i = 0; i < COUNT_OF(sizes); i++) {
		struct iovec iov = { buf, sizes[i] };
		struct fi_context context;
		const struct fi_msg_tagged msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = peer,
			.tag = i,
			.context = &context,
		};

		weft_test_fill(buf, sizes[i], i);
		POST(fi_tsendmsg(t->ep, &msg,
				 FI_COMPLETION | FI_DELIVERY_COMPLETE));
		rma_wait(t, &context, FI_SEND | FI_TAGGED);
	}
}

static void use_memory(struct weft_test *t, fi_addr_t peer,
		       const struct rma_target *target, uint8_t *buf)
{
	for (size_t i = 1; i < COUNT_OF(sizes); i++) {
		size_t len = sizes[i] < LEN - AT ? sizes[i] : LEN - AT;

		weft_test_fill(buf, len, i);
		rma_put(t, peer, target, AT, buf, len);
		memset(buf, 0, len);
		rma_get(t, peer, target, AT, buf, len);
		CHECK(weft_test_holds(buf, len, i));
	}
}

static void fetch(struct weft_test *t, fi_addr_t peer,
		  const struct rma_target *target, uint64_t base)
{
	const uint64_t one = 1;
	struct fi_context context;
	uint64_t old;

	for (uint64_t i = 0; i < FETCHES; i++) {
		POST(fi_fetch_atomic(t->ep, &one, 1, NULL, &old, NULL, peer,
				     target->base, target->key, FI_UINT64,
				     FI_SUM, &context));
		rma_wait(t, &context, FI_ATOMIC | FI_READ);
		CHECK_EQ(old, base + i);
	}
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LEN), mark;

	(void)arg;
	for (uint64_t i = 0; i < 2; i++) {
		/* From now on the target is in read(2). */
		CHECK(weft_test_get(line, &mark, 1));
		fetch(t, peer, &target, i * FETCHES);
		send_all(t, peer, buf);
		use_memory(t, peer, &target, buf);
		weft_test_put(line, "d", 1);
	}
	weft_test_sync(line);
	free(buf);
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LEN), *into[COUNT_OF(sizes)], mark;
	struct fi_context contexts[COUNT_OF(sizes)];
	struct fid_mr *mr;
	uint64_t sum;

	(void)peer;
	(void)arg;
	memset(region, 0, LEN);
	rma_offer(t, line, region, LEN, &mr);
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < COUNT_OF(sizes); i++) {
			into[i] = msg_alloc(sizes[i]);
			POST(fi_trecv(t->ep, into[i], sizes[i], NULL,
				      FI_ADDR_UNSPEC, i, 0, &contexts[i]));
		}
		/* The first time the target has never polled, the second time
		 * it has just polled. */
		weft_test_put(line, "c", 1);
		CHECK(weft_test_get(line, &mark, 1));
		/* Everything has arrived before the first call. */
		memcpy(&sum, region, 8);
		CHECK_EQ(sum, (round + 1) * FETCHES);
		CHECK(weft_test_holds(region + AT, LEN - AT,
				      COUNT_OF(sizes) - 1));
		for (uint64_t i = 0; i < COUNT_OF(sizes); i++)
			CHECK(weft_test_holds(into[i], sizes[i], i));
		for (uint64_t i = 0; i < COUNT_OF(sizes); i++) {
			struct weft_test_comp comp;

			weft_test_wait(t->rxcq, &comp);
			CHECK_EQ(comp.ret, 1);
			CHECK_EQ(comp.entry.tag, i);
			CHECK_EQ(comp.entry.len, sizes[i]);
			free(into[i]);
		}
	}
	CHECK_OK(fi_close(&mr->fid));
	weft_test_sync(line);
	free(region);
}

/* Bug: the first message opens the device while the thread sleeps on the
 * descriptors that existed before. Nothing woke the thread for the answers of
 * the peer. */
static void first_sender(struct weft_test *t, fi_addr_t peer,
			 struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(LEN), mark;
	struct fi_context context;

	(void)arg;
	weft_test_fill(buf, LEN, 1);
	usleep(20000); /* it sleeps now; otherwise the test proves nothing */
	POST(fi_tsend(t->ep, buf, LEN, NULL, peer, 1, &context));
	CHECK(weft_test_get(line, &mark, 1));
	rma_wait(t, &context, FI_SEND | FI_TAGGED);
	weft_test_sync(line);
	free(buf);
}

static void first_receiver(struct weft_test *t, fi_addr_t peer,
			   struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(LEN);
	struct weft_test_comp comp;
	struct fi_context context;

	(void)peer;
	(void)arg;
	POST(fi_trecv(t->ep, buf, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, &context));
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(weft_test_holds(buf, LEN, 1));
	weft_test_put(line, "d", 1);
	weft_test_sync(line);
	free(buf);
}

static void run_first(struct weft_test_line *line, void *arg)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS,
					     .data_progress =
						     FI_PROGRESS_AUTO };

	(void)line;
	(void)arg;
	CHECK_OK(setenv("FI_WEFT_SHM", "0", 1));
	CHECK_OK(setenv("FI_WEFT_NET_THREAD", "1", 1));
	for (int i = 0; i < 3; i++)
		weft_test_pair(&opts, first_sender, first_receiver, NULL);
}

int main(void)
{
	struct weft_test_opts opts = {
		.caps = RMA_CAPS | FI_ATOMIC,
		.data_progress = FI_PROGRESS_AUTO,
	};

	/* The target does the work, not the initiator. */
	CHECK_OK(setenv("FI_WEFT_CMA", "0", 1));
	weft_test_begin(60);
	msg_run_apart(run_first, NULL);
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	weft_test_pair(&opts, target, initiator, NULL);
	return 0;
}
