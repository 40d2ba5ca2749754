/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of an endpoint: each kind of operation counts once, in the counter
 * that was bound for it, whether or not it generates a completion. Failures
 * count as errors. One counter may serve several kinds of operations and
 * several endpoints.
 */
#include "amo_util.h"

#define CAPS (AMO_CAPS | FI_RMA_EVENT)
#define KINDS 6

static const uint64_t flags_of[KINDS] = {
	FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ,
};

enum { SENT, RECEIVED, WRITTEN, WAS_READ, REMOTE_WRITTEN, REMOTE_READ };

static void bind_all(struct weft_test *t, void *arg)
{
	(void)arg;
	for (int i = 0; i < KINDS; i++)
		weft_test_cntr(t, flags_of[i], FI_WAIT_UNSPEC);
}

static void expect(struct weft_test *t, const uint64_t *values)
{
	for (int i = 0; i < KINDS; i++)
		weft_test_count(t->cntrs[i], values[i]);
}

/* -- each kind in its counter ---------------------------------------------- */

static void send_all_ways(struct weft_test *t, fi_addr_t peer)
{
	static uint8_t large[100000];
	struct iovec iov = { large, 5 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = peer,
		.tag = 1,
	};

	POST(fi_send(t->ep, large, 10, NULL, peer, NULL));
	POST(fi_inject(t->ep, large, 10, peer));
	POST(fi_tsend(t->ep, large, 10, NULL, peer, 1, NULL));
	POST(fi_tsend(t->ep, large, sizeof(large), NULL, peer, 1, NULL));
	POST(fi_tinject(t->ep, large, 10, peer, 1));
	POST(fi_tinjectdata(t->ep, large, 10, 5, peer, 1));
	/* No completion, but counted. */
	POST(fi_tsendmsg(t->ep, &msg, FI_INJECT));
	POST(fi_tsendmsg(t->ep, &msg, FI_DELIVERY_COMPLETE));
}

#define SENDS 8
#define PLAIN_SENDS 2

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint64_t words[4] = { 1, 2, 3, 4 };
	uint64_t want[KINDS] = { 0 };

	(void)arg;
	send_all_ways(t, peer);
	want[SENT] = SENDS;
	expect(t, want);
	POST(fi_write(t->ep, words, 8, NULL, peer, target.base, target.key,
		      NULL));
	POST(fi_inject_write(t->ep, words, 8, peer, target.base, target.key));
	POST(fi_writedata(t->ep, words, 8, NULL, 1, peer, target.base,
			  target.key, NULL));
	POST(fi_atomic(t->ep, words, 1, NULL, peer, target.base, target.key,
		       FI_UINT64, FI_SUM, NULL));
	POST(fi_inject_atomic(t->ep, words, 1, peer, target.base, target.key,
			      FI_UINT64, FI_SUM));
	want[WRITTEN] = 5;
	expect(t, want);
	POST(fi_read(t->ep, words, 8, NULL, peer, target.base, target.key,
		     NULL));
	POST(fi_fetch_atomic(t->ep, words, 1, NULL, &words[1], NULL, peer,
			     target.base, target.key, FI_UINT64, FI_SUM, NULL));
	POST(fi_compare_atomic(t->ep, words, 1, NULL, &words[2], NULL,
			       &words[3], NULL, peer, target.base, target.key,
			       FI_UINT64, FI_CSWAP, NULL));
	want[WAS_READ] = 3;
	expect(t, want);
	weft_test_sync(line);
	/* Selective completion, and none selected. */
	msg_expect_quiet(t->txcq, 1);
	/* Errors are reported in the CQ and counted separately. */
	POST(fi_write(t->ep, words, 8, NULL, peer, target.base, ~target.key,
		      words));
	weft_test_wait_err(t->txcq, words, FI_EKEYREJECTED);
	CHECK_EQ(fi_cntr_readerr(t->cntrs[WRITTEN]), 1);
	CHECK_EQ(fi_cntr_read(t->cntrs[WRITTEN]), 5);
	CHECK_EQ(fi_cntr_readerr(t->cntrs[WAS_READ]), 0);
	POST(fi_fetch_atomic(t->ep, words, 1, NULL, &words[1], NULL, peer,
			     target.base, ~target.key, FI_UINT64, FI_SUM,
			     words));
	weft_test_wait_err(t->txcq, words, FI_EKEYREJECTED);
	CHECK_EQ(fi_cntr_readerr(t->cntrs[WAS_READ]), 1);
	weft_test_sync(line);
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	static uint8_t in[SENDS][100000];
	static uint64_t words[4];
	struct fid_mr *mr;
	uint64_t want[KINDS] = {
		[RECEIVED] = SENDS, [REMOTE_WRITTEN] = 5, [REMOTE_READ] = 3
	};
	struct weft_test_comp comp;

	(void)peer;
	(void)arg;
	for (int i = 0; i < SENDS; i++) {
		if (i < PLAIN_SENDS)
			CHECK_OK(weft_test_recv(t, in[i], 10, NULL));
		else
			CHECK_OK(weft_test_trecv(t, in[i], sizeof(in[i]), 1, 0,
						 NULL));
	}
	rma_offer(t, line, words, sizeof(words), &mr);
	expect(t, want);
	weft_test_sync(line);
	/* A refused access is not counted as an access. */
	weft_test_sync(line);
	expect(t, want);
	/* CQ data of a write is reported, even if completions are selective. */
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.entry.flags,
		 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	/* A cancelled receive is an error. */
	CHECK_OK(weft_test_trecv(t, in[0], 10, 7, 0, in));
	CHECK_OK(fi_cancel(&t->ep->fid, in));
	weft_test_wait_err(t->rxcq, in, FI_ECANCELED);
	CHECK_EQ(fi_cntr_readerr(t->cntrs[RECEIVED]), 1);
	CHECK_EQ(fi_cntr_read(t->cntrs[RECEIVED]), SENDS);
	CHECK_OK(fi_close(&mr->fid));
}

