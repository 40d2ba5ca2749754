/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on counters: in fi_cntr_wait() and on a counter's descriptor, until
 * a message was received or sent, memory was written or read, or an operation
 * failed because the peer died.
 */
#include "wait_util.h"

#define LARGE 500000
#define ROUNDS 20

enum { RECEIVED, SENT, WRITTEN, READ };

static void bind(struct weft_test *t, void *arg)
{
	const enum fi_wait_obj *obj = arg;

	weft_test_cntr(t, FI_RECV, *obj);
	weft_test_cntr(t, FI_SEND, *obj);
	weft_test_cntr(t, FI_REMOTE_WRITE, *obj);
	weft_test_cntr(t, FI_REMOTE_READ, *obj);
}

/* As with a CQ: fi_trywait() before every sleep. */
static void sleep_until(struct weft_test *t, struct fid_cntr *cntr,
			uint64_t value, enum fi_wait_obj obj)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[1] = { &cntr->fid };

	if (obj != FI_WAIT_FD) {
		CHECK_OK(fi_cntr_wait(cntr, value, WEFT_TEST_PATIENCE_MS));
		return;
	}
	pfd.fd = wait_fd_of(&cntr->fid);
	while (fi_cntr_read(cntr) < value) {
		CHECK(weft_test_ms() < end);
		if (!fi_trywait(t->fabric, fids, 1))
			CHECK_SYS(poll(&pfd, 1, WEFT_TEST_PATIENCE_MS));
	}
}

static void sleeper(struct weft_test *t, fi_addr_t peer,
		    struct weft_test_line *line, void *arg)
{
	const enum fi_wait_obj obj = *(enum fi_wait_obj *)arg;
	uint8_t *buf = msg_alloc(LARGE), *region = msg_alloc(LARGE);
	struct fid_mr *mr;

	rma_offer(t, line, region, LARGE, &mr);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		size_t len = i % 2 ? LARGE : 8;

		CHECK_OK(weft_test_trecv(t, buf, LARGE, i, 0, NULL));
		weft_test_put(line, "s", 1);
		sleep_until(t, t->cntrs[RECEIVED], i + 1, obj);
		CHECK(weft_test_holds(buf, len, i));
		weft_test_put(line, "s", 1);
		sleep_until(t, t->cntrs[WRITTEN], i + 1, obj);
		CHECK(weft_test_holds(region, len, i));
		weft_test_put(line, "s", 1);
		sleep_until(t, t->cntrs[READ], i + 1, obj);
		CHECK_OK(weft_test_tsend(t, region, len, peer, i, NULL));
		weft_test_put(line, "s", 1);
		sleep_until(t, t->cntrs[SENT], i + 1, obj);
	}
	/* A send that nobody receives, and its receiver dies. */
	CHECK_OK(weft_test_tsend(t, buf, LARGE, peer, 1, NULL));
	weft_test_progress_for(5);
	weft_test_put(line, "s", 1);
	if (obj != FI_WAIT_FD)
		CHECK_EQ(fi_cntr_wait(t->cntrs[SENT], ROUNDS + 1, -1),
			 -FI_EAVAIL);
	CHECK_OK(fi_close(&mr->fid));
	free(buf);
	free(region);
}

static void waker(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LARGE);
	char mark;

	(void)arg;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		size_t len = i % 2 ? LARGE : 8;

		weft_test_fill(buf, len, i);
		CHECK(weft_test_get_driving(line, &mark, 1));
		wait_nap(3);
		CHECK_OK(weft_test_tsend(t, buf, len, peer, i, NULL));
		weft_test_wait_ok(t->txcq, NULL);
		CHECK(weft_test_get_driving(line, &mark, 1));
		wait_nap(3);
		rma_put(t, peer, &target, 0, buf, len);
		CHECK(weft_test_get_driving(line, &mark, 1));
		wait_nap(3);
		rma_get(t, peer, &target, 0, buf, len);
		CHECK(weft_test_get_driving(line, &mark, 1));
		wait_nap(3);
		CHECK_OK(weft_test_trecv(t, buf, len, i, 0, NULL));
		weft_test_wait_ok(t->rxcq, NULL);
	}
	CHECK(weft_test_get_driving(line, &mark, 1));
	wait_nap(10);
	_exit(0);
}

static void run(struct weft_test_line *line, void *arg)
{
	enum fi_wait_obj objects[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };

	(void)line;
	(void)arg;
	weft_test_load();
	for (size_t i = 0; i < COUNT_OF(objects); i++) {
		struct weft_test_opts opts = {
			.caps = RMA_CAPS | FI_RMA_EVENT,
			.prepare = bind,
			.prepare_arg = &objects[i],
		};

		weft_test_pair(&opts, waker, sleeper, &objects[i]);
	}
}

int main(void)
{
	/* The machine may be busy. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 0);
	weft_test_begin(60);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
