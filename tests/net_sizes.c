/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between two hosts, messages of every kind and writes and reads, from 0 bytes
 * to 8 MiB, expected and unexpected: over IPv4 and IPv6, in packets of 1500 and
 * 9000 bytes. weft finds the packet size by itself, and packets are never
 * fragmented.
 */
#include "common/net.h"
#include "rma_util.h"

#define LARGEST ((size_t)8 << 20)
#define DATA 0x123456789abcdefull
#define TAG 0xfedcba9876543210ull

static const size_t sizes[] = {
	0,    1,    8,	   64,	  1000,	 1400,	 1473,	  2900,	   4096,
	8192, 8973, 65535, 65536, 65537, 300001, 1 << 20, LARGEST,
};

enum kind { PLAIN, TAGGED, WITH_DATA, TAGGED_DATA, DELIVERED, KINDS };

static bool is_tagged(enum kind kind)
{
	return kind == TAGGED || kind == TAGGED_DATA || kind == DELIVERED;
}

static bool has_data(enum kind kind)
{
	return kind == WITH_DATA || kind == TAGGED_DATA;
}

/* -- messages --------------------------------------------------------------- */

static void post_send(struct weft_test *t, fi_addr_t peer, enum kind kind,
		      const void *buf, size_t len, void *context)
{
	switch (kind) {
	case PLAIN:
		POST(fi_send(t->ep, buf, len, NULL, peer, context));
		break;
	case TAGGED:
		POST(fi_tsend(t->ep, buf, len, NULL, peer, TAG, context));
		break;
	case WITH_DATA:
		POST(fi_senddata(t->ep, buf, len, NULL, DATA, peer, context));
		break;
	case TAGGED_DATA:
		POST(fi_tsenddata(t->ep, buf, len, NULL, DATA, peer, TAG,
				  context));
		break;
	default:
		CHECK_OK(weft_test_tdeliver(t, buf, len, peer, TAG, context));
	}
}

static void send_all(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, uint8_t *buf)
{
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int k = 0; k < 2 * KINDS; k++) {
			struct fi_context context;

			weft_test_fill(buf, sizes[i], i + (size_t)k);
			if (k % 2)
				weft_test_sync(line);
			post_send(t, peer, k / 2, buf, sizes[i], &context);
			if (k % 2 == 0)
				weft_test_sync(line);
			weft_test_wait_ok(t->txcq, &context);
		}
	}
}

static void check_received(const struct weft_test_comp *comp, fi_addr_t peer,
			   enum kind kind, size_t len)
{
	uint64_t flags = FI_RECV | (is_tagged(kind) ? FI_TAGGED : FI_MSG) |
			 (has_data(kind) ? FI_REMOTE_CQ_DATA : 0);

	CHECK_EQ(comp->ret, 1);
	CHECK_EQ(comp->entry.len, len);
	CHECK_EQ(comp->entry.flags, flags);
	CHECK_EQ(comp->src, peer);
	if (is_tagged(kind))
		CHECK_EQ(comp->entry.tag, TAG);
	if (has_data(kind))
		CHECK_EQ(comp->entry.data, DATA);
}

static void receive_all(struct weft_test *t, fi_addr_t peer,
			struct weft_test_line *line, uint8_t *buf)
{
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int k = 0; k < 2 * KINDS; k++) {
			struct weft_test_comp comp;

			memset(buf, 0xee, sizes[i] + 1);
			if (k % 2 == 0)
				weft_test_sync(line); /* it arrived earlier */
			if (is_tagged(k / 2))
				CHECK_OK(weft_test_trecv(t, buf, LARGEST, TAG,
							 0, buf));
			else
				CHECK_OK(weft_test_recv(t, buf, LARGEST, buf));
			if (k % 2)
				weft_test_sync(line);
			weft_test_wait(t->rxcq, &comp);
			check_received(&comp, peer, k / 2, sizes[i]);
			CHECK(weft_test_holds(buf, sizes[i], i + (size_t)k));
			CHECK_EQ(buf[sizes[i]], 0xee);
		}
	}
}

