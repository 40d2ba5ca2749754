/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordering that a peer may rely on: when a message that followed a write has
 * arrived, the data is there; after a fence, all earlier operations are done;
 * FI_DELIVERY_COMPLETE means delivery; a read sees the write before it. And
 * more operations at once than the endpoint accepts all complete, once.
 */
#include "rma_util.h"

#define LARGEST 300000
#define OUTSTANDING 500

static const size_t sizes[] = { 8, 1000, 20000, LARGEST };

enum way { WAITED, IN_ORDER, FENCED, WAYS };

/* If packets are lost, each operation may take long, above all on a busy
 * machine. */
static uint64_t rounds(void)
{
	return getenv("FI_WEFT_FAULT") ? 60 : 200;
}

static size_t size_of(uint64_t round)
{
	return sizes[round % COUNT_OF(sizes)];
}

/* -- write, then send ------------------------------------------------------ */

static void send_number(struct weft_test *t, fi_addr_t peer,
			const uint64_t *number, uint64_t flags, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)number, sizeof(*number) };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = peer,
		.context = context,
	};

	POST(fi_sendmsg(t->ep, &msg, FI_COMPLETION | flags));
}

/* Completions may come in any order. */
static void wait_two(struct weft_test *t, void *one, void *two)
{
	struct weft_test_comp comp;
	void *first;

	weft_test_wait(t->txcq, &comp);
	CHECK_EQ(comp.ret, 1);
	first = comp.entry.op_context;
	CHECK(first == one || first == two);
	weft_test_wait_ok(t->txcq, first == one ? two : one);
}

static void writer(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	const enum way way = *(enum way *)arg;
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LARGEST);
	struct fi_context write, send;
	uint64_t number;

	if (way == IN_ORDER)
		CHECK(t->info->tx_attr->msg_order & FI_ORDER_SAW);
	for (uint64_t i = 0; i < rounds(); i++) {
		char mark;

		weft_test_fill(buf, size_of(i), i);
		number = i;
		POST(fi_write(t->ep, buf, size_of(i), NULL, peer, target.base,
			      target.key, &write));
		if (way == WAITED)
			rma_wait(t, &write, FI_RMA | FI_WRITE);
		send_number(t, peer, &number, way == FENCED ? FI_FENCE : 0,
			    &send);
		if (way == WAITED)
			weft_test_wait_ok(t->txcq, &send);
		else
			wait_two(t, &write, &send);
		CHECK(weft_test_get_driving(line, &mark, 1));
	}
	free(buf);
}

static void reader(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGEST);
	struct fid_mr *mr;
	uint64_t number;

	(void)peer;
	(void)arg;
	/* Before the writer knows of it: its first write may come at once. */
	memset(region, 0, LARGEST);
	rma_offer(t, line, region, LARGEST, &mr);
	for (uint64_t i = 0; i < rounds(); i++) {
		if (i)
			memset(region, 0, size_of(i));
		CHECK_OK(weft_test_recv(t, &number, sizeof(number), NULL));
		/* Not earlier: only now the region is cleared. */
		if (i)
			weft_test_put(line, "n", 1);
		weft_test_wait_ok(t->rxcq, NULL);
		CHECK_EQ(number, i);
		CHECK(weft_test_holds(region, size_of(i), i));
	}
	weft_test_put(line, "n", 1);
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

/* -- delivered ------------------------------------------------------------- */

/* When the completion is there, the data is there, too, although nothing has
 * notified the target. The target looks at its memory, without progress, when
 * the line tells it to. */
static void deliverer(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LARGEST);

	(void)arg;
	for (uint64_t i = 0; i < rounds(); i++) {
		char mark;

		weft_test_fill(buf, size_of(i), i);
		rma_put(t, peer, &target, 0, buf, size_of(i));
		weft_test_put(line, "w", 1);
		CHECK(weft_test_get(line, &mark, 1));
	}
	weft_test_sync(line);
	free(buf);
}

static void delivered(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGEST);
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	rma_offer(t, line, region, LARGEST, &mr);
	for (uint64_t i = 0; i < rounds(); i++) {
		char mark;

		CHECK(weft_test_get_driving(line, &mark, 1));
		CHECK(weft_test_holds(region, size_of(i), i));
		memset(region, 0, size_of(i));
		weft_test_put(line, "c", 1);
	}
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

/* -- fences and reads ------------------------------------------------------ */

/* The second write replaces the first, and the read sees the second: each with
 * a fence, in all sizes. */