/* -- several kinds and endpoints on one ------------------------------------ */

static void bind_one(struct weft_test *t, void *arg)
{
	struct fid_cntr **cntr = arg;
	const uint64_t all = FI_SEND | FI_RECV | FI_WRITE | FI_READ;

	if (!*cntr)
		*cntr = weft_test_cntr(t, all, FI_WAIT_UNSPEC);
	else
		CHECK_OK(fi_ep_bind(t->ep, &(*cntr)->fid, all));
}

static void test_one_for_all(enum fi_threading threading)
{
	struct fid_cntr *cntr = NULL;
	struct weft_test_opts opts = {
		.caps = CAPS,
		.threading = threading,
		.prepare = bind_one,
		.prepare_arg = &cntr,
	};
	struct weft_test t[3];
	struct rma_target target;
	struct fid_mr *mr;
	uint64_t word = 0, count = 0;
	fi_addr_t to[3];

	weft_test_open(&t[0], &opts);
	opts.sibling = &t[0];
	for (int i = 1; i < 3; i++) {
		opts.same_cqs = i == 2;
		weft_test_open(&t[i], &opts);
	}
	target = rma_expose(&t[0], &word, 8, RMA_ACCESS, 1, &mr);
	for (int i = 0; i < 3; i++)
		to[i] = weft_test_know(&t[0], &t[i]); /* one AV */
	for (int i = 0; i < 30; i++) {
		struct weft_test *from = &t[i % 3];
		uint64_t in;

		POST(fi_recv(t[i / 3 % 3].ep, &in, 8, NULL, FI_ADDR_UNSPEC,
			     NULL));
		POST(fi_inject(from->ep, &word, 8, to[i / 3 % 3]));
		POST(fi_write(from->ep, &word, 8, NULL, to[i % 3], target.base,
			      target.key, NULL));
		count += 3;
		weft_test_count(cntr, count);
	}
	/* The counter stays until the last endpoint is closed. */
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBUSY);
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t[2]);
	weft_test_close(&t[1]);
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBUSY);
	weft_test_close(&t[0]);
}

/* -- binding --------------------------------------------------------------- */

static void test_bind(void)
{
	struct weft_test_opts opts = { .caps = CAPS, .not_enabled = true };
	struct weft_test t;

	weft_test_open(&t, &opts);
	weft_test_cntr(&t, FI_SEND, FI_WAIT_NONE);
	weft_test_cntr(&t, FI_RECV | FI_WRITE, FI_WAIT_NONE);
	/* Only one counter for each kind of operation. */
	weft_test_cntr(&t, 0, FI_WAIT_NONE);
	CHECK(fi_ep_bind(t.ep, &t.cntrs[2]->fid, FI_SEND) < 0);
	CHECK(fi_ep_bind(t.ep, &t.cntrs[2]->fid, FI_READ | FI_WRITE) < 0);
	CHECK_OK(fi_ep_bind(t.ep, &t.cntrs[2]->fid, FI_READ));
	/* Flags that are not events. */
	weft_test_cntr(&t, 0, FI_WAIT_NONE);
	CHECK(fi_ep_bind(t.ep, &t.cntrs[3]->fid, FI_INJECT) < 0);
	CHECK_OK(fi_enable(t.ep));
	CHECK(fi_ep_bind(t.ep, &t.cntrs[3]->fid, FI_REMOTE_READ) < 0);
	CHECK_OK(fi_close(&t.cntrs[3]->fid));
	t.cntrs[3] = NULL;
	weft_test_close(&t);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = {
		.caps = CAPS,
		.prepare = bind_all,
		.tx_bind = FI_SELECTIVE_COMPLETION,
		.rx_bind = FI_SELECTIVE_COMPLETION,
	};

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	weft_test_pair(&opts, target, initiator, NULL);
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	test_one_for_all(FI_THREAD_DOMAIN);
	test_one_for_all(FI_THREAD_SAFE);
	test_bind();
	return 0;
}
