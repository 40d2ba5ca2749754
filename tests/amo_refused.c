/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that must be refused: wrong key, out of bounds, no right to read or
 * to write, too many elements, unknown types and operations. The initiator gets
 * an error, the target keeps its value, and the next operation works.
 */
#include "amo_util.h"

enum region { BOTH, READ_ONLY, WRITE_ONLY, REGIONS };

static const uint64_t access_of[REGIONS] = { RMA_ACCESS, FI_REMOTE_READ,
					     FI_REMOTE_WRITE };

#define WORDS 4
#define VALUE 0x1111111111111111ull

struct side {
	struct weft_test *t;
	fi_addr_t peer;
	struct rma_target targets[REGIONS];
};

/* All three kinds of atomics at @addr are refused with @err (0: any error). */
static void check_refused(struct side *s, uint64_t addr, uint64_t key,
			  size_t count, int err, unsigned int kinds)
{
	uint64_t operand[WORDS] = { 1 }, compare[WORDS] = { VALUE };
	uint64_t result[WORDS] = { 5 };
	struct fid_ep *ep = s->t->ep;
	struct fi_context context;
	int got;

	for (unsigned int kind = 0; kind < 4; kind++) {
		void *expected = kind == 3 ? NULL : &context;

		if (!(kinds & 1u << kind))
			continue;
		if (kind == 0)
			POST(fi_atomic(ep, operand, count, NULL, s->peer, addr,
				       key, FI_UINT64, FI_SUM, &context));
		if (kind == 1)
			POST(fi_fetch_atomic(ep, operand, count, NULL, result,
					     NULL, s->peer, addr, key,
					     FI_UINT64, FI_SUM, &context));
		if (kind == 2)
			POST(fi_compare_atomic(ep, operand, count, NULL,
					       compare, NULL, result, NULL,
					       s->peer, addr, key, FI_UINT64,
					       FI_CSWAP, &context));
		if (kind == 3)
			POST(fi_inject_atomic(ep, operand, count, s->peer, addr,
					      key, FI_UINT64, FI_SUM));
		/* By packets, the initiator does not wait for an answer to this
		 * one. */
		if (kind == 3 && weft_test_by_packets())
			continue;
		got = rma_wait_refused(s->t, expected);
		if (err)
			CHECK_EQ(got, err);
		CHECK_EQ(result[0], 5);
	}
}

static void check_works(struct side *s)
{
	const struct rma_target *target = &s->targets[BOTH];
	uint64_t operand = 0, result = 0;
	struct fi_context context;

	POST(fi_fetch_atomic(s->t->ep, &operand, 1, NULL, &result, NULL,
			     s->peer, target->base, target->key, FI_UINT64,
			     FI_SUM, &context));
	rma_wait(s->t, &context, FI_ATOMIC | FI_READ);
	CHECK_EQ(result, VALUE);
}

static void try_targets(struct side *s)
{
	const struct rma_target *both = &s->targets[BOTH];
	const uint64_t size = WORDS * 8;

	check_refused(s, both->base, both->key ^ 1ull << 40, 1, FI_EKEYREJECTED,
		      15);
	check_refused(s, both->base + size, both->key, 1, 0, 15);
	check_refused(s, both->base + size - 4, both->key, 1, 0, 15);
	check_refused(s, both->base + 8, both->key, WORDS, 0, 15);
	check_refused(s, both->base - 8, both->key, 1, 0, 15);
	check_refused(s, ~0ull - 3, both->key, 1, 0, 15);
	check_works(s);
	/* To change memory you need the right to write, to fetch the right to
	 * read. */
	check_refused(s, s->targets[READ_ONLY].base, s->targets[READ_ONLY].key,
		      1, 0, 15);
	check_refused(s, s->targets[WRITE_ONLY].base,
		      s->targets[WRITE_ONLY].key, 1, 0, 6);
	check_works(s);
}

/* An operation that only reads works on memory that is only readable. */
static void try_read(struct side *s)
{
	const struct rma_target *target = &s->targets[READ_ONLY];
	uint64_t result = 0;
	struct fi_context context;

	POST(fi_fetch_atomic(s->t->ep, NULL, 1, NULL, &result, NULL, s->peer,
			     target->base, target->key, FI_UINT64,
			     FI_ATOMIC_READ, &context));
	rma_wait(s->t, &context, FI_ATOMIC | FI_READ);
	CHECK_EQ(result, VALUE);
}

/* The initiator can detect these errors, so the call returns them. */
static void try_arguments(struct side *s)
{
	const struct rma_target *both = &s->targets[BOTH];
	struct fid_ep *ep = s->t->ep;
	struct fi_context context;
	uint8_t *buf;
	size_t max = 0, count;

	CHECK_OK(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &max));
	buf = msg_alloc((max + 1) * 8);
	CHECK_EQ(fi_atomic(ep, buf, max + 1, NULL, s->peer, both->base,
			   both->key, FI_UINT64, FI_SUM, &context),
		 -FI_EMSGSIZE);
	CHECK(fi_atomic(ep, buf, 1, NULL, s->peer, both->base, both->key, 77,
			FI_SUM, &context) < 0);
	CHECK(fi_atomic(ep, buf, 1, NULL, s->peer, both->base, both->key,
			FI_UINT64, 77, &context) < 0);
	CHECK(fi_atomic(ep, buf, 1, NULL, s->peer, both->base, both->key,
			(enum fi_datatype) - 1, (enum fi_op) - 1,
			&context) < 0);
	CHECK(fi_atomicvalid(ep, 77, FI_SUM, &count) < 0);
	CHECK(fi_atomicvalid(ep, FI_UINT64, 77, &count) < 0);
	CHECK(fi_atomic(ep, buf, 1, NULL, s->peer + 7, both->base, both->key,
			FI_UINT64, FI_SUM, &context) < 0);
	msg_expect_quiet(s->t->txcq, 1);
	free(buf);
	check_works(s);
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct side s = { .t = t, .peer = peer };

	(void)arg;
	CHECK(weft_test_get(line, s.targets, sizeof(s.targets)));
	check_works(&s);
	try_targets(&s);
	try_read(&s);
	try_arguments(&s);
	weft_test_sync(line);
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	static uint64_t words[REGIONS][WORDS + 2];
	struct rma_target targets[REGIONS];
	struct fid_mr *mr[REGIONS];

	(void)peer;
	(void)arg;
	for (int i = 0; i < REGIONS; i++) {
		for (int k = 0; k < WORDS + 2; k++)
			words[i][k] = VALUE;
		targets[i] = rma_expose(t, &words[i][1], WORDS * 8,
					access_of[i], 60 + (uint64_t)i, &mr[i]);
	}
	weft_test_put(line, targets, sizeof(targets));
	weft_test_sync(line);
	for (int i = 0; i < REGIONS; i++) {
		for (int k = 0; k < WORDS + 2; k++)
			CHECK_EQ(words[i][k], VALUE);
		CHECK_OK(fi_close(&mr[i]->fid));
	}
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = { .caps = AMO_CAPS };

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, target, initiator, NULL);
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
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
