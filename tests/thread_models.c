/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each threading model with everything it permits: threads use messages, RMA
 * and atomics at the same time, on one endpoint (FI_THREAD_SAFE), on an
 * endpoint each with one CQ for all (FI_THREAD_SAFE), with posting and polling
 * in different threads (FI_THREAD_FID), and with an endpoint and a CQ each in a
 * shared domain and AV (the others).
 *
 * In each model one more thread uses objects that only FI_THREAD_DOMAIN has the
 * application serialize with endpoints: it inserts and removes addresses,
 * registers memory, and reads a counter bound to memory, which makes progress.
 * Bug: under FI_THREAD_COMPLETION all of these entered the endpoints of other
 * threads without a lock.
 */
#include "amo_util.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 4
#define ROUNDS 150
#define LARGE 20000

enum shape { ONE_EP, ONE_CQ, OWN_CQ, POLLED };

/* The context of a completion. */
struct op {
	struct fi_context context; /* must be first */
	atomic_int state;	   /* 0: pending, 1: done, otherwise an error */
};

/* This struct holds what the threads share. */
struct world {
	struct weft_test t[THREADS]; /* ONE_EP: only the first */
	fi_addr_t to[THREADS];
	enum shape shape;
	struct rma_target word; /* all threads add to it */
	struct rma_target memory;
	atomic_bool over;
};

static _Alignas(64) uint64_t word;
static uint8_t memory[THREADS][LARGE];

struct worker {
	struct world *w;
	int me;
	pthread_t thread;
	pthread_t poller;
};

static struct weft_test *own(struct worker *k)
{
	return &k->w->t[k->w->shape == ONE_EP ? 0 : k->me];
}

/* -- completions ----------------------------------------------------------- */

static void read_one(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t got = fi_cq_read(cq, &entry, 1);
	struct op *op;

	if (got == -FI_EAGAIN) {
		sched_yield();
		return;
	}
	if (got == -FI_EAVAIL) {
		if (fi_cq_readerr(cq, &err, 0) == 1)
			FAIL("%s", fi_strerror(err.err));
		return; /* another thread has taken it */
	}
	CHECK_EQ(got, 1);
	op = entry.op_context;
	CHECK_EQ(atomic_exchange(&op->state, 1), 0);
}

static void drive(struct worker *k)
{
	struct weft_test *t = own(k);

	if (k->w->shape == POLLED) {
		sched_yield();
		return;
	}
	read_one(t->txcq);
	if (t->rxcq != t->txcq)
		read_one(t->rxcq);
}

static void finish(struct worker *k, struct op *op)
{
	while (!atomic_load(&op->state))
		drive(k);
}

#define POST_BY(k, call)                                                       \
	do {                                                                   \
		ssize_t ret_;                                                  \
                                                                               \
		while ((ret_ = (call)) == -FI_EAGAIN)                          \
			drive(k);                                              \
		CHECK_OK(ret_);                                                \
	} while (0)

/* -- one thread ------------------------------------------------------------ */

/* A message around the circle of threads. */
static void exchange(struct worker *k, uint8_t *out, uint8_t *in, uint64_t i)
{
	const uint64_t next = (uint64_t)(k->me + 1) % THREADS;
	const uint64_t before = (uint64_t)(k->me + THREADS - 1) % THREADS;
	struct world *w = k->w;
	size_t len = i * 131 % LARGE;
	struct op tx = { .state = 0 }, rx = { .state = 0 };
	fi_addr_t to = w->to[w->shape == ONE_EP ? 0 : next];

	weft_test_fill(out, len, i * THREADS + (uint64_t)k->me);
	POST_BY(k, fi_trecv(own(k)->ep, in, LARGE, NULL, FI_ADDR_UNSPEC,
			    i * THREADS + (uint64_t)k->me, 0, &rx));
	POST_BY(k, fi_tsend(own(k)->ep, out, len, NULL, to, i * THREADS + next,
			    &tx));
	finish(k, &tx);
	finish(k, &rx);
	CHECK(weft_test_holds(in, len, i * THREADS + before));
}

/* Each thread's part of the memory, and one word for all. */
static void reach(struct worker *k, uint8_t *out, uint8_t *in, uint64_t i)
{
	struct world *w = k->w;
	uint64_t addr = w->memory.base + (uint64_t)k->me * LARGE;
	fi_addr_t to = w->to[w->shape == ONE_EP ? 0 : i % THREADS];
	size_t len = i * 277 % LARGE + 1;
	struct op ops[3] = { 0 };
	uint64_t one = 1, seen;

	weft_test_fill(out, len, i);
	POST_BY(k, fi_write(own(k)->ep, out, len, NULL, to, addr, w->memory.key,
			    &ops[0]));
	POST_BY(k, fi_fetch_atomic(own(k)->ep, &one, 1, NULL, &seen, NULL, to,
				   w->word.base, w->word.key, FI_UINT64, FI_SUM,
				   &ops[1]));
	finish(k, &ops[0]);
	finish(k, &ops[1]);
	POST_BY(k, fi_read(own(k)->ep, in, len, NULL, to, addr, w->memory.key,
			   &ops[2]));
	finish(k, &ops[2]);
	CHECK(weft_test_holds(in, len, i));
}

