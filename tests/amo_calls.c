/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of fi_atomic(3) with every operation on every datatype: the
 * provider does what fi_atomicvalid() and fi_query_atomic() promise, and
 * refuses everything else with -FI_EOPNOTSUPP. Results, target memory and
 * completions are compared with plain C. Between two processes, with and
 * without CMA, and to the endpoint itself.
 */
#include "amo_util.h"

#define ELEMENTS 6
#define BYTES (ELEMENTS * WEFT_TEST_AMO_SIZE_MAX)
#define UNALIGNED 3

enum kind { BASE, FETCH, COMPARE, KINDS };
enum form { PLAIN, VECTOR, MSG, INJECT, FORMS };

/* One operation and its arguments. */
struct act {
	struct weft_test *t;
	fi_addr_t peer;
	struct rma_target target;
	enum fi_datatype type;
	enum fi_op op;
	enum kind kind;
	enum form form;
	size_t count;
	size_t size;  /* of an element */
	bool deliver; /* FI_DELIVERY_COMPLETE */
	uint8_t operand[BYTES];
	uint8_t compare[BYTES];
	uint8_t result[BYTES];
	struct fi_context context;
};

/* -- the calls ------------------------------------------------------------- */

/* The elements in two pieces, if there are two. */
static size_t cut(struct fi_ioc *ioc, uint8_t *buf, const struct act *a,
		  size_t first)
{
	if (a->count < 2 || !first) {
		ioc[0] = (struct fi_ioc){ buf, a->count };
		return 1;
	}
	ioc[0] = (struct fi_ioc){ buf, first };
	ioc[1] = (struct fi_ioc){ buf + first * a->size, a->count - first };
	return 2;
}

static size_t cut_remote(struct fi_rma_ioc *rma, const struct act *a)
{
	uint64_t addr = a->target.base, key = a->target.key;
	size_t half = a->count / 2;

	if (a->count < 2 || a->t->info->tx_attr->rma_iov_limit < 2) {
		rma[0] = (struct fi_rma_ioc){ addr, a->count, key };
		return 1;
	}
	rma[0] = (struct fi_rma_ioc){ addr, half, key };
	rma[1] = (struct fi_rma_ioc){ addr + half * a->size, a->count - half,
				      key };
	return 2;
}

static ssize_t call_plain(struct act *a)
{
	struct fid_ep *ep = a->t->ep;
	uint64_t addr = a->target.base, key = a->target.key;
	bool reads = a->op == FI_ATOMIC_READ;

	if (a->form == INJECT)
		return fi_inject_atomic(ep, a->operand, a->count, a->peer, addr,
					key, a->type, a->op);
	switch (a->kind) {
	case BASE:
		return fi_atomic(ep, a->operand, a->count, NULL, a->peer, addr,
				 key, a->type, a->op, &a->context);
	case FETCH:
		return fi_fetch_atomic(ep, reads ? NULL : a->operand, a->count,
				       NULL, a->result, NULL, a->peer, addr,
				       key, a->type, a->op, &a->context);
	default:
		return fi_compare_atomic(ep, a->operand, a->count, NULL,
					 a->compare, NULL, a->result, NULL,
					 a->peer, addr, key, a->type, a->op,
					 &a->context);
	}
}

static ssize_t call_vector(struct act *a)
{
	struct fi_ioc op[2], cmp[2], res[2];
	size_t ops = cut(op, a->operand, a, 1);
	size_t cmps = cut(cmp, a->compare, a, 2);
	size_t ress = cut(res, a->result, a, a->count - 1);
	uint64_t addr = a->target.base, key = a->target.key;

	switch (a->kind) {
	case BASE:
		return fi_atomicv(a->t->ep, op, NULL, ops, a->peer, addr, key,
				  a->type, a->op, &a->context);
	case FETCH:
		return fi_fetch_atomicv(a->t->ep, op, NULL, ops, res, NULL,
					ress, a->peer, addr, key, a->type,
					a->op, &a->context);
	default:
		return fi_compare_atomicv(a->t->ep, op, NULL, ops, cmp, NULL,
					  cmps, res, NULL, ress, a->peer, addr,
					  key, a->type, a->op, &a->context);
	}
}

