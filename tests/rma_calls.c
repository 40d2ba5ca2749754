/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of fi_rma(3) in all sizes, with vectors on both sides, to another
 * process and to the endpoint itself; with CMA and through the ring; without
 * and with the lock. Every member of the completions is checked, and no byte
 * outside the named ones is touched.
 */
#include "rma_util.h"

#define DATA 0x8123456789abcdefull
#define LARGEST ((size_t)1 << 20)
#define AT 61 /* aligned to nothing */
#define PARTS_MAX 16

enum how {
	READ,
	READV,
	READMSG,
	WRITE,
	WRITEV,
	WRITEMSG,
	WRITEMSG_DATA,
	WRITEMSG_INJECT,
	WRITEDATA,
	INJECT_WRITE,
	INJECT_WRITEDATA,
	HOWS,
};

static const size_t sizes[] = {
	0, 1, 7, 8, 64, 4095, 4096, 4097, 65536, LARGEST
};

struct way {
	enum how how;
	size_t len;
	uint64_t seed;
};

static bool reads(enum how how)
{
	return how <= READMSG;
}

static bool injects(enum how how)
{
	return how == INJECT_WRITE || how == INJECT_WRITEDATA ||
	       how == WRITEMSG_INJECT;
}

static bool has_data(enum how how)
{
	return how == WRITEMSG_DATA || how == WRITEDATA ||
	       how == INJECT_WRITEDATA;
}

static bool next_way(struct way *w, size_t *at, size_t inject_size)
{
	do {
		size_t i = (*at)++;

		if (i / HOWS >= COUNT_OF(sizes))
			return false;
		*w = (struct way){ i % HOWS, sizes[i / HOWS], i };
	} while (injects(w->how) && w->len > inject_size);
	return true;
}

/* -- initiator ------------------------------------------------------------- */

/* Parts of different sizes; some are empty if there are few bytes. */
static void cut(struct iovec *iov, size_t parts, void *buf, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < parts; i++) {
		size_t part =
			i == parts - 1 ? len - at : (len - at) * (i + 1) / 7;

		iov[i] = (struct iovec){ (char *)buf + at, part };
		at += part;
	}
}

/* Parts that differ from those of the local side. */
static void cut_remote(struct fi_rma_iov *rma, size_t parts, uint64_t addr,
		       size_t len, uint64_t key)
{
	size_t at = 0;

	for (size_t i = 0; i < parts; i++) {
		size_t part =
			i == parts - 1 ? len - at : (len - at) * 2 / (i + 3);

		rma[i] = (struct fi_rma_iov){ addr + at, part, key };
		at += part;
	}
}

static void start(struct weft_test *t, const struct way *w, void *buf,
		  fi_addr_t peer, const struct rma_target *target,
		  void *context)
{
	uint64_t addr = target->base + AT, key = target->key;
	size_t parts = t->info->tx_attr->iov_limit;
	struct fi_rma_iov rma[PARTS_MAX];
	struct iovec iov[PARTS_MAX];
	struct fi_msg_rma msg = {
		.msg_iov = iov,
		.iov_count = parts,
		.addr = peer,
		.rma_iov = rma,
		.rma_iov_count = t->info->tx_attr->rma_iov_limit,
		.context = context,
		.data = DATA,
	};
	struct fid_ep *ep = t->ep;
	const uint64_t deliver = FI_COMPLETION | FI_DELIVERY_COMPLETE;

	CHECK(parts <= PARTS_MAX && msg.rma_iov_count <= PARTS_MAX);
	cut(iov, parts, buf, w->len);
	cut_remote(rma, msg.rma_iov_count, addr, w->len, key);
	switch (w->how) {
	case READ:
		POST(fi_read(ep, buf, w->len, NULL, peer, addr, key, context));
		break;
	case READV:
		POST(fi_readv(ep, iov, NULL, parts, peer, addr, key, context));
		break;
	case READMSG:
		POST(fi_readmsg(ep, &msg, FI_COMPLETION));
		break;
	case WRITE:
		POST(fi_write(ep, buf, w->len, NULL, peer, addr, key, context));
		break;
	case WRITEV:
		POST(fi_writev(ep, iov, NULL, parts, peer, addr, key, context));
		break;
	case WRITEMSG:
		POST(fi_writemsg(ep, &msg, deliver));
		break;
	case WRITEMSG_DATA:
		POST(fi_writemsg(ep, &msg, deliver | FI_REMOTE_CQ_DATA));
		break;
	case WRITEMSG_INJECT:
		POST(fi_writemsg(ep, &msg, deliver | FI_INJECT));
		break;
	case WRITEDATA:
		POST(fi_writedata(ep, buf, w->len, NULL, DATA, peer, addr, key,
				  context));
		break;
	case INJECT_WRITE:
		POST(fi_inject_write(ep, buf, w->len, peer, addr, key));
		break;
	default:
		POST(fi_inject_writedata(ep, buf, w->len, DATA, peer, addr,
					 key));
	}
}

