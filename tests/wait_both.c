/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No side spins: both sides of an exchange sleep whenever they wait, and so
 * does an endpoint to which several peers send at random times. A lost wake-up
 * is a hang.
 */
#include "wait_util.h"

#define ROUNDS 400
#define LARGE 400000
#define CALLERS 3
#define CALLS 300

static size_t size_of(uint64_t round)
{
	static const size_t sizes[] = { 8, 300, 5000, 40000, LARGE };

	return sizes[round % COUNT_OF(sizes)];
}

/* Sleeps until both the send and the receive are complete. */
static void wait_pair(struct weft_test *t, bool by_fd)
{
	struct fi_cq_tagged_entry entry;
	struct weft_test_comp comp;

	for (int i = 0; i < 2; i++) {
		if (by_fd)
			CHECK(wait_on_fd(t, t->txcq, &comp,
					 WEFT_TEST_PATIENCE_MS));
		else
			CHECK_EQ(fi_cq_sread(t->txcq, &entry, 1, NULL,
					     WEFT_TEST_PATIENCE_MS),
				 1);
	}
}

/* -- one with one ---------------------------------------------------------- */

static void talk(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, bool first, bool by_fd)
{
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);
	uint64_t random = 3 + first;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		size_t len = size_of(i);
		uint64_t seed = i * 2 + first;

		weft_test_fill(out, len, seed);
		CHECK_OK(weft_test_trecv(t, in, len, i, 0, in));
		if (weft_test_random(&random) % 8 == 0)
			wait_nap(1);
		CHECK_OK(weft_test_tsend(t, out, len, peer, i, out));
		wait_pair(t, by_fd);
		CHECK(weft_test_holds(in, len, seed ^ 1));
	}
	weft_test_sync(line);
	free(out);
	free(in);
}

static void child_side(struct weft_test *t, fi_addr_t peer,
		       struct weft_test_line *line, void *arg)
{
	talk(t, peer, line, false, *(bool *)arg);
}

static void parent_side(struct weft_test *t, fi_addr_t peer,
			struct weft_test_line *line, void *arg)
{
	talk(t, peer, line, true, *(bool *)arg);
}

/* -- several call one ------------------------------------------------------ */

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS,
	.wait_obj = FI_WAIT_FD,
	.one_cq = true,
};

static void caller(struct weft_test_line *line, void *arg)
{
	uint64_t random = (uint64_t)getpid(), number;
	struct weft_test t;
	fi_addr_t peer;

	(void)arg;
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (number = 0; number < CALLS; number++) {
		/* Sometimes in a burst, sometimes after a pause. */
		if (weft_test_random(&random) % 16 == 0)
			wait_nap(1 + weft_test_random(&random) % 3);
		CHECK_OK(weft_test_tsend(&t, &number, 8, peer, 1, &number));
		wait_on_fd_ok(&t, t.txcq, &number);
	}
	weft_test_sync(line);
	weft_test_close(&t);
}

static void test_callers(void)
{
	struct weft_test_line lines[CALLERS];
	struct weft_test t;
	uint64_t got, sum = 0;

	weft_test_open(&t, &opts);
	for (int i = 0; i < CALLERS; i++)
		weft_test_fork(&lines[i], caller, NULL);
	for (int i = 0; i < CALLERS; i++)
		weft_test_meet(&t, &lines[i]);
	for (int i = 0; i < CALLERS * CALLS; i++) {
		CHECK_OK(weft_test_trecv(&t, &got, 8, 1, 0, &got));
		wait_on_fd_ok(&t, t.rxcq, &got);
		sum += got;
	}
	CHECK_EQ(sum, CALLERS * (CALLS * (CALLS - 1) / 2));
	for (int i = 0; i < CALLERS; i++) {
		weft_test_sync(&lines[i]);
		weft_test_join(&lines[i]);
	}
	weft_test_close(&t);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts safe = opts;
	bool by_fd = true;

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, child_side, parent_side, &by_fd);
	by_fd = false;
	safe.wait_obj = FI_WAIT_UNSPEC;
	safe.threading = FI_THREAD_SAFE;
	weft_test_pair(&safe, child_side, parent_side, &by_fd);
	test_callers();
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
