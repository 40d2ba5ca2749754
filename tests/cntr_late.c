/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters and a shared transmit context are bound to an endpoint that is
 * already enabled, as Sandia OpenSHMEM does. Operations from then on are
 * counted, and reading the counter or waiting on it drives the endpoint.
 * Queues, and counters of receives and of remote accesses, cannot be bound
 * late, because peers already know about them.
 */
#include "amo_util.h"

#define ROUNDS 60
#define LARGE 100000
#define AT 64 /* offset of the data; sum and end mark are before it */

enum { WRITES, READS, SENDS };

static size_t size_of(uint64_t round)
{
	return round % 10 == 9 ? LARGE : (size_t)round * 40;
}

/* Drives only the endpoints of the counter. */
static void count(struct fid_cntr *cntr, uint64_t value, bool wait)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	if (wait)
		CHECK_OK(fi_cntr_wait(cntr, value, WEFT_TEST_PATIENCE_MS));
	while (fi_cntr_read(cntr) < value) {
		if (weft_test_ms() >= end)
			FAIL("%llu instead of %llu",
			     (unsigned long long)fi_cntr_read(cntr),
			     (unsigned long long)value);
	}
	CHECK_EQ(fi_cntr_read(cntr), value);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);
	uint64_t one = 1, old;
	struct fid_stx *stx;

	(void)arg;
	/* Connects; this write is not counted yet. */
	POST(fi_inject_write(t->ep, &one, 8, peer, target.base + 16,
			     target.key));
	CHECK_OK(fi_stx_context(t->domain, NULL, &stx, NULL));
	CHECK_OK(fi_ep_bind(t->ep, &stx->fid, 0));
	CHECK(fi_ep_bind(t->ep, &stx->fid, 0) < 0);
	/* The endpoint keeps the context; you may close it first. */
	CHECK_OK(fi_close(&stx->fid));
	weft_test_cntr(t, FI_WRITE, FI_WAIT_UNSPEC);
	weft_test_cntr(t, FI_READ, FI_WAIT_UNSPEC);
	weft_test_cntr(t, FI_SEND, FI_WAIT_UNSPEC);
	CHECK(fi_ep_bind(t->ep, &t->cntrs[READS]->fid, FI_WRITE) < 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		size_t len = size_of(i);

		weft_test_fill(out, len, i);
		POST(fi_write(t->ep, out, len, NULL, peer, target.base + AT,
			      target.key, NULL));
		count(t->cntrs[WRITES], 2 * i + 1, i % 2);
		POST(fi_inject_write(t->ep, &i, 8, peer, target.base + 8,
				     target.key));
		count(t->cntrs[WRITES], 2 * i + 2, i % 3);
		memset(in, 0, len);
		POST(fi_read(t->ep, in, len, NULL, peer, target.base + AT,
			     target.key, NULL));
		count(t->cntrs[READS], 2 * i + 1, i % 2);
		CHECK(weft_test_holds(in, len, i));
		POST(fi_fetch_atomic(t->ep, &one, 1, NULL, &old, NULL, peer,
				     target.base, target.key, FI_UINT64, FI_SUM,
				     NULL));
		count(t->cntrs[READS], 2 * i + 2, i % 3);
		CHECK_EQ(old, i);
		/* The short path does not look for a counter. It must not be
		 * used from here on. */
		POST(fi_tinject(t->ep, &i, 8, peer, 1));
		count(t->cntrs[SENDS], i + 1, i % 2);
	}
	weft_test_sync(line);
	free(out);
	free(in);
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGE + AT);
	struct fid_mr *mr;
	uint64_t word;

	(void)peer;
	(void)arg;
	memset(region, 0, LARGE + AT);
	rma_offer(t, line, region, LARGE + AT, &mr);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct fi_context context;
		struct weft_test_comp comp;

		POST(fi_trecv(t->ep, &word, 8, NULL, FI_ADDR_UNSPEC, 1, 0,
			      &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(word, i);
	}
	weft_test_sync(line);
	memcpy(&word, region, 8);
	CHECK_EQ(word, ROUNDS);
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

/* A counter that memory is bound to is notified by all endpoints. If it is then
 * also bound to one of them, it must not be in the endpoint's list twice. */
static void test_memory_first(void)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS | FI_RMA_EVENT,
					     .one_cq = true };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	uint64_t region[2] = { 0 }, word = 7;
	struct fid_cntr *cntr;
	struct rma_target target;
	struct weft_test t;
	struct fid_mr *mr;
	fi_addr_t self;

	weft_test_open(&t, &opts);
	self = weft_test_know(&t, &t);
	target = rma_expose(&t, region, sizeof(region), RMA_ACCESS, 5, &mr);
	CHECK_OK(fi_cntr_open(t.domain, &attr, &cntr, NULL));
	CHECK_OK(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ));
	CHECK_OK(fi_ep_bind(t.ep, &cntr->fid, FI_WRITE));
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBUSY);
	POST(fi_inject_write(t.ep, &word, 8, self, target.base, target.key));
	count(cntr, 1, true);
	CHECK_EQ(region[0], 7);
	CHECK_OK(fi_close(&mr->fid));
	CHECK_OK(fi_close(&t.ep->fid));
	t.ep = NULL;
	/* The counter refers to no closed endpoint. */
	CHECK_EQ(fi_cntr_read(cntr), 1);
	CHECK_OK(fi_close(&cntr->fid));
	weft_test_close(&t);
}

static void test_refused(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	const struct weft_test_opts opts = { .caps = RMA_CAPS | FI_RMA_EVENT };
	struct fid_cntr *cntr;
	struct weft_test t;

	weft_test_open(&t, &opts);
	CHECK_OK(fi_cntr_open(t.domain, &attr, &cntr, NULL));
	CHECK_EQ(fi_ep_bind(t.ep, &cntr->fid, FI_RECV), -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(t.ep, &cntr->fid, FI_WRITE | FI_REMOTE_WRITE),
		 -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(t.ep, &cntr->fid, 0), -FI_EBADFLAGS);
	CHECK_EQ(fi_ep_bind(t.ep, &t.av->fid, 0), -FI_EOPBADSTATE);
	/* None of these was bound. */
	CHECK_OK(fi_close(&cntr->fid));
	weft_test_close(&t);
}

int main(void)
{
	struct weft_test_opts opts = {
		.caps = RMA_CAPS | FI_ATOMIC,
		.tx_bind = FI_SELECTIVE_COMPLETION,
		.one_cq = true,
	};

	/* Reads need the target, so both ends must make progress. */
	CHECK_OK(setenv("FI_WEFT_CMA", "0", 1));
	weft_test_begin(60);
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	weft_test_pair(&opts, target, initiator, NULL);
	opts.data_progress = FI_PROGRESS_AUTO;
	weft_test_pair(&opts, target, initiator, NULL);
	test_memory_first();
	test_refused();
	return 0;
}
