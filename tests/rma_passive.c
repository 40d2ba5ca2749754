/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * If CMA is permitted, the target of RMA takes no part: it makes no call of
 * libfabric while its peer reads and writes its memory. Deregistering takes
 * effect at once nevertheless.
 */
#include "rma_util.h"

#define LEN ((size_t)1 << 20)

static const size_t sizes[] = { 1, 8, 100, 4096, 70000, LEN };

/* Parts of a vector, both sides. */
static void put_vector(struct weft_test *t, fi_addr_t peer,
		       const struct rma_target *target, uint8_t *buf)
{
	struct iovec iov[2] = { { buf, 1000 }, { buf + 1000, LEN - 1000 } };
	struct fi_rma_iov rma[2] = {
		{ target->base, LEN / 2, target->key },
		{ target->base + LEN / 2, LEN / 2, target->key },
	};
	struct fi_context context;
	struct fi_msg_rma msg = {
		.msg_iov = iov,
		.iov_count = 2,
		.addr = peer,
		.rma_iov = rma,
		.rma_iov_count = 2,
		.context = &context,
	};

	POST(fi_writemsg(t->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	rma_wait(t, &context, FI_RMA | FI_WRITE);
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LEN);
	uint64_t word = 0;

	(void)arg;
	/* From now on the target sleeps in read(2). */
	rma_get(t, peer, &target, 0, &word, 8);
	weft_test_sync(line);
	weft_test_put(line, "s", 1);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		rma_check_size(t, peer, &target, buf, sizes[i], i);
	POST(fi_inject_write(t->ep, "weft", 4, peer, target.base, target.key));
	rma_get(t, peer, &target, 0, buf, 4);
	weft_test_fill(buf, LEN, 99);
	put_vector(t, peer, &target, buf);
	/* The target wakes up, checks, withdraws the key, and sleeps again. */
	weft_test_put(line, "l", 1);
	CHECK(weft_test_get(line, buf, 1));
	rma_check_withdrawn(t, peer, &target);
	weft_test_put(line, "e", 1);
	weft_test_sync(line);
	free(buf);
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LEN), mark;
	struct fid_mr *mr;

	(void)peer;
	(void)arg;
	rma_offer(t, line, region, LEN, &mr);
	weft_test_sync(line); /* lets the peer connect */
	CHECK(weft_test_get(line, &mark, 1));
	CHECK(weft_test_get(line, &mark, 1));
	CHECK_EQ(mark, 'l');
	CHECK(weft_test_holds(region, LEN, 99));
	CHECK_OK(fi_close(&mr->fid));
	weft_test_put(line, "c", 1);
	CHECK(weft_test_get(line, &mark, 1));
	weft_test_sync(line);
	free(region);
}

int main(void)
{
	struct weft_test_opts opts = { .caps = RMA_CAPS };

	weft_test_begin(30);
	rma_need_reach();
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	weft_test_pair(&opts, target, initiator, NULL);
	return 0;
}
