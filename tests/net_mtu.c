/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of the link between two hosts changes while messages of all sizes,
 * writes and reads are under way: from 9000 to 1500 bytes and less and back, at
 * both ends. Nothing fails, nothing is lost.
 */
#include "common/net.h"
#include "rma_util.h"

#define MESSAGES 12
#define LARGE ((size_t)1 << 20)
#define ROUNDS 5

static const unsigned int mtus[ROUNDS] = { 9000, 1500, 9000, 1280, 4000 };
static const size_t sizes[] = { 8, 1400, 8900, 40000, LARGE };

static size_t size_of(int i)
{
	return sizes[(size_t)i % COUNT_OF(sizes)];
}

/* One end after the other: for a while one sends packets that the other does not
 * take. */
static void change(unsigned int mtu)
{
	net_ip(0, "link set link0 mtu %u", mtu);
	weft_test_progress_for(20);
	net_ip(1, "link set link0 mtu %u", mtu);
}

struct work {
	uint8_t *out, *in;
	struct fi_context sends[MESSAGES], recvs[MESSAGES], access[2];
	struct rma_target target;
};

static void begin(struct weft_test *t, fi_addr_t peer, struct work *w,
		  uint64_t round, bool accesses)
{
	for (int i = 0; i < MESSAGES; i++)
		CHECK_OK(weft_test_trecv(t, w->in + LARGE * (size_t)i, LARGE,
					 round << 8 | (uint64_t)i, 0,
					 &w->recvs[i]));
	for (int i = 0; i < MESSAGES; i++)
		CHECK_OK(weft_test_tsend(t, w->out, size_of(i), peer,
					 round << 8 | (uint64_t)i,
					 &w->sends[i]));
	if (!accesses)
		return;
	POST(fi_write(t->ep, w->out, LARGE, NULL, peer, w->target.base,
		      w->target.key, &w->access[0]));
	POST(fi_read(t->ep, w->in + LARGE * MESSAGES, LARGE, NULL, peer,
		     w->target.base + LARGE, w->target.key, &w->access[1]));
}

static void wait_for(struct fid_cq *cq, int count)
{
	struct weft_test_comp comp;

	while (count--) {
		weft_test_wait(cq, &comp);
		if (comp.ret != 1)
			FAIL("failed: %s", fi_strerror(-comp.ret));
	}
}

static void end(struct weft_test *t, struct work *w, bool accesses)
{
	wait_for(t->txcq, MESSAGES + (accesses ? 2 : 0));
	wait_for(t->rxcq, MESSAGES);
	for (int i = 0; i < MESSAGES; i++)
		CHECK(weft_test_holds(w->in + LARGE * (size_t)i, size_of(i),
				      1));
}

static struct work *make(void)
{
	struct work *w = calloc(1, sizeof(*w));

	CHECK(w);
	w->out = msg_alloc(LARGE);
	w->in = msg_alloc(LARGE * (MESSAGES + 1));
	weft_test_fill(w->out, LARGE, 1);
	return w;
}

static void drop(struct work *w)
{
	free(w->out);
	free(w->in);
	free(w);
}

static void far_side(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(2 * LARGE);
	struct work *w = make();
	struct fid_mr *mr;

	(void)arg;
	weft_test_fill(region + LARGE, LARGE, 2);
	rma_offer(t, line, region, 2 * LARGE, &mr);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		memset(w->in, 0, LARGE * MESSAGES);
		memset(region, 0, LARGE);
		weft_test_sync(line);
		begin(t, peer, w, i, false);
		end(t, w, false);
		weft_test_sync(line);
		CHECK(weft_test_holds(region, LARGE, 1));
	}
	CHECK_OK(fi_close(&mr->fid));
	free(region);
	drop(w);
}

static void near_side(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct work *w = make();

	(void)arg;
	w->target = rma_learn(line);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		memset(w->in, 0, LARGE * (MESSAGES + 1));
		weft_test_sync(line);
		begin(t, peer, w, i, true);
		weft_test_progress();
		change(mtus[i]);
		end(t, w, true);
		CHECK(weft_test_holds(w->in + LARGE * MESSAGES, LARGE, 2));
		weft_test_sync(line);
		printf("MTU %u: good\n", mtus[i]);
	}
	drop(w);
}

int main(void)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS };

	weft_test_begin(110);
	net_begin(9000);
	weft_test_pair(&opts, far_side, near_side, NULL);
	return 0;
}
