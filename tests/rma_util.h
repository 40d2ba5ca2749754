/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of RMA and atomics share this beyond common/fabric.h: memory that peers
 * may access, and waiting for their accesses.
 */
#ifndef WEFT_TESTS_RMA_UTIL_H
#define WEFT_TESTS_RMA_UTIL_H

#include "msg_util.h"

#include <sys/uio.h>

#define RMA_CAPS (FI_MSG | FI_TAGGED | FI_RMA)
#define RMA_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A region as a peer names it. */
struct rma_target {
	uint64_t base;
	uint64_t key;
	uint64_t len;
};

/* Addresses are offsets unless the provider requires virtual addresses. */
static inline uint64_t rma_base(const struct weft_test *t, const void *buf)
{
	int mode = t->info->domain_attr->mr_mode;

	return mode & FI_MR_VIRT_ADDR || mode == FI_MR_BASIC ?
		       (uint64_t)(uintptr_t)buf :
		       0;
}

/* Registers @buf. @key is used where applications choose keys. */
static inline struct rma_target rma_expose(struct weft_test *t, void *buf,
					   size_t len, uint64_t access,
					   uint64_t key, struct fid_mr **mr)
{
	struct rma_target target = { .base = rma_base(t, buf), .len = len };

	CHECK_OK(fi_mr_reg(t->domain, buf, len, access, 0, key, 0, mr, NULL));
	target.key = fi_mr_key(*mr);
	return target;
}

/* The same, and sends the key to the peer. */
static inline void rma_offer(struct weft_test *t, struct weft_test_line *line,
			     void *buf, size_t len, struct fid_mr **mr)
{
	struct rma_target target =
		rma_expose(t, buf, len, RMA_ACCESS, 0x77, mr);

	weft_test_put(line, &target, sizeof(target));
}

static inline struct rma_target rma_learn(struct weft_test_line *line)
{
	struct rma_target target;

	CHECK(weft_test_get(line, &target, sizeof(target)));
	return target;
}

/* The next completion is a success of @context with exactly these flags. */
static inline void rma_wait(struct weft_test *t, void *context, uint64_t flags)
{
	struct weft_test_comp comp;

	weft_test_wait(t->txcq, &comp);
	if (comp.ret < 0)
		FAIL("completion with error %d (%s)", -comp.ret,
		     fi_strerror(-comp.ret));
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.entry.flags, flags);
}

/* The next completion is a failure of @context; returns the error. */
static inline int rma_wait_refused(struct weft_test *t, void *context)
{
	struct weft_test_comp comp;

	weft_test_wait(t->txcq, &comp);
	CHECK(comp.ret < 0);
	CHECK(comp.entry.op_context == context);
	return -comp.ret;
}

/* Writes @len bytes to the target at @at, and waits until they are there. */
static inline void rma_put(struct weft_test *t, fi_addr_t peer,
			   const struct rma_target *target, uint64_t at,
			   const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_rma_iov rma = { target->base + at, len, target->key };
	struct fi_context context;
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = peer,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = &context,
	};

	POST(fi_writemsg(t->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	rma_wait(t, &context, FI_RMA | FI_WRITE);
}

static inline void rma_get(struct weft_test *t, fi_addr_t peer,
			   const struct rma_target *target, uint64_t at,
			   void *buf, size_t len)
{
	struct fi_context context;

	POST(fi_read(t->ep, buf, len, NULL, peer, target->base + at,
		     target->key, &context));
	rma_wait(t, &context, FI_RMA | FI_READ);
}

/* The same bytes there and back, at the end of the target. */
static inline void rma_check_size(struct weft_test *t, fi_addr_t peer,
				  const struct rma_target *target, uint8_t *buf,
				  size_t len, uint64_t seed)
{
	weft_test_fill(buf, len, seed);
	rma_put(t, peer, target, target->len - len, buf, len);
	memset(buf, 0, len);
	rma_get(t, peer, target, target->len - len, buf, len);
	CHECK(weft_test_holds(buf, len, seed));
}

/* The target has withdrawn its key: a reader is told so. */
static inline void rma_check_withdrawn(struct weft_test *t, fi_addr_t peer,
				       const struct rma_target *target)
{
	struct fi_context context;
	uint64_t word;

	CHECK_OK(fi_read(t->ep, &word, 8, NULL, peer, target->base, target->key,
			 &context));
	CHECK_EQ(rma_wait_refused(t, &context), FI_EKEYREJECTED);
}

static inline void rma_wait_killed(struct weft_test_line *line, void *arg)
{
	char mark;

	(void)arg;
	weft_test_get(line, &mark, 1);
}

/* Ends the test if the kernel does not let a parent reach its child's memory
 * here. */
static inline void rma_need_reach(void)
{
	static uint64_t word = 5;
	struct weft_test_line line;
	uint64_t got = 0;
	struct iovec remote = { &word, 8 }, local = { &got, 8 };
	bool is;

	weft_test_fork(&line, rma_wait_killed, NULL);
	is = process_vm_readv(line.pid, &local, 1, &remote, 1, 0) == 8;
	weft_test_kill(&line);
	if (is)
		return;
	printf("process_vm_readv is not allowed here\n");
	exit(77);
}

/* Waits until a word that others write has this value. */
static inline void rma_wait_word(const uint64_t *word, uint64_t value)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
		if (weft_test_ms() >= end)
			FAIL("%llx instead of %llx", (unsigned long long)*word,
			     (unsigned long long)value);
		weft_test_progress();
	}
}

#endif
