/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses without permission: wrong and withdrawn keys, ranges that leave the
 * region by one byte at either end or wrap around, reading memory that may only
 * be written and the reverse. Each is an error completion at the initiator; no
 * byte moves in either direction, and both endpoints continue to work.
 */
#include "rma_util.h"

#define LEN 100000
#define SEED 17

enum region { BOTH, READ_ONLY, WRITE_ONLY, CLOSED, REGIONS };

static const uint64_t access_of[REGIONS] = {
	[BOTH] = RMA_ACCESS,
	[READ_ONLY] = FI_REMOTE_READ,
	[WRITE_ONLY] = FI_REMOTE_WRITE,
	[CLOSED] = RMA_ACCESS,
};

static const size_t sizes[] = { 1, 8, 200, 5000, LEN / 2 };

/* -- initiator ------------------------------------------------------------- */

struct attempt {
	struct weft_test *t;
	fi_addr_t peer;
	uint64_t addr;
	uint64_t key;
	size_t len;
	int err; /* 0: any error for a range or an access */
};

static void check_err(const struct attempt *a, int err)
{
	if (a->err)
		CHECK_EQ(err, a->err);
	else
		CHECK(err == FI_EKEYREJECTED || err == FI_EACCES ||
		      err == FI_EINVAL);
}

static void try_read(const struct attempt *a)
{
	uint8_t *buf = msg_alloc(a->len);
	struct fi_context context;

	CHECK_OK(fi_read(a->t->ep, buf, a->len, NULL, a->peer, a->addr, a->key,
			 &context));
	check_err(a, rma_wait_refused(a->t, &context));
	for (size_t i = 0; i < a->len; i++)
		CHECK_EQ(buf[i], 0xee);
	free(buf);
}

static bool over_tcp(void)
{
	const char *nic = getenv("FI_WEFT_NIC");

	return !nic || !strcmp(nic, "tcp");
}

static void try_write(const struct attempt *a)
{
	uint8_t *buf = msg_alloc(a->len);
	struct fi_context context;

	CHECK_OK(fi_write(a->t->ep, buf, a->len, NULL, a->peer, a->addr, a->key,
			  &context));
	check_err(a, rma_wait_refused(a->t, &context));
	/* No completion was requested; a failure is reported nevertheless. */
	if (a->len <= a->t->info->tx_attr->inject_size) {
		CHECK_OK(fi_inject_write(a->t->ep, buf, a->len, a->peer,
					 a->addr, a->key));
		/* A packet has no answer that the initiator waits for. Over TCP
		 * the device writes instead, and reports the failure. */
		if (!weft_test_by_packets() || over_tcp())
			check_err(a, rma_wait_refused(a->t, NULL));
	}
	free(buf);
}

static void try_both(const struct attempt *a)
{
	try_read(a);
	try_write(a);
}

/* If one of several parts is wrong, no part is written. */
static void try_vector(const struct attempt *a, const struct rma_target *good)
{
	uint8_t *buf = msg_alloc(3 * a->len);
	struct iovec iov = { buf, 3 * a->len };
	struct fi_rma_iov rma[3] = {
		{ good->base, a->len, good->key },
		{ a->addr, a->len, a->key },
		{ good->base, a->len, good->key },
	};
	struct fi_context context;
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = a->peer,
		.rma_iov = rma,
		.rma_iov_count = 3,
		.context = &context,
	};

	if (a->t->info->tx_attr->rma_iov_limit >= 3) {
		CHECK_OK(fi_writemsg(a->t->ep, &msg, FI_COMPLETION));
		check_err(a, rma_wait_refused(a->t, &context));
	}
	free(buf);
}