static ssize_t call_msg(struct act *a)
{
	struct fi_ioc op[2], cmp[2], res[2];
	struct fi_rma_ioc rma[2];
	struct fi_msg_atomic msg = {
		.msg_iov = op,
		.iov_count = cut(op, a->operand, a, 1),
		.addr = a->peer,
		.rma_iov = rma,
		.rma_iov_count = cut_remote(rma, a),
		.datatype = a->type,
		.op = a->op,
		.context = &a->context,
	};
	size_t cmps = cut(cmp, a->compare, a, 2);
	size_t ress = cut(res, a->result, a, a->count - 1);
	uint64_t flags =
		FI_COMPLETION | (a->deliver ? FI_DELIVERY_COMPLETE : 0);

	switch (a->kind) {
	case BASE:
		return fi_atomicmsg(a->t->ep, &msg, flags);
	case FETCH:
		return fi_fetch_atomicmsg(a->t->ep, &msg, res, NULL, ress,
					  flags);
	default:
		return fi_compare_atomicmsg(a->t->ep, &msg, cmp, NULL, cmps,
					    res, NULL, ress, flags);
	}
}

static ssize_t call(struct act *a)
{
	return a->form == VECTOR ? call_vector(a) :
	       a->form == MSG	 ? call_msg(a) :
				   call_plain(a);
}

/* -- what is promised ------------------------------------------------------ */

/* fi_atomicvalid() of each kind of call knows only the operations of that
 * kind. */
static bool belongs(enum kind kind, enum fi_op op)
{
	if (op >= FI_CSWAP)
		return kind == COMPARE;
	return kind == FETCH || (kind == BASE && op != FI_ATOMIC_READ);
}

static int valid(struct act *a, size_t *count)
{
	struct fid_ep *ep = a->t->ep;

	return a->kind == BASE ?
		       fi_atomicvalid(ep, a->type, a->op, count) :
	       a->kind == FETCH ?
		       fi_fetch_atomicvalid(ep, a->type, a->op, count) :
		       fi_compare_atomicvalid(ep, a->type, a->op, count);
}

/* Both functions agree, and their answer is the expected one. */
static bool check_promise(struct act *a)
{
	static const uint64_t flags[KINDS] = { 0, FI_FETCH_ATOMIC,
					       FI_COMPARE_ATOMIC };
	bool should = belongs(a->kind, a->op) &&
		      weft_test_amo_defined(a->type, a->op);
	struct fi_atomic_attr attr = { 0 };
	size_t count = 0;
	int err = valid(a, &count);

	CHECK_EQ(fi_query_atomic(a->t->domain, a->type, a->op, &attr,
				 flags[a->kind]),
		 err);
	if (!should) {
		CHECK_EQ(err, -FI_EOPNOTSUPP);
		return false;
	}
	if (err)
		FAIL("kind %d, operation %d, type %d: %s", a->kind, a->op,
		     a->type, fi_strerror(-err));
	CHECK_EQ(attr.size, a->size);
	CHECK_EQ(attr.count, count);
	CHECK(count >= ELEMENTS);
	return true;
}

/* -- one of all ------------------------------------------------------------ */

static void perform(struct act *a, uint64_t seed)
{
	uint8_t before[BYTES], want[BYTES], after[BYTES];
	size_t bytes = a->count * a->size;

	memset(before, 0x55, BYTES);
	memset(a->result, 0xee, BYTES);
	for (size_t i = 0; i < a->count; i++) {
		weft_test_amo_value(a->type, a->operand + i * a->size,
				    seed + i);
		weft_test_amo_value(a->type, before + i * a->size,
				    seed * 5 + i);
		/* Sometimes equal to the value in memory. */
		weft_test_amo_value(a->type, a->compare + i * a->size,
				    i % 2 ? seed * 5 + i : seed * 7 + i);
	}
	rma_put(a->t, a->peer, &a->target, 0, before, BYTES);
	POST(call(a));
	if (a->form == INJECT)
		memset(a->operand, 0xaa, BYTES);
	else
		rma_wait(a->t, &a->context,
			 FI_ATOMIC | (a->kind == BASE ? FI_WRITE : FI_READ));
	memcpy(want, before, BYTES);
	for (size_t i = 0; i < a->count; i++) {
		uint8_t operand[WEFT_TEST_AMO_SIZE_MAX];

		weft_test_amo_value(a->type, operand, seed + i);
		weft_test_amo_apply(a->type, a->op, want + i * a->size, operand,
				    a->compare + i * a->size);
	}
	amo_settle(a->t, a->peer, &a->target);
	rma_get(a->t, a->peer, &a->target, 0, after, BYTES);
	if (!amo_same(a->type, after, want, a->count))
		FAIL("kind %d, form %d, operation %d, type %d: wrong result",
		     a->kind, a->form, a->op, a->type);
	CHECK(!memcmp(after + bytes, before + bytes, BYTES - bytes));
	for (size_t i = 0; a->kind != BASE && i < a->count; i++)
		CHECK(weft_test_amo_same(a->type, a->result + i * a->size,
					 before + i * a->size));
	CHECK(a->kind == BASE || a->result[bytes] == 0xee);
}

