/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll sets: fi_poll() drives the queues and counters in the set. It reports
 * the completion queues that are not empty and the counters that have changed,
 * by the context they were opened with, and at most as many as the caller has
 * room for.
 */
#include "msg_util.h"

static const char cq_names[2][4] = { "tx", "rx" };
static const char cntr_name[] = "cntr";

struct world {
	struct weft_test t;
	struct fid_cq *cqs[2];
	struct fid_cntr *cntr;
	struct fid_poll *set;
	fi_addr_t self;
};

static void bind(struct weft_test *t, void *arg)
{
	static const uint64_t flags[2] = { FI_TRANSMIT, FI_RECV };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct world *w = arg;

	for (int i = 0; i < 2; i++) {
		CHECK_OK(fi_cq_open(t->domain, &attr, &w->cqs[i],
				    (void *)(uintptr_t)cq_names[i]));
		CHECK_OK(fi_ep_bind(t->ep, &w->cqs[i]->fid, flags[i]));
	}
	CHECK_OK(fi_cntr_open(t->domain, &cntr_attr, &w->cntr,
			      (void *)(uintptr_t)cntr_name));
	CHECK_OK(fi_ep_bind(t->ep, &w->cntr->fid, FI_RECV));
}

static void world_open(struct world *w, enum fi_threading threading)
{
	struct weft_test_opts opts = {
		.threading = threading,
		.prepare = bind,
		.prepare_arg = w,
		.no_txcq = true,
		.no_rxcq = true,
	};
	struct fi_poll_attr attr = { 0 };

	weft_test_open(&w->t, &opts);
	w->self = weft_test_know(&w->t, &w->t);
	CHECK_OK(fi_poll_open(w->t.domain, &attr, &w->set));
}

static void world_close(struct world *w)
{
	CHECK_OK(fi_close(&w->set->fid));
	CHECK_OK(fi_close(&w->t.ep->fid));
	w->t.ep = NULL;
	for (int i = 0; i < 2; i++)
		CHECK_OK(fi_close(&w->cqs[i]->fid));
	CHECK_OK(fi_close(&w->cntr->fid));
	weft_test_close(&w->t);
}

/* Polls until fi_poll() has reported all of @want: two bits for the queues, one
 * for the counter. "False positives" are allowed; an object that has events is
 * always reported. */
static void poll_until(struct world *w, unsigned int want)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	void *contexts[4];
	unsigned int got;

	do {
		int count = fi_poll(w->set, contexts, 4);

		CHECK(weft_test_ms() < end);
		CHECK(count >= 0 && count <= 3);
		got = 0;
		for (int i = 0; i < count; i++) {
			unsigned int bit = contexts[i] == cq_names[0] ? 1 :
					   contexts[i] == cq_names[1] ? 2 :
					   contexts[i] == cntr_name   ? 4 :
									0;

			CHECK(bit && !(got & bit));
			got |= bit;
		}
		/* A counter is reported once for each change. */
		want &= ~(got & 4);
	} while ((got & want) != want);
}

static void take(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	CHECK_EQ(fi_cq_read(cq, &entry, 1), 1);
}

static void test_set(struct world *w)
{
	uint64_t word = 1;
	void *contexts[4];

	CHECK_EQ(fi_poll(w->set, contexts, 4), 0); /* the set is empty */
	for (int i = 0; i < 2; i++)
		CHECK_OK(fi_poll_add(w->set, &w->cqs[i]->fid, 0));
	CHECK_OK(fi_poll_add(w->set, &w->cntr->fid, 0));
	CHECK_EQ(fi_poll(w->set, contexts, 4), 0);
	/* Only fi_poll() drives these operations. */
	POST(fi_recv(w->t.ep, &word, 8, NULL, FI_ADDR_UNSPEC, NULL));
	POST(fi_send(w->t.ep, &word, 8, NULL, w->self, NULL));
	poll_until(w, 1 | 2 | 4);
	/* It reports at most as many as there is room for. */
	CHECK_EQ(fi_poll(w->set, contexts, 1), 1);
	/* Queues are reported as long as they are not empty. */
	poll_until(w, 1 | 2);
	take(w->cqs[1]);
	poll_until(w, 1);
	take(w->cqs[0]);
	for (int i = 0; fi_poll(w->set, contexts, 4); i++)
		CHECK(i < 3);
	/* The counter is reported again after another change. */
	POST(fi_inject(w->t.ep, &word, 8, w->self));
	POST(fi_recv(w->t.ep, &word, 8, NULL, FI_ADDR_UNSPEC, NULL));
	poll_until(w, 2 | 4);
	CHECK_EQ(fi_cntr_read(w->cntr), 2);
	take(w->cqs[1]);
}

/* An object that was removed from the set is not polled. */
static void test_del(struct world *w)
{
	uint64_t word = 1;
	void *contexts[4];

	CHECK_OK(fi_poll_del(w->set, &w->cqs[1]->fid, 0));
	CHECK_OK(fi_poll_del(w->set, &w->cntr->fid, 0));
	POST(fi_recv(w->t.ep, &word, 8, NULL, FI_ADDR_UNSPEC, NULL));
	POST(fi_send(w->t.ep, &word, 8, NULL, w->self, NULL));
	poll_until(w, 1);
	while (fi_cntr_read(w->cntr) < 3)
		;
	CHECK_EQ(fi_poll(w->set, contexts, 4), 1);
	take(w->cqs[0]);
	take(w->cqs[1]);
	/* Add it again. */
	CHECK_OK(fi_poll_add(w->set, &w->cqs[1]->fid, 0));
	POST(fi_recv(w->t.ep, &word, 8, NULL, FI_ADDR_UNSPEC, NULL));
	POST(fi_inject(w->t.ep, &word, 8, w->self));
	poll_until(w, 2);
	take(w->cqs[1]);
	for (int i = 0; i < 2; i++)
		CHECK_OK(fi_poll_del(w->set, &w->cqs[i]->fid, 0));
	/* A poll set accepts only queues and counters. */
	CHECK(fi_poll_add(w->set, &w->t.av->fid, 0) < 0);
	CHECK(fi_poll_add(w->set, &w->t.ep->fid, 0) < 0);
}

int main(void)
{
	static const enum fi_threading models[] = { FI_THREAD_DOMAIN,
						    FI_THREAD_SAFE };

	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(models); i++) {
		struct world w = { 0 };

		world_open(&w, models[i]);
		test_set(&w);
		test_del(&w);
		world_close(&w);
	}
	return 0;
}