static void fencer(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *bufs[3] = { msg_alloc(LARGEST), msg_alloc(LARGEST),
			     msg_alloc(LARGEST) };

	(void)arg;
	for (uint64_t i = 0; i < rounds() / 4; i++) {
		struct fi_context contexts[3];
		bool done[3] = { false };

		for (int k = 0; k < 3; k++) {
			struct iovec iov = { bufs[k], size_of(i + k % 2) };
			struct fi_rma_iov rma = { target.base, iov.iov_len,
						  target.key };
			struct fi_msg_rma msg = {
				.msg_iov = &iov,
				.iov_count = 1,
				.addr = peer,
				.rma_iov = &rma,
				.rma_iov_count = 1,
				.context = &contexts[k],
			};
			uint64_t flags = FI_COMPLETION | (k ? FI_FENCE : 0);

			weft_test_fill(bufs[k], LARGEST, 3 * i + (uint64_t)k);
			if (k == 2) {
				iov.iov_len = rma.len = size_of(i + 1);
				POST(fi_readmsg(t->ep, &msg, flags));
			} else {
				POST(fi_writemsg(t->ep, &msg, flags));
			}
		}
		for (int k = 0; k < 3; k++) {
			struct weft_test_comp comp;
			ptrdiff_t which;

			weft_test_wait(t->txcq, &comp);
			CHECK_EQ(comp.ret, 1);
			which = (struct fi_context *)comp.entry.op_context -
				contexts;
			CHECK(which >= 0 && which < 3 && !done[which]);
			done[which] = true;
			/* A fenced operation completes after all earlier
			 * ones. */
			CHECK(!which || done[which - 1]);
		}
		CHECK(weft_test_holds(bufs[2], size_of(i + 1), 3 * i + 1));
	}
	weft_test_sync(line);
	for (int k = 0; k < 3; k++)
		free(bufs[k]);
}

static void lend(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGEST);
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	rma_offer(t, line, region, LARGEST, &mr);
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

/* -- many at once ---------------------------------------------------------- */

static void take(struct weft_test *t, bool *done, struct fi_context *contexts,
		 int *left)
{
	struct weft_test_comp comp;
	ptrdiff_t which;

	if (!weft_test_poll(t->txcq, &comp))
		return;
	CHECK_EQ(comp.ret, 1);
	which = (struct fi_context *)comp.entry.op_context - contexts;
	CHECK(which >= 0 && which < OUTSTANDING && !done[which]);
	done[which] = true;
	--*left;
}

/* Writes to one half and reads of the other, as many as are accepted. */
static void crowd(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	static struct fi_context contexts[OUTSTANDING];
	static bool done[OUTSTANDING];
	struct rma_target target = rma_learn(line);
	uint64_t *from = msg_alloc(OUTSTANDING * 8);
	uint64_t *to = msg_alloc(OUTSTANDING * 8);
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	int left = OUTSTANDING;

	(void)arg;
	memset(done, 0, sizeof(done));
	for (uint64_t i = 0; i < OUTSTANDING; i++) {
		uint64_t addr = target.base + i * 8;
		ssize_t ret;

		from[i] = i * i;
		do {
			ret = i % 2 ? fi_read(t->ep, &to[i], 8, NULL, peer,
					      addr, target.key, &contexts[i]) :
				      fi_write(t->ep, &from[i], 8, NULL, peer,
					       addr, target.key, &contexts[i]);
			if (ret == -FI_EAGAIN)
				take(t, done, contexts, &left);
		} while (ret == -FI_EAGAIN && weft_test_ms() < end);
		CHECK_OK(ret);
	}
	while (left && weft_test_ms() < end)
		take(t, done, contexts, &left);
	CHECK_EQ(left, 0);
	for (uint64_t i = 1; i < OUTSTANDING; i += 2)
		CHECK_EQ(to[i], ~i);
	rma_get(t, peer, &target, 0, to, OUTSTANDING * 8);
	for (uint64_t i = 0; i < OUTSTANDING; i += 2)
		CHECK_EQ(to[i], i * i);
	weft_test_sync(line);
	free(from);
	free(to);
}

static void crowded(struct weft_test *t, fi_addr_t peer,
		    struct weft_test_line *line, void *arg)
{
	uint64_t *region = msg_alloc(OUTSTANDING * 8);
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	for (uint64_t i = 0; i < OUTSTANDING; i++)
		region[i] = ~i;
	rma_offer(t, line, region, OUTSTANDING * 8, &mr);
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = {
		.caps = RMA_CAPS | FI_FENCE,
		.tx_size = 64,
	};
	enum way way;

	(void)line;
	(void)arg;
	weft_test_load();
	for (way = 0; way < WAYS; way++) {
		opts.msg_order = way == IN_ORDER ? FI_ORDER_SAW : 0;
		weft_test_pair(&opts, reader, writer, &way);
	}
	opts.msg_order = 0;
	weft_test_pair(&opts, delivered, deliverer, NULL);
	weft_test_pair(&opts, lend, fencer, NULL);
	weft_test_pair(&opts, crowded, crowd, NULL);
}

int main(void)
{
	weft_test_begin(100);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
