/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_THREAD_DOMAIN and FI_THREAD_COMPLETION: threads that share nothing need no
 * lock. Each thread has its own domain (under COMPLETION its own endpoint and
 * CQ in one domain) and exchanges messages with the next thread.
 */
#include "msg_util.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 3
#define COUNT 300

struct member {
	struct weft_test t;
	fi_addr_t next;
	uint64_t index;
	pthread_t thread;
};

static struct member members[THREADS];
static pthread_barrier_t all_here;

static void wait_for(struct fid_cq *cq, struct fid_cq *other, void *context)
{
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	while ((got = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
		fi_cq_read(other, NULL, 0);
		sched_yield();
	}
	CHECK_EQ(got, 1);
	CHECK(entry.op_context == context);
}

static void *work(void *arg)
{
	struct member *m = arg;
	uint8_t *out = msg_alloc(30000), *in = msg_alloc(30000);
	struct weft_test *t = &m->t;
	struct fi_context tx, rx;

	for (uint64_t i = 0; i < COUNT; i++) {
		size_t len = i * 97 % 30000;
		uint64_t from = (m->index + THREADS - 1) % THREADS;

		weft_test_fill(out, len, m->index * 1000 + i);
		CHECK_OK(fi_trecv(t->ep, in, 30000, NULL, FI_ADDR_UNSPEC, i, 0,
				  &rx));
		while (fi_tsend(t->ep, out, len, NULL, m->next, i, &tx) ==
		       -FI_EAGAIN)
			fi_cq_read(t->txcq, NULL, 0);
		wait_for(t->rxcq, t->txcq, &rx);
		CHECK(weft_test_holds(in, len, from * 1000 + i));
		wait_for(t->txcq, t->rxcq, &tx);
	}
	/* The next thread may still need us. */
	while (pthread_barrier_wait(&all_here) == EINTR)
		;
	free(out);
	free(in);
	return NULL;
}

static void run(enum fi_threading threading)
{
	const struct weft_test_opts opts = { .threading = threading };

	CHECK_EQ(pthread_barrier_init(&all_here, NULL, THREADS), 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		weft_test_open(&members[i].t, &opts);
		members[i].index = i;
		CHECK_EQ(members[i].t.info->domain_attr->threading, threading);
	}
	for (int i = 0; i < THREADS; i++)
		members[i].next = weft_test_know(&members[i].t,
						 &members[(i + 1) % THREADS].t);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&members[i].thread, NULL, work,
					&members[i]),
			 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(members[i].thread, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		weft_test_close(&members[i].t);
	pthread_barrier_destroy(&all_here);
}

int main(void)
{
	weft_test_begin(60);
	run(FI_THREAD_DOMAIN);
	run(FI_THREAD_COMPLETION);
	run(FI_THREAD_FID);
	run(FI_THREAD_ENDPOINT);
	return 0;
}