static void check_one(struct act *a, uint64_t seed)
{
	a->size = weft_test_amo_size(a->type);
	if (!check_promise(a)) {
		a->count = 1;
		if (a->form != INJECT || a->kind == BASE)
			CHECK_EQ(call(a), -FI_EOPNOTSUPP);
		return;
	}
	if (a->form == INJECT && a->kind != BASE)
		return;
	a->count = seed % 2 ? ELEMENTS - 1 : 1;
	a->deliver = seed % 3;
	perform(a, seed);
}

/* @step: how many combinations to skip each time. */
static void check_all(struct act *a, size_t step)
{
	const size_t all =
		(size_t)KINDS * FORMS * WEFT_TEST_AMO_OPS * WEFT_TEST_AMO_TYPES;

	for (size_t i = 0; i < all; i += step) {
		size_t rest = i;

		a->type = rest % WEFT_TEST_AMO_TYPES;
		rest /= WEFT_TEST_AMO_TYPES;
		a->op = rest % WEFT_TEST_AMO_OPS;
		rest /= WEFT_TEST_AMO_OPS;
		a->kind = rest % KINDS;
		a->form = rest / KINDS;
		check_one(a, i);
	}
}

/* Bug: near the end of the ring's window, fi_atomicmsg() with FI_INJECT and
 * several segments returned -FI_EAGAIN for ever, although both sides made
 * progress. */
static void inject_segments(struct act *a)
{
	const size_t limit = a->t->info->tx_attr->rma_iov_limit;
	uint64_t sums[4] = { 0 }, got[4];

	rma_put(a->t, a->peer, &a->target, 0, sums, sizeof(sums));
	for (size_t segs = 2; segs <= 4 && segs <= limit; segs++) {
		for (uint64_t i = 0; i < 200; i++) {
			uint64_t values[4] = { i, i + 1, i + 2, i + 3 };
			struct fi_ioc ioc = { values, segs };
			struct fi_rma_ioc rma[4];
			struct fi_msg_atomic msg = {
				.msg_iov = &ioc,
				.iov_count = 1,
				.addr = a->peer,
				.rma_iov = rma,
				.rma_iov_count = segs,
				.datatype = FI_UINT64,
				.op = FI_SUM,
				.context = &a->context,
			};

			for (size_t k = 0; k < segs; k++) {
				rma[k] = (struct fi_rma_ioc){
					a->target.base + k * 8, 1, a->target.key
				};
				sums[k] += values[k];
			}
			POST(fi_atomicmsg(a->t->ep, &msg, FI_INJECT));
			memset(values, 0xaa, sizeof(values));
			rma_wait(a->t, &a->context, FI_ATOMIC | FI_WRITE);
		}
	}
	amo_settle(a->t, a->peer, &a->target);
	rma_get(a->t, a->peer, &a->target, 0, got, sizeof(got));
	CHECK(!memcmp(got, sums, sizeof(got)));
}

/* -- sides ----------------------------------------------------------------- */

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct act a = { .t = t, .peer = peer, .target = rma_learn(line) };

	/* Sometimes unaligned. */
	if (*(size_t *)arg > 1)
		a.target.base += UNALIGNED;
	check_all(&a, *(size_t *)arg);
	inject_segments(&a);
	weft_test_sync(line);
}

static void to_self(const struct weft_test_opts *opts, size_t step)
{
	_Alignas(32) uint8_t memory[BYTES + UNALIGNED];
	struct act a = { 0 };
	struct weft_test t;
	struct fid_mr *mr;

	weft_test_open(&t, opts);
	a.t = &t;
	a.peer = weft_test_know(&t, &t);
	a.target = rma_expose(&t, memory, sizeof(memory), RMA_ACCESS, 1, &mr);
	if (step > 1)
		a.target.base += UNALIGNED;
	check_all(&a, step);
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = {
		.caps = AMO_CAPS,
		.msg_order = FI_ORDER_ATOMIC_RAW,
	};
	size_t step = 1;

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, amo_lend, initiator, &step);
	to_self(&opts, step);
	opts.threading = FI_THREAD_SAFE;
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	step = 7;
	weft_test_pair(&opts, amo_lend, initiator, &step);
	to_self(&opts, step);
}

int main(void)
{
	weft_test_begin(100);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