/* -- memory ----------------------------------------------------------------- */

static void access_all(struct weft_test *t, fi_addr_t peer,
		       struct weft_test_line *line, uint8_t *buf)
{
	struct rma_target target = rma_learn(line);
	uint64_t counted = 0, total = 0;

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct fi_context context;

		weft_test_fill(buf, sizes[i], 3 * i);
		POST(fi_writedata(t->ep, buf, sizes[i], NULL, DATA + i, peer,
				  target.base, target.key, &context));
		rma_wait(t, &context, FI_RMA | FI_WRITE);
		memset(buf, 0, sizes[i]);
		rma_get(t, peer, &target, 0, buf, sizes[i]);
		CHECK(weft_test_holds(buf, sizes[i], 3 * i));
		POST(fi_fetch_atomic(t->ep, &(uint64_t){ sizes[i] }, 1, NULL,
				     &counted, NULL, peer,
				     target.base + LARGEST, target.key,
				     FI_UINT64, FI_SUM, &context));
		rma_wait(t, &context, FI_ATOMIC | FI_READ);
		CHECK_EQ(counted, total);
		total += sizes[i];
	}
	weft_test_sync(line);
}

static void lend_all(struct weft_test *t, struct weft_test_line *line,
		     uint8_t *buf)
{
	uint64_t total = 0, counted;
	struct fid_mr *mr;

	memset(buf, 0, LARGEST + 8);
	rma_offer(t, line, buf, LARGEST + 8, &mr);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct weft_test_comp comp;

		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.entry.data, DATA + i);
		CHECK_EQ(comp.entry.flags,
			 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		total += sizes[i];
	}
	weft_test_sync(line);
	memcpy(&counted, buf + LARGEST, sizeof(counted));
	CHECK_EQ(counted, total);
	CHECK_OK(fi_close(&mr->fid));
}

/* -- both ways -------------------------------------------------------------- */

static void child_side(struct weft_test *t, fi_addr_t peer,
		       struct weft_test_line *line, void *arg)
{
	uint8_t *buf = arg;

	receive_all(t, peer, line, buf);
	send_all(t, peer, line, buf);
	lend_all(t, line, buf);
	access_all(t, peer, line, buf);
}

static void parent_side(struct weft_test *t, fi_addr_t peer,
			struct weft_test_line *line, void *arg)
{
	uint8_t *buf = arg;

	send_all(t, peer, line, buf);
	receive_all(t, peer, line, buf);
	access_all(t, peer, line, buf);
	lend_all(t, line, buf);
}

struct net_case {
	unsigned int mtu;
	bool v6;
};

static void side(struct weft_test_line *line, void *arg)
{
	const struct net_case *c = arg;
	uint8_t *buf = msg_alloc(LARGEST + 8);
	const struct weft_test_opts opts = {
		.caps = RMA_CAPS | FI_ATOMIC | FI_SOURCE,
		.node = c->v6 ? net_addr6(net_here()) : net_addr(net_here()),
	};
	struct weft_test t;

	weft_test_open(&t, &opts);
	(line->pid ? parent_side : child_side)(&t, weft_test_meet(&t, line),
					       line, buf);
	weft_test_close(&t);
	free(buf);
	CHECK_EQ(net_fragments(), 0);
}

static void run(struct weft_test_line *unused, void *arg)
{
	const struct net_case *c = arg;
	struct weft_test_line line;

	(void)unused;
	net_begin(c->mtu);
	weft_test_fork(&line, side, arg);
	side(&line, arg);
	weft_test_join(&line);
	printf("MTU %u, IPv%d: good\n", c->mtu, c->v6 ? 6 : 4);
}

int main(void)
{
	static struct net_case cases[] = {
		{ 1500, false }, { 1500, true }, { 9000, false }, { 9000, true }
	};

	weft_test_begin(110);
	net_require();
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		msg_run_apart(run, &cases[i]);
	return 0;
}
