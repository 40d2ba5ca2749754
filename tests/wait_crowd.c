/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads sleep on one counter, and each is woken when the counter
 * reaches the value that the thread waits for, also if another thread reads the
 * counter at that moment. Bug: the first thread that looked made the wake-up
 * descriptor unreadable while others had not woken up yet, and these slept for
 * ever. Sandia OpenSHMEM's mt_contention hung in one of ten runs.
 */
#include <pthread.h>

#include "rma_util.h"

#define THREADS 4
#define ROUNDS 100
#define WAIT_MS 30000

struct crowd {
	struct fid_cntr *cntr;
	pthread_barrier_t barrier;
};

static void *wait_for_count(void *arg)
{
	struct crowd *crowd = arg;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		pthread_barrier_wait(&crowd->barrier);
		CHECK_OK(fi_cntr_wait(crowd->cntr, i, WAIT_MS));
		pthread_barrier_wait(&crowd->barrier);
	}
	return NULL;
}

/* Increments the counter when, usually, the others sleep, and reads it at
 * once. */
static void count(struct weft_test *t, struct crowd *crowd)
{
	const struct timespec nap = { .tv_nsec = 500000 };
	struct fid *fid = &crowd->cntr->fid;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		int ret;

		pthread_barrier_wait(&crowd->barrier);
		nanosleep(&nap, NULL);
		CHECK_OK(fi_cntr_add(crowd->cntr, 1));
		ret = fi_trywait(t->fabric, &fid, 1);
		CHECK(!ret || ret == -FI_EAGAIN);
		CHECK_EQ(fi_cntr_read(crowd->cntr), i);
		fi_trywait(t->fabric, &fid, 1);
		pthread_barrier_wait(&crowd->barrier);
	}
}

int main(void)
{
	const struct weft_test_opts opts = {
		.caps = RMA_CAPS,
		.threading = FI_THREAD_SAFE,
	};
	pthread_t threads[THREADS];
	struct crowd crowd;
	struct weft_test t;

	weft_test_begin(60);
	weft_test_open(&t, &opts);
	crowd.cntr = weft_test_cntr(&t, FI_WRITE, FI_WAIT_UNSPEC);
	CHECK_OK(-pthread_barrier_init(&crowd.barrier, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(-pthread_create(&threads[i], NULL, wait_for_count,
					 &crowd));
	count(&t, &crowd);
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(-pthread_join(threads[i], NULL));
	CHECK_OK(-pthread_barrier_destroy(&crowd.barrier));
	weft_test_close(&t);
	return 0;
}
