/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of shared receive contexts whose endpoints come and go. The
 * provider is called without libfabric's loader, so that these tests run under
 * AddressSanitizer, too.
 */
#include "prov/shared.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_tagged.h>

#include "prov/param.h"
#include "prov/unloaded_test.h"

#define TAG 7
#define LARGE ((size_t)1 << 20)
#define PATIENCE_S 60

/* A domain with an AV, a sender and a shared receive context. */
struct world {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *srx;
	struct fid_ep *sender;
	struct fid_cq *sent;
};

/* An endpoint that receives by the shared context, and its own queue. */
struct user {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr;
};

static struct fid_cq *open_cq(struct world *w)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cq;

	MUST(fi_cq_open(w->domain, &attr, &cq, NULL));
	return cq;
}

static struct fid_ep *open_ep(struct world *w, struct fid_cq *cq,
			      struct fid_ep *srx)
{
	struct fid_ep *ep;

	MUST(fi_endpoint(w->domain, info, &ep, NULL));
	MUST(fi_ep_bind(ep, &w->av->fid, 0));
	MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (srx)
		MUST(fi_ep_bind(ep, &srx->fid, 0));
	MUST(fi_enable(ep));
	return ep;
}

static void world_open(struct world *w)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	MUST(fi_domain(fabric, info, &w->domain, NULL));
	MUST(fi_av_open(w->domain, &attr, &w->av, NULL));
	MUST(fi_srx_context(w->domain, info->rx_attr, &w->srx, NULL));
	w->sent = open_cq(w);
	w->sender = open_ep(w, w->sent, NULL);
}

static void world_close(struct world *w)
{
	MUST(fi_close(&w->sender->fid));
	MUST(fi_close(&w->sent->fid));
	MUST(fi_close(&w->srx->fid));
	MUST(fi_close(&w->av->fid));
	MUST(fi_close(&w->domain->fid));
}

static void user_open(struct world *w, struct user *u)
{
	char name[64];
	size_t len = sizeof(name);

	u->cq = open_cq(w);
	u->ep = open_ep(w, u->cq, w->srx);
	MUST(fi_getname(&u->ep->fid, name, &len));
	assert_int_equal(fi_av_insert(w->av, name, 1, &u->addr, 0, NULL), 1);
}

static void user_close(struct user *u)
{
	MUST(fi_close(&u->ep->fid));
	MUST(fi_close(&u->cq->fid));
}

/* The next completion is a failure of @context with @err. */
static void expect_failure(struct fid_cq *cq, const void *context, int err)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry failure = { 0 };

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &failure, 0), 1);
	assert_ptr_equal(failure.op_context, context);
	assert_int_equal(failure.err, err);
}

static void expect_nothing(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

static void post(struct world *w, void *buf, size_t len, void *context)
{
	MUST(fi_trecv(w->srx, buf, len, NULL, FI_ADDR_UNSPEC, TAG, 0, context));
}

static ssize_t peek(struct world *w, uint64_t flags, void *context)
{
	const struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC,
		.tag = TAG,
		.context = context,
	};

	return fi_trecvmsg(w->srx, &msg, flags);
}

/* Sends to @u and drives both until @seen. */
static void send_until(struct world *w, struct user *u, const void *buf,
		       size_t len, bool (*seen)(const void *arg), void *arg)
{
	time_t end = time(NULL) + PATIENCE_S;
	bool posted = false;

	do {
		struct fi_cq_tagged_entry entry;

		if (!posted)
			posted = !fi_tsend(w->sender, buf, len, NULL, u->addr,
					   TAG, NULL);
		fi_cq_read(w->sent, &entry, 1);
		assert_int_equal(fi_cq_read(u->cq, NULL, 0), -FI_EAGAIN);
		assert_true(time(NULL) < end);
	} while (!seen(arg));
}

static struct world *peeked;
static struct fi_context claim_context;
static struct user *claimer;

/* Claims a message that is there. */
static bool has_claimed(const void *arg)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry failure = { 0 };

	(void)arg;
	MUST(peek(peeked, FI_PEEK | FI_CLAIM, &claim_context));
	if (fi_cq_read(claimer->cq, &entry, 1) == 1)
		return true;
	assert_int_equal(fi_cq_readerr(claimer->cq, &failure, 0), 1);
	assert_int_equal(failure.err, FI_ENOMSG);
	return false;
}

static bool is_written(const void *arg)
{
	return *(const volatile char *)arg;
}