static atomic_int done;

static void *work(void *arg)
{
	struct worker *k = arg;
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);

	for (uint64_t i = 0; i < ROUNDS; i++) {
		exchange(k, out, in, i);
		reach(k, out, in, i);
	}
	/* The other threads may still need us. */
	atomic_fetch_add(&done, 1);
	while (atomic_load(&done) < THREADS)
		drive(k);
	free(out);
	free(in);
	return NULL;
}

/* Reads completions that another thread waits for. */
static void *poll_for(void *arg)
{
	struct worker *k = arg;

	while (!atomic_load(&k->w->over)) {
		read_one(own(k)->txcq);
		if (own(k)->rxcq != own(k)->txcq)
			read_one(own(k)->rxcq);
	}
	return NULL;
}

/* The additional thread, at the same time as the others. */
static void *meddle(void *arg)
{
	struct world *w = arg;
	struct fid_domain *domain = w->t[0].domain;
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	static uint8_t more[100];
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct fid_cntr *cntr;
	uint64_t key = 100;

	CHECK_OK(fi_cntr_open(domain, &attr, &cntr, NULL));
	weft_test_name_of_port(name, 9);
	while (!atomic_load(&w->over)) {
		fi_addr_t addr;
		struct fid_mr *mr;

		CHECK_EQ(fi_av_insert(w->t[0].av, name, 1, &addr, 0, NULL), 1);
		CHECK_OK(fi_mr_reg(domain, more, sizeof(more), RMA_ACCESS, 0,
				   key++, FI_RMA_EVENT, &mr, NULL));
		CHECK_OK(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
		CHECK_EQ(fi_cntr_read(cntr), 0);
		CHECK_OK(fi_close(&mr->fid));
		CHECK_OK(fi_av_remove(w->t[0].av, &addr, 1, 0));
		usleep(200);
	}
	CHECK_OK(fi_close(&cntr->fid));
	return NULL;
}

/* -- all of them ----------------------------------------------------------- */

static void world_open(struct world *w, enum fi_threading model)
{
	struct weft_test_opts opts = {
		.caps = AMO_CAPS | FI_RMA_EVENT,
		.threading = model,
		.tx_flags = FI_DELIVERY_COMPLETE,
		.one_cq = w->shape != POLLED,
	};
	int eps = w->shape == ONE_EP ? 1 : THREADS;

	for (int i = 0; i < eps; i++) {
		weft_test_open(&w->t[i], &opts);
		CHECK_EQ(w->t[i].info->domain_attr->threading, model);
		opts.sibling = &w->t[0];
		opts.same_cqs = w->shape == ONE_CQ;
		w->to[i] = weft_test_know(&w->t[0], &w->t[i]);
	}
}

static void run(enum fi_threading model, enum shape shape)
{
	struct world w = { .shape = shape };
	struct worker workers[THREADS];
	pthread_t meddler;
	struct fid_mr *mr[2];
	int eps = shape == ONE_EP ? 1 : THREADS;

	printf("model %d, shape %d\n", (int)model, (int)shape);
	word = 0;
	atomic_store(&done, 0);
	world_open(&w, model);
	w.word = rma_expose(&w.t[0], &word, 8, RMA_ACCESS, 1, &mr[0]);
	w.memory = rma_expose(&w.t[0], memory, sizeof(memory), RMA_ACCESS, 2,
			      &mr[1]);
	CHECK_EQ(pthread_create(&meddler, NULL, meddle, &w), 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .w = &w, .me = i };
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, work,
					&workers[i]),
			 0);
		if (shape == POLLED)
			CHECK_EQ(pthread_create(&workers[i].poller, NULL,
						poll_for, &workers[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	atomic_store(&w.over, true);
	CHECK_EQ(pthread_join(meddler, NULL), 0);
	for (int i = 0; shape == POLLED && i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].poller, NULL), 0);
	CHECK_EQ(word, THREADS * ROUNDS);
	for (int i = 0; i < 2; i++)
		CHECK_OK(fi_close(&mr[i]->fid));
	while (eps--)
		weft_test_close(&w.t[eps]);
}

int main(void)
{
	weft_test_begin(110);
	run(FI_THREAD_SAFE, ONE_EP);
	run(FI_THREAD_SAFE, ONE_CQ);
	run(FI_THREAD_SAFE, POLLED);
	run(FI_THREAD_FID, POLLED);
	run(FI_THREAD_FID, OWN_CQ);
	run(FI_THREAD_ENDPOINT, OWN_CQ);
	run(FI_THREAD_COMPLETION, OWN_CQ);
	return 0;
}
