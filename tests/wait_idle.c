/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A waiting process uses no processor time: in fi_cq_sread(), in
 * fi_cntr_wait(), on a descriptor; with peers connected, receives posted, and
 * an address where nobody answers. The wake-up time is printed and decides
 * nothing.
 */
#include "wait_util.h"

#include <pthread.h>

#define IDLE_MS 300
/* Processor time within IDLE_MS: more means a loop. */
#define BUSY_MS 60
#define WAKES 200

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void check_idle(const char *what, uint64_t cpu_before)
{
	uint64_t used = wait_cpu_ms() - cpu_before;

	printf("%s: %llu ms of processor time in %d ms\n", what,
	       (unsigned long long)used, IDLE_MS);
	if (used > BUSY_MS)
		FAIL("%s is busy", what);
}

/* -- idle ------------------------------------------------------------------ */

static void bind(struct weft_test *t, void *arg)
{
	(void)arg;
	weft_test_cntr(t, FI_RECV, FI_WAIT_UNSPEC);
}

static void test_idle(struct weft_test *t)
{
	struct fi_cq_tagged_entry entry;
	struct weft_test_comp comp;
	uint64_t before;

	before = wait_cpu_ms();
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, IDLE_MS), -FI_EAGAIN);
	check_idle("fi_cq_sread", before);
	before = wait_cpu_ms();
	CHECK_EQ(fi_cntr_wait(t->cntrs[0], 1000, IDLE_MS), -FI_ETIMEDOUT);
	check_idle("fi_cntr_wait", before);
	before = wait_cpu_ms();
	CHECK(!wait_on_fd(t, t->rxcq, &comp, IDLE_MS));
	check_idle("a descriptor", before);
}

static void *signal_late(void *arg)
{
	wait_nap(IDLE_MS);
	CHECK_OK(fi_cq_signal(arg));
	return NULL;
}

static void test_signal(struct weft_test *t)
{
	struct fi_cq_tagged_entry entry;
	uint64_t before = wait_cpu_ms();
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, signal_late, t->rxcq), 0);
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, -1), -FI_EAGAIN);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	check_idle("until fi_cq_signal", before);
}

/* -- woken ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void waker(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	struct fi_context context;
	uint64_t stamp = 0;
	char mark;

	(void)arg;
	CHECK_OK(weft_test_tsend(t, &stamp, 8, peer, 0, &context));
	weft_test_wait_ok(t->txcq, &context);
	/* Quiet while the other process measures its idle time. */
	CHECK(weft_test_get(line, &mark, 1));
	for (int i = 0; i < 2 * WAKES; i++) {
		wait_nap(1);
		stamp = now_ns();
		CHECK_OK(weft_test_inject(t, &stamp, 8, peer));
		weft_test_progress();
	}
	weft_test_sync(line);
}

static void measure(struct weft_test *t, bool by_fd)
{
	static uint64_t took[WAKES];
	struct fi_cq_tagged_entry entry;
	struct fi_context context;
	uint64_t stamp;

	for (int i = 0; i < WAKES; i++) {
		CHECK_OK(weft_test_recv(t, &stamp, 8, &context));
		if (by_fd)
			wait_on_fd_ok(t, t->rxcq, &context);
		else
			CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL,
					     WEFT_TEST_PATIENCE_MS),
				 1);
		took[i] = now_ns() - stamp;
	}
	qsort(took, WAKES, sizeof(took[0]), by_value);
	printf("woken %s after %.1f us (median), %.1f us (9 of 10)\n",
	       by_fd ? "by descriptor" : "in fi_cq_sread",
	       (double)took[WAKES / 2] / 1000,
	       (double)took[WAKES * 9 / 10] / 1000);
}

static void sleeper(struct weft_test *t, fi_addr_t peer,
		    struct weft_test_line *line, void *arg)
{
	uint8_t name[WEFT_TEST_NAME_MAX], buf[8];
	struct fi_context contexts[3];

	(void)peer;
	(void)arg;
	/* Connected, a receive posted, and a send that nobody answers. */
	CHECK_OK(weft_test_trecv(t, buf, 8, 0, 0, &contexts[0]));
	weft_test_wait_ok(t->rxcq, &contexts[0]);
	CHECK_OK(weft_test_trecv(t, buf, 8, 5, 0, &contexts[1]));
	test_idle(t);
	weft_test_name_of_port(name, 1);
	CHECK_OK(weft_test_send(t, buf, 8, weft_test_insert(t, name),
				&contexts[2]));
	test_idle(t);
	test_signal(t);
	weft_test_put(line, "w", 1);
	measure(t, false);
	measure(t, true);
	weft_test_sync(line);
}

int main(void)
{
	struct weft_test_opts opts = {
		.wait_obj = FI_WAIT_FD,
		.threading = FI_THREAD_SAFE,
		.prepare = bind,
	};

	setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 1);
	weft_test_begin(60);
	weft_test_pair(&opts, waker, sleeper, NULL);
	return 0;
}
