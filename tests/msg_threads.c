/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_THREAD_SAFE: several threads of two processes send, receive and read
 * completions on one endpoint each, and both sides connect at the same time.
 * Any thread may read the completion of another thread's operation.
 */
#include "msg_util.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 4
#define COUNT 400

struct op {
	struct fi_context
		context;  /* first member: the context of a completion */
	atomic_int state; /* 0: pending, 1: done, otherwise an error */
	size_t len;
};

struct worker {
	struct weft_test *t;
	fi_addr_t peer;
	uint64_t tag;
	pthread_t thread;
};

static const size_t sizes[] = { 8, 0, 40, 500, 3000, 9000, 40000, 100 };

static void read_one(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t got = fi_cq_read(cq, &entry, 1);
	struct op *op;

	if (got == -FI_EAGAIN)
		return;
	if (got == -FI_EAVAIL) {
		/* Another thread may have taken it meanwhile. */
		if (fi_cq_readerr(cq, &err, 0) != 1)
			return;
		op = err.op_context;
		atomic_store(&op->state, -err.err);
		return;
	}
	CHECK_EQ(got, 1);
	op = entry.op_context;
	op->len = entry.len;
	/* Completes exactly once. */
	CHECK_EQ(atomic_exchange(&op->state, 1), 0);
}

static void finish(struct worker *w, struct op *op)
{
	while (!atomic_load(&op->state)) {
		read_one(w->t->rxcq);
		if (w->t->txcq != w->t->rxcq)
			read_one(w->t->txcq);
		sched_yield();
	}
	CHECK_EQ(atomic_load(&op->state), 1);
	atomic_store(&op->state, 0);
}

/* Repeats a call while it returns -FI_EAGAIN. */
#define INSIST(w, call)                                                        \
	do {                                                                   \
		ssize_t again_;                                                \
                                                                               \
		while ((again_ = (call)) == -FI_EAGAIN)                        \
			read_one((w)->t->txcq);                                \
		CHECK_OK(again_);                                              \
	} while (0)

static void *work(void *arg)
{
	struct op *tx = calloc(1, sizeof(*tx)), *rx = calloc(1, sizeof(*rx));
	uint8_t *out = msg_alloc(40000), *in = msg_alloc(40000);
	struct worker *w = arg;

	CHECK(tx && rx);
	for (uint64_t i = 0; i < COUNT; i++) {
		size_t len = sizes[(i + w->tag) % COUNT_OF(sizes)];
		uint64_t seed = w->tag * 1000 + i;

		weft_test_fill(out, len, seed);
		INSIST(w, fi_trecv(w->t->ep, in, 40000, NULL, FI_ADDR_UNSPEC,
				   w->tag, 0, rx));
		INSIST(w,
		       fi_tsend(w->t->ep, out, len, NULL, w->peer, w->tag, tx));
		finish(w, tx);
		finish(w, rx);
		CHECK_EQ(rx->len, len);
		CHECK(weft_test_holds(in, len, seed));
	}
	free(tx);
	free(rx);
	free(out);
	free(in);
	return NULL;
}

/* Bug of libfabric's shm: both sides locked each other while connecting. */
static void side(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, void *arg)
{
	struct worker workers[THREADS];

	(void)arg;
	weft_test_sync(line);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .t = t, .peer = peer, .tag = i };
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, work,
					&workers[i]),
			 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	weft_test_sync(line);
}

/* Several threads use one endpoint to send to itself: a lock that is taken
 * twice would hang. */
static void test_self(void)
{
	struct weft_test_opts opts = {
		.threading = FI_THREAD_SAFE,
		.one_cq = true,
	};
	struct worker workers[THREADS];
	struct weft_test t;
	fi_addr_t self;

	weft_test_open(&t, &opts);
	self = weft_test_know(&t, &t);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .t = &t, .peer = self, .tag = i };
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, work,
					&workers[i]),
			 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	weft_test_close(&t);
}

int main(void)
{
	struct weft_test_opts opts = {
		.threading = FI_THREAD_SAFE,
		.one_cq = true,
	};

	weft_test_begin(60);
	weft_test_pair(&opts, side, side, NULL);
	opts.one_cq = false;
	weft_test_pair(&opts, side, side, NULL);
	test_self();
	return 0;
}
