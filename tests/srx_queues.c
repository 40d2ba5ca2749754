/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that share a receive context, but neither a completion queue nor a
 * counter: fi_endpoint(3) says that a completed receive goes to those of the
 * endpoint, whoever posted its buffer. For messages that found a buffer, and
 * for messages that had to wait for one.
 */
#include "msg_util.h"

#define EPS 3
#define ROUNDS 60

static struct fid_ep *srx;

static void bind(struct weft_test *t, void *arg)
{
	(void)arg;
	if (!srx)
		CHECK_OK(fi_srx_context(t->domain, t->info->rx_attr, &srx,
					NULL));
	CHECK_OK(fi_ep_bind(t->ep, &srx->fid, 0));
	weft_test_cntr(t, FI_RECV, FI_WAIT_NONE);
}

static void check_round(struct weft_test *t, fi_addr_t to, struct weft_test *at,
			size_t round)
{
	static uint8_t out[100000], in[100000];
	size_t len = round % 4 ? round : sizeof(out);
	struct fi_context tx, rx;
	bool late = round / EPS % 2;

	weft_test_fill(out, len, round);
	if (!late)
		POST(fi_trecv(srx, in, sizeof(in), NULL, FI_ADDR_UNSPEC, round,
			      0, &rx));
	POST(fi_tsend(t->ep, out, len, NULL, to, round, &tx));
	if (late) {
		weft_test_progress_for(1);
		POST(fi_trecv(srx, in, sizeof(in), NULL, FI_ADDR_UNSPEC, round,
			      0, &rx));
	}
	weft_test_wait_ok(at->rxcq, &rx);
	weft_test_wait_ok(t->txcq, &tx);
	CHECK(weft_test_holds(in, len, round));
}

int main(void)
{
	struct weft_test_opts opts = { .shared_rx = true, .prepare = bind };
	struct weft_test t[EPS];
	fi_addr_t to[EPS];

	weft_test_begin(30);
	for (int i = 0; i < EPS; i++) {
		weft_test_open(&t[i], &opts);
		opts.sibling = &t[0];
		to[i] = weft_test_know(&t[0], &t[i]);
	}
	for (size_t i = 0; i < ROUNDS; i++)
		check_round(&t[i % 2], to[i % EPS], &t[i % EPS], i);
	for (int i = 0; i < EPS; i++) {
		weft_test_count(t[i].cntrs[0], ROUNDS / EPS);
		msg_expect_quiet(t[i].rxcq, 1);
	}
	for (int i = EPS; i--;) {
		CHECK_OK(fi_close(&t[i].ep->fid));
		t[i].ep = NULL;
	}
	CHECK_OK(fi_close(&srx->fid));
	for (int i = EPS; i--;)
		weft_test_close(&t[i]);
	return 0;
}
