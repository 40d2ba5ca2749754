/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_cq_sread() waits until the time-out, a message from another process, or a
 * call of fi_cq_signal() by another thread.
 */
#include "msg_util.h"

#include <pthread.h>
#include <time.h>

#define LATE_MS 60000 /* the machine may be busy */

static void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static void test_timeouts(struct weft_test *t)
{
	static const int times[] = { 0, 1, 20, 150 };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	for (size_t i = 0; i < COUNT_OF(times); i++) {
		uint64_t begin = weft_test_ms(), waited;

		CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, times[i]),
			 -FI_EAGAIN);
		waited = weft_test_ms() - begin;
		CHECK(waited + 1 >= (uint64_t)times[i]);
		CHECK(waited < (uint64_t)times[i] + LATE_MS);
		CHECK_EQ(fi_cq_sreadfrom(t->rxcq, &entry, 1, &src, NULL, 1),
			 -FI_EAGAIN);
	}
}

/* -- signal ---------------------------------------------------------------- */

static void *signal_soon(void *arg)
{
	nap(30);
	CHECK_OK(fi_cq_signal(arg));
	return NULL;
}

static void test_signal(struct weft_test *t, int timeout)
{
	struct fi_cq_tagged_entry entry;
	uint64_t begin = weft_test_ms();
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, signal_soon, t->rxcq), 0);
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, timeout), -FI_EAGAIN);
	CHECK(weft_test_ms() - begin < 60000);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* One signal ends one wait. */
	begin = weft_test_ms();
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, 50), -FI_EAGAIN);
	CHECK(weft_test_ms() - begin >= 49);
	/* A signal is not lost if nobody waits yet. */
	CHECK_OK(fi_cq_signal(t->rxcq));
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, timeout), -FI_EAGAIN);
}

/* -- messages -------------------------------------------------------------- */

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(100000);

	(void)arg;
	for (uint64_t i = 0; i < 6; i++) {
		size_t len = i % 2 ? 100000 : 100;
		struct fi_cq_tagged_entry entry;
		char mark;

		CHECK(weft_test_get(line, &mark, 1));
		nap(30);
		weft_test_fill(buf, len, i);
		CHECK_OK(weft_test_tsend(t, buf, len, peer, i, NULL));
		/* Large messages need both processes awake. */
		CHECK_EQ(fi_cq_sread(t->txcq, &entry, 1, NULL, 100000), 1);
	}
	weft_test_sync(line);
	free(buf);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(100000);

	(void)arg;
	test_timeouts(t);
	test_signal(t, 100000);
	test_signal(t, -1);
	for (uint64_t i = 0; i < 6; i++) {
		size_t len = i % 2 ? 100000 : 100;
		int timeout = i < 3 ? 100000 : -1;
		struct fi_cq_tagged_entry entry;
		fi_addr_t src = 99;

		CHECK_OK(weft_test_trecv(t, buf, len, i, 0, &entry));
		weft_test_put(line, "g", 1);
		CHECK_EQ(fi_cq_sreadfrom(t->rxcq, &entry, 1, &src, NULL,
					 timeout),
			 1);
		CHECK(entry.op_context == &entry);
		CHECK_EQ(entry.tag, i);
		CHECK_EQ(src, peer);
		CHECK(weft_test_holds(buf, len, i));
	}
	/* An error ends the wait, too. */
	CHECK_OK(weft_test_trecv(t, buf, 1, 77, 0, buf));
	CHECK_OK(fi_cancel(&t->ep->fid, buf));
	{
		struct fi_cq_tagged_entry entry;

		CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, 100000),
			 -FI_EAVAIL);
	}
	weft_test_sync(line);
	free(buf);
}

/* Without a wait object fi_cq_sread() cannot wait. */
static void test_none(void)
{
	struct fi_cq_tagged_entry entry;
	struct weft_test t;

	weft_test_open(&t, NULL);
	CHECK(fi_cq_sread(t.rxcq, &entry, 1, NULL, 1) < 0);
	weft_test_close(&t);
}

int main(void)
{
	struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
		.wait_obj = FI_WAIT_UNSPEC,
		.threading = FI_THREAD_SAFE,
	};

	weft_test_begin(60);
	weft_test_pair(&opts, sender, receiver, NULL);
	test_none();
	return 0;
}
