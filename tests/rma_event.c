/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RMA_EVENT: counters that tell a target about remote accesses. A counter of
 * an endpoint counts the reads and writes that target the endpoint, a counter
 * of a region the writes to that region. The data is there when the counter
 * says so. Refused accesses are not counted.
 */
#include "rma_util.h"

#define CAPS (RMA_CAPS | FI_ATOMIC | FI_RMA_EVENT)
#define LEN 100000
#define ROUNDS 60

/* Indexes of t->cntrs. */
enum { WRITES, READS, REGION };

static void bind(struct weft_test *t, void *arg)
{
	(void)arg;
	weft_test_cntr(t, FI_REMOTE_WRITE, FI_WAIT_UNSPEC);
	weft_test_cntr(t, FI_REMOTE_READ, FI_WAIT_UNSPEC);
	weft_test_cntr(t, 0, FI_WAIT_UNSPEC); /* for a region */
}

static size_t size_of(uint64_t round)
{
	static const size_t sizes[] = { 8, 1, 5000, LEN };

	return sizes[round % COUNT_OF(sizes)];
}

/* -- initiator ------------------------------------------------------------- */

/* In turn: a write, an injected write, a write with data; a read. */
static void act(struct weft_test *t, fi_addr_t peer,
		const struct rma_target *target, uint64_t round, uint8_t *buf)
{
	size_t len = size_of(round);
	struct fi_context context;

	weft_test_fill(buf, len, round);
	switch (round % 3) {
	case 0:
		POST(fi_write(t->ep, buf, len, NULL, peer, target->base,
			      target->key, &context));
		break;
	case 1:
		if (len <= t->info->tx_attr->inject_size) {
			POST(fi_inject_write(t->ep, buf, len, peer,
					     target->base, target->key));
			return;
		}
		POST(fi_write(t->ep, buf, len, NULL, peer, target->base,
			      target->key, &context));
		break;
	default:
		POST(fi_writedata(t->ep, buf, len, NULL, round, peer,
				  target->base, target->key, &context));
	}
	rma_wait(t, &context, FI_RMA | FI_WRITE);
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target counted = rma_learn(line), other = rma_learn(line);
	uint8_t *buf = msg_alloc(LEN);
	struct fi_context context;
	char mark;

	(void)arg;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		act(t, peer, &counted, i, buf);
		CHECK(weft_test_get_driving(line, &mark, 1));
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		rma_get(t, peer, &counted, 0, buf, size_of(i));
		CHECK(weft_test_get_driving(line, &mark, 1));
	}
	/* To another region: the endpoint's counter counts it, the region's
	 * does not. */
	rma_put(t, peer, &other, 0, buf, 8);
	/* Refused: no counter counts it. */
	POST(fi_write(t->ep, buf, 8, NULL, peer, counted.base + LEN,
		      counted.key, &context));
	rma_wait_refused(t, &context);
	POST(fi_read(t->ep, buf, 8, NULL, peer, counted.base, ~counted.key,
		     &context));
	rma_wait_refused(t, &context);
	weft_test_sync(line); /* the target checks its counters */
	weft_test_sync(line);
	/* An atomic counts as a write, one that fetches as a read. */
	POST(fi_atomic(t->ep, buf, 1, NULL, peer, counted.base, counted.key,
		       FI_UINT64, FI_SUM, &context));
	rma_wait(t, &context, FI_ATOMIC | FI_WRITE);
	POST(fi_fetch_atomic(t->ep, buf, 1, NULL, buf + 8, NULL, peer,
			     counted.base, counted.key, FI_UINT64, FI_SUM,
			     &context));
	rma_wait(t, &context, FI_ATOMIC | FI_READ);
	weft_test_sync(line);
	weft_test_sync(line);
	free(buf);
}

/* -- target ---------------------------------------------------------------- */

static struct fid_mr *register_counted(struct weft_test *t, uint8_t *region,
				       struct weft_test_line *line)
{
	struct rma_target target = { .base = rma_base(t, region), .len = LEN };
	struct fid_mr *mr;

	CHECK_OK(fi_mr_reg(t->domain, region, LEN, RMA_ACCESS, 0, 1,
			   FI_RMA_EVENT, &mr, NULL));
	CHECK_OK(fi_mr_bind(mr, &t->cntrs[REGION]->fid, FI_REMOTE_WRITE));
	if (t->info->domain_attr->mr_mode & FI_MR_RMA_EVENT)
		CHECK_OK(fi_mr_enable(mr));
	target.key = fi_mr_key(mr);
	weft_test_put(line, &target, sizeof(target));
	return mr;
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LEN), *uncounted = msg_alloc(LEN);
	struct fid_mr *mr = register_counted(t, region, line), *other;
	struct weft_test_comp comp;

	(void)peer;
	(void)arg;
	rma_offer(t, line, uncounted, LEN, &other);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		/* Whichever counter changes first, the data is there. */
		weft_test_count(t->cntrs[i % 2 ? WRITES : REGION], i + 1);
		CHECK(weft_test_holds(region, size_of(i), i));
		weft_test_count(t->cntrs[WRITES], i + 1);
		weft_test_count(t->cntrs[REGION], i + 1);
		if (i % 3 == 2) {
			weft_test_wait(t->rxcq, &comp);
			CHECK_EQ(comp.ret, 1);
			CHECK_EQ(comp.entry.data, i);
		}
		/* The peer reads only after the last of these writes. */
		CHECK_EQ(fi_cntr_read(t->cntrs[READS]), 0);
		weft_test_put(line, "n", 1);
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		CHECK_OK(fi_cntr_wait(t->cntrs[READS], i + 1, 20000));
		weft_test_put(line, "n", 1);
	}
	weft_test_sync(line);
	weft_test_count(t->cntrs[WRITES], ROUNDS + 1);
	weft_test_count(t->cntrs[REGION], ROUNDS);
	weft_test_count(t->cntrs[READS], ROUNDS);
	weft_test_sync(line);
	weft_test_sync(line);
	weft_test_count(t->cntrs[WRITES], ROUNDS + 2);
	weft_test_count(t->cntrs[READS], ROUNDS + 1);
	/* FI_REMOTE_WRITE of a region counts every operation that modifies
	 * it. */
	weft_test_count(t->cntrs[REGION], ROUNDS + 2);
	msg_expect_quiet(t->rxcq, 1);
	/* A counter cannot be closed as long as it is bound. */
	CHECK_EQ(fi_close(&t->cntrs[REGION]->fid), -FI_EBUSY);
	weft_test_sync(line);
	CHECK_OK(fi_close(&mr->fid));
	CHECK_OK(fi_close(&other->fid));
	free(region);
	free(uncounted);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = { .caps = CAPS, .prepare = bind };

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, target, initiator, NULL);
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED |
		       FI_MR_RMA_EVENT;
	opts.threading = FI_THREAD_SAFE;
	weft_test_pair(&opts, target, initiator, NULL);
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