/* Posts the operation and waits for its completion. Then a read has returned
 * its data, and a write (except one without a completion) has delivered it. */
static void initiate(struct weft_test *t, const struct way *w, fi_addr_t peer,
		     const struct rma_target *target)
{
	uint8_t *buf = msg_alloc(w->len);
	struct fi_context context;
	struct weft_test_comp comp;

	if (!reads(w->how))
		weft_test_fill(buf, w->len, w->seed);
	start(t, w, buf, peer, target, &context);
	if (injects(w->how))
		memset(buf, 0, w->len); /* we may use it again */
	if (w->how == INJECT_WRITE || w->how == INJECT_WRITEDATA) {
		CHECK(!weft_test_poll(t->txcq, &comp));
	} else {
		rma_wait(t, &context,
			 FI_RMA | (reads(w->how) ? FI_READ : FI_WRITE));
	}
	if (reads(w->how))
		CHECK(weft_test_holds(buf, w->len, w->seed));
	CHECK_EQ(buf[w->len], 0xee);
	free(buf);
}

/* -- target ---------------------------------------------------------------- */

static void prepare(uint8_t *region, const struct way *w)
{
	memset(region, 0xdd, AT + w->len + 64);
	if (reads(w->how))
		weft_test_fill(region + AT, w->len, w->seed);
}

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* An injected write may still be on its way. Waits until its last byte differs
 * from what was there before (what is written never begins or ends with
 * 0xdd). */
static void await(const uint8_t *region, const struct way *w)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	uint8_t *want = msg_alloc(w->len);

	weft_test_fill(want, w->len, w->seed);
	while (memcmp(region + AT, want, w->len) && weft_test_ms() < end)
		weft_test_progress();
	free(want);
}

static void check_target(struct weft_test *t, const uint8_t *region,
			 const struct way *w)
{
	struct weft_test_comp comp;

	if (has_data(w->how)) {
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.entry.flags,
			 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		CHECK_EQ(comp.entry.data, DATA);
		CHECK(!comp.entry.op_context);
	} else if (injects(w->how)) {
		await(region, w);
	}
	CHECK(weft_test_holds(region + AT, w->len, w->seed));
	CHECK(all_are(region, AT, 0xdd));
	CHECK(all_are(region + AT + w->len, 64, 0xdd));
	CHECK(!weft_test_poll(t->rxcq, &comp));
}

/* -- two processes --------------------------------------------------------- */

static void target_side(struct weft_test *t, fi_addr_t peer,
			struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(AT + LARGEST + 64);
	struct fid_mr *mr;
	struct way w;
	size_t at = 0;

	(void)peer;
	(void)arg;
	rma_offer(t, line, region, AT + LARGEST + 64, &mr);
	while (next_way(&w, &at, t->info->tx_attr->inject_size)) {
		prepare(region, &w);
		weft_test_sync(line);
		weft_test_sync(line);
		check_target(t, region, &w);
	}
	CHECK_OK(fi_close(&mr->fid));
	free(region);
}

static void initiator_side(struct weft_test *t, fi_addr_t peer,
			   struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	struct way w;
	size_t at = 0;

	(void)arg;
	while (next_way(&w, &at, t->info->tx_attr->inject_size)) {
		weft_test_sync(line);
		initiate(t, &w, peer, &target);
		weft_test_sync(line);
	}
}

/* -- to itself ------------------------------------------------------------- */

static void to_self(const struct weft_test_opts *opts)
{
	uint8_t *region = msg_alloc(AT + LARGEST + 64);
	struct rma_target target;
	struct weft_test t;
	struct fid_mr *mr;
	fi_addr_t self;
	struct way w;
	size_t at = 0;

	weft_test_open(&t, opts);
	self = weft_test_know(&t, &t);
	target = rma_expose(&t, region, AT + LARGEST + 64, RMA_ACCESS, 5, &mr);
	while (next_way(&w, &at, t.info->tx_attr->inject_size)) {
		prepare(region, &w);
		initiate(&t, &w, self, &target);
		check_target(&t, region, &w);
	}
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t);
	free(region);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = {
		.caps = RMA_CAPS,
		.tx_flags = FI_DELIVERY_COMPLETE,
		.threading = *(enum fi_threading *)arg,
	};

	(void)line;
	weft_test_load();
	weft_test_pair(&opts, target_side, initiator_side, NULL);
	to_self(&opts);
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	weft_test_pair(&opts, target_side, initiator_side, NULL);
	to_self(&opts);
}

int main(void)
{
	enum fi_threading threading = FI_THREAD_DOMAIN;

	weft_test_begin(100);
	msg_run_apart(run, &threading);
	threading = FI_THREAD_SAFE;
	msg_run_apart(run, &threading);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, &threading);
	return 0;
}