static void try_ranges(struct weft_test *t, fi_addr_t peer,
		       const struct rma_target *target, size_t len)
{
	const uint64_t last = target->base + LEN;
	const struct attempt attempts[] = {
		/* one byte too far */
		{ t, peer, last - len + 1, target->key, len, 0 },
		/* one byte before the start; with offsets this wraps around */
		{ t, peer, target->base - 1, target->key, len, 0 },
		/* behind the region, and at the end of the address space */
		{ t, peer, last, target->key, len, 0 },
		{ t, peer, ~0ull - len + 1, target->key, len, 0 },
		{ t, peer, ~0ull, target->key, len, 0 },
		{ t, peer, 1ull << 63, target->key, len, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(attempts); i++)
		try_both(&attempts[i]);
	try_vector(&attempts[0], target);
}

static void try_keys(struct weft_test *t, fi_addr_t peer,
		     const struct rma_target *targets, size_t len)
{
	const struct rma_target *both = &targets[BOTH];
	const uint64_t keys[] = {
		targets[CLOSED].key, both->key ^ 1ull << 63, both->key ^ 0x1000,
		both->key + 1000000, FI_KEY_NOTAVAIL,
	};

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		struct attempt a = { t,	      peer, both->base,
				     keys[i], len,  FI_EKEYREJECTED };

		try_both(&a);
		try_vector(&a, both);
	}
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target targets[REGIONS];
	uint8_t *buf = msg_alloc(LEN);

	(void)arg;
	CHECK(weft_test_get(line, targets, sizeof(targets)));
	/* Permitted accesses work, at the first and at the last byte ... */
	rma_get(t, peer, &targets[BOTH], 0, buf, LEN);
	CHECK(weft_test_holds(buf, LEN, SEED + BOTH));
	rma_put(t, peer, &targets[BOTH], LEN - 1, buf + LEN - 1, 1);
	rma_get(t, peer, &targets[READ_ONLY], 0, buf, LEN);
	CHECK(weft_test_holds(buf, LEN, SEED + READ_ONLY));
	weft_test_fill(buf, LEN, SEED + WRITE_ONLY);
	rma_put(t, peer, &targets[WRITE_ONLY], 0, buf, LEN);
	/* ... others do not, and neither affects the other. */
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct attempt a = { t,
				     peer,
				     targets[READ_ONLY].base,
				     targets[READ_ONLY].key,
				     sizes[i],
				     0 };

		try_keys(t, peer, targets, sizes[i]);
		try_ranges(t, peer, &targets[BOTH], sizes[i]);
		try_write(&a);
		try_vector(&a, &targets[BOTH]);
		a.addr = targets[WRITE_ONLY].base;
		a.key = targets[WRITE_ONLY].key;
		try_read(&a);
		rma_get(t, peer, &targets[BOTH], 0, buf, LEN);
		CHECK(weft_test_holds(buf, LEN, SEED + BOTH));
	}
	weft_test_sync(line);
	CHECK_OK(weft_test_tsend(t, buf, LEN, peer, 1, NULL));
	weft_test_wait_ok(t->txcq, NULL);
	weft_test_sync(line);
	free(buf);
}

/* -- target ---------------------------------------------------------------- */

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct rma_target targets[REGIONS];
	struct fid_mr *mr[REGIONS];
	uint8_t *buf[REGIONS], *in = msg_alloc(LEN);

	(void)peer;
	(void)arg;
	for (int i = 0; i < REGIONS; i++) {
		/* The bytes around a region are ours, too, and must not
		 * change. */
		buf[i] = msg_alloc(LEN + 1);
		weft_test_fill(buf[i] + 1, LEN, SEED + (uint64_t)i);
		targets[i] = rma_expose(t, buf[i] + 1, LEN, access_of[i],
					40 + (uint64_t)i, &mr[i]);
	}
	CHECK_OK(fi_close(&mr[CLOSED]->fid));
	weft_test_put(line, targets, sizeof(targets));
	weft_test_sync(line);
	for (int i = 0; i < REGIONS; i++) {
		CHECK(weft_test_holds(buf[i] + 1, LEN, SEED + (uint64_t)i));
		CHECK_EQ(buf[i][0], 0xee);
		CHECK_EQ(buf[i][LEN + 1], 0xee);
		if (i != CLOSED)
			CHECK_OK(fi_close(&mr[i]->fid));
		free(buf[i]);
	}
	/* None of this is reported at the target, and messages still arrive. */
	msg_expect_quiet(t->rxcq, 1);
	CHECK_OK(weft_test_trecv(t, in, LEN, 1, 0, NULL));
	weft_test_wait_ok(t->rxcq, NULL);
	CHECK(weft_test_holds(in, LEN, SEED + BOTH));
	weft_test_sync(line);
	free(in);
}

static void run(struct weft_test_line *line, void *arg)
{
	/* Bug: an endpoint whose program had removed the directions, which means
	 * all of them, was no target. */
	struct weft_test_opts opts = { .caps = RMA_CAPS, .bare_caps = true };

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
