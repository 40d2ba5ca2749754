/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where CMA is permitted, the target of RMA takes no part: it makes no call of
 * libfabric while its peer reads and writes its memory. Deregistering takes
 * effect at once nevertheless.
 */
#include "rma_util.h"

#include <sys/uio.h>

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
	struct fi_context context;
	uint64_t word = 0;

	(void)arg;
	/* From now on the target sleeps in read(2). */
	rma_get(t, peer, &target, 0, &word, 8);
	weft_test_sync(line);
	weft_test_put(line, "s", 1);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		weft_test_fill(buf, sizes[i], i);
		rma_put(t, peer, &target, LEN - sizes[i], buf, sizes[i]);
		memset(buf, 0, sizes[i]);
		rma_get(t, peer, &target, LEN - sizes[i], buf, sizes[i]);
		CHECK(weft_test_holds(buf, sizes[i], i));
	}
	POST(fi_inject_write(t->ep, "weft", 4, peer, target.base, target.key));
	rma_get(t, peer, &target, 0, buf, 4);
	weft_test_fill(buf, LEN, 99);
	put_vector(t, peer, &target, buf);
	/* The target wakes up, checks, withdraws the key, and sleeps again. */
	weft_test_put(line, "l", 1);
	CHECK(weft_test_get(line, buf, 1));
	CHECK_OK(fi_read(t->ep, buf, 8, NULL, peer, target.base, target.key,
			 &context));
	CHECK_EQ(rma_wait_refused(t, &context), FI_EKEYREJECTED);
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

/* Whether the kernel lets a parent access its child here. */
static void wait_a_while(struct weft_test_line *line, void *arg)
{
	char mark;

	(void)arg;
	weft_test_get(line, &mark, 1);
}

static bool allowed(void)
{
	static uint64_t word = 5;
	struct weft_test_line line;
	struct iovec remote = { &word, 8 }, local;
	uint64_t got = 0;
	bool is;

	local = (struct iovec){ &got, 8 };
	weft_test_fork(&line, wait_a_while, NULL);
	is = process_vm_readv(line.pid, &local, 1, &remote, 1, 0) == 8;
	weft_test_kill(&line);
	return is;
}

int main(void)
{
	struct weft_test_opts opts = { .caps = RMA_CAPS };

	weft_test_begin(30);
	if (!allowed()) {
		printf("process_vm_readv is not allowed here\n");
		return 77;
	}
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	weft_test_pair(&opts, target, initiator, NULL);
	return 0;
}
