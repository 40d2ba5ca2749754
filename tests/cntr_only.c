/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint that has counters instead of completion queues, for one direction
 * or for both: everything works, and reading the counter or waiting on it
 * drives the endpoint.
 */
#include "amo_util.h"

#define ROUNDS 100
#define LARGE 200000

enum { TX, RX };

/* Which of the queues are missing. */
struct shape {
	bool no_txcq;
	bool no_rxcq;
};

static void bind(struct weft_test *t, void *arg)
{
	(void)arg;
	weft_test_cntr(t, FI_SEND | FI_WRITE | FI_READ, FI_WAIT_UNSPEC);
	weft_test_cntr(t, FI_RECV, FI_WAIT_UNSPEC);
}

static size_t size_of(int round)
{
	return round % 10 == 9 ? LARGE : (size_t)round;
}

/* Sends a message and gets it back, by reading the counter or by waiting on
 * it. */
static void first(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);
	uint64_t tx = 0, rx = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		size_t len = size_of(i);

		weft_test_fill(out, len, (uint64_t)i);
		CHECK_OK(weft_test_trecv(t, in, LARGE, 1, 0, NULL));
		CHECK_OK(weft_test_tsend(t, out, len, peer, 1, NULL));
		if (i % 2)
			weft_test_count(t->cntrs[TX], tx + 1);
		else
			CHECK_OK(fi_cntr_wait(t->cntrs[TX], tx + 1, 20000));
		if (i % 3)
			weft_test_count(t->cntrs[RX], rx + 1);
		else
			CHECK_OK(fi_cntr_wait(t->cntrs[RX], rx + 1, 20000));
		CHECK(weft_test_holds(in, len, (uint64_t)i));
		tx++;
		rx++;
		/* Writes to the peer and reads back. */
		POST(fi_write(t->ep, out, len, NULL, peer, target.base,
			      target.key, NULL));
		weft_test_count(t->cntrs[TX], ++tx);
		memset(in, 0, len);
		POST(fi_read(t->ep, in, len, NULL, peer, target.base,
			     target.key, NULL));
		weft_test_count(t->cntrs[TX], ++tx);
		CHECK(weft_test_holds(in, len, (uint64_t)i));
	}
	weft_test_sync(line);
	free(out);
	free(in);
}

static void second(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(LARGE), *region = msg_alloc(LARGE);
	struct fid_mr *mr;

	(void)arg;
	rma_offer(t, line, region, LARGE, &mr);
	for (int i = 0; i < ROUNDS; i++) {
		size_t len = size_of(i);

		CHECK_OK(weft_test_trecv(t, buf, LARGE, 1, 0, NULL));
		weft_test_count(t->cntrs[RX], (uint64_t)i + 1);
		CHECK(weft_test_holds(buf, len, (uint64_t)i));
		CHECK_OK(weft_test_tsend(t, buf, len, peer, 1, NULL));
		weft_test_count(t->cntrs[TX], (uint64_t)i + 1);
	}
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
	free(buf);
	free(region);
}

/* A failure can only be reported by the counter. */
static void test_error(void)
{
	struct weft_test_opts opts = {
		.caps = RMA_CAPS,
		.prepare = bind,
		.no_txcq = true,
	};
	uint64_t word = 0;
	struct weft_test t;
	fi_addr_t self;

	weft_test_open(&t, &opts);
	self = weft_test_know(&t, &t);
	POST(fi_write(t.ep, &word, 8, NULL, self, 0, 0x999, NULL));
	CHECK_EQ(fi_cntr_wait(t.cntrs[TX], 1, 20000), -FI_EAVAIL);
	CHECK_EQ(fi_cntr_read(t.cntrs[TX]), 0);
	CHECK_EQ(fi_cntr_readerr(t.cntrs[TX]), 1);
	/* The endpoint still works. */
	POST(fi_inject(t.ep, &word, 8, self));
	CHECK_OK(fi_cntr_wait(t.cntrs[TX], 1, 20000));
	weft_test_close(&t);
}

int main(void)
{
	static const struct shape shapes[] = { { true, false },
					       { false, true },
					       { true, true } };

	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(shapes); i++) {
		struct weft_test_opts opts = {
			.caps = RMA_CAPS,
			.prepare = bind,
			.no_txcq = shapes[i].no_txcq,
			.no_rxcq = shapes[i].no_rxcq,
		};

		weft_test_pair(&opts, second, first, NULL);
		opts.threading = FI_THREAD_SAFE;
		weft_test_pair(&opts, second, first, NULL);
	}
	test_error();
	return 0;
}