/* -- tests ----------------------------------------------------------------- */

/* Bug: fi_cancel() and FI_PEEK wrote to the queue of the endpoint that polled
 * last, also when both were gone. */
static void test_queue_goes(void **state)
{
	struct fi_context first, second;
	struct world w;
	struct user a, b;
	char buf[8];

	(void)state;
	world_open(&w);
	user_open(&w, &a);
	user_open(&w, &b);
	post(&w, buf, sizeof(buf), &first);
	post(&w, buf, sizeof(buf), &second);
	expect_nothing(b.cq);
	expect_nothing(a.cq); /* polled last */
	user_close(&a);
	MUST(fi_cancel(&w.srx->fid, &first));
	expect_failure(b.cq, &first, FI_ECANCELED);
	MUST(peek(&w, FI_PEEK, &first));
	expect_failure(b.cq, &first, FI_ENOMSG);
	/* Nobody is left to be told. */
	user_close(&b);
	MUST(fi_cancel(&w.srx->fid, &second));
	assert_int_equal(peek(&w, FI_PEEK, &first), -FI_ENOCQ);
	/* The next one is. */
	user_open(&w, &a);
	post(&w, buf, sizeof(buf), &first);
	MUST(fi_cancel(&w.srx->fid, &first));
	expect_failure(a.cq, &first, FI_ECANCELED);
	user_close(&a);
	world_close(&w);
}

/* Bug: swallowed, because no endpoint had polled yet. */
static void test_cancel_before_progress(void **state)
{
	struct fi_context context;
	struct world w;
	struct user a;
	char buf[8];

	(void)state;
	world_open(&w);
	user_open(&w, &a);
	post(&w, buf, sizeof(buf), &context);
	MUST(fi_cancel(&w.srx->fid, &context));
	expect_failure(a.cq, &context, FI_ECANCELED);
	user_close(&a);
	world_close(&w);
}

/* Bug: a claimed message outlived the endpoint that it came to, and receiving
 * it used the endpoint's queue. */
static void test_claimed_goes(void **state)
{
	struct world w;
	struct user a, b;

	(void)state;
	world_open(&w);
	user_open(&w, &b);
	user_open(&w, &a);
	peeked = &w;
	claimer = &a;
	send_until(&w, &a, "claimed", 8, has_claimed, NULL);
	user_close(&a);
	assert_int_equal(peek(&w, FI_CLAIM, &claim_context), -FI_EINVAL);
	user_close(&b);
	world_close(&w);
}

/* Bug: a receive that was half filled when its endpoint closed was never heard
 * of again. */
static void half_filled(void)
{
	char *from = malloc(LARGE), *to = calloc(1, LARGE);
	struct fi_context context, other;
	struct world w;
	struct user a, b;

	assert_true(from && to);
	memset(from, 1, LARGE);
	world_open(&w);
	user_open(&w, &b);
	user_open(&w, &a);
	post(&w, to, LARGE, &context);
	send_until(&w, &a, from, LARGE, is_written, to);
	MUST(fi_close(&a.ep->fid));
	assert_int_equal(to[LARGE - 1], 0);
	expect_failure(a.cq, &context, FI_ECANCELED);
	MUST(fi_close(&a.cq->fid));
	/* The context serves others as before. */
	post(&w, to, LARGE, &other);
	MUST(fi_cancel(&w.srx->fid, &other));
	expect_failure(b.cq, &other, FI_ECANCELED);
	user_close(&b);
	world_close(&w);
	free(from);
	free(to);
}

static void test_half_filled(void **state)
{
	(void)state;
	/* In many records, more than the ring holds. */
	wf_prov_param.eager_max = 2 * LARGE;
	wf_prov_param.cma_min = 2 * LARGE;
	half_filled();
}

static void test_half_filled_by_packets(void **state)
{
	(void)state;
	wf_prov_param.shm = false;
	half_filled();
	wf_prov_param.shm = true;
}

static int set_up(void **state)
{
	(void)state;
	return unloaded_open(FI_MSG | FI_TAGGED, FI_SHARED_CONTEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_goes),
		cmocka_unit_test(test_cancel_before_progress),
		cmocka_unit_test(test_claimed_goes),
		cmocka_unit_test(test_half_filled),
		cmocka_unit_test(test_half_filled_by_packets),
	};

	return cmocka_run_group_tests(tests, set_up, unloaded_close);
}
