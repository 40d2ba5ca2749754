/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Default flags of operations: FI_GETOPSFLAG and FI_SETOPSFLAG read and change
 * them for each direction, and an alias of the endpoint has its own. The flags
 * take effect: completions under selective completion, delivery, multi-receive.
 */
#include "rma_util.h"

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS | FI_MULTI_RECV,
	.tx_bind = FI_SELECTIVE_COMPLETION,
	.rx_bind = FI_SELECTIVE_COMPLETION,
};

static uint64_t get(struct fid_ep *ep, uint64_t side)
{
	uint64_t flags = side;

	CHECK_OK(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
	return flags & ~(FI_TRANSMIT | FI_RECV);
}

static void set(struct fid_ep *ep, uint64_t flags)
{
	CHECK_OK(fi_control(&ep->fid, FI_SETOPSFLAG, &flags));
}

/* Sends a message between these two and checks which sides complete. */
static void check(struct weft_test *t, fi_addr_t self, struct fid_ep *tx,
		  struct fid_ep *rx, bool sent, bool received)
{
	struct fi_context out, in;
	struct weft_test_comp comp;
	uint64_t word = 0;

	POST(fi_recv(rx, &word, 8, NULL, FI_ADDR_UNSPEC, &in));
	POST(fi_send(tx, "message", 8, NULL, self, &out));
	rma_wait_word(&word, *(const uint64_t *)"message");
	if (sent)
		weft_test_wait_ok(t->txcq, &out);
	if (received)
		weft_test_wait_ok(t->rxcq, &in);
	weft_test_progress_for(1);
	CHECK(!weft_test_poll(t->txcq, &comp));
	CHECK(!weft_test_poll(t->rxcq, &comp));
}

/* -- the endpoint's own ---------------------------------------------------- */

static void test_flags(struct weft_test *t, fi_addr_t self)
{
	uint64_t both = FI_TRANSMIT | FI_RECV | FI_COMPLETION;
	uint64_t neither = FI_COMPLETION;
	uint8_t region[8] = { 0 };
	struct rma_target target;
	struct fi_context context;
	struct fid_mr *mr;

	target = rma_expose(t, region, 8, RMA_ACCESS, 1, &mr);
	CHECK_EQ(get(t->ep, FI_TRANSMIT) & FI_COMPLETION, 0);
	CHECK_EQ(get(t->ep, FI_RECV) & FI_COMPLETION, 0);
	check(t, self, t->ep, t->ep, false, false);
	set(t->ep, FI_TRANSMIT | FI_COMPLETION);
	CHECK_EQ(get(t->ep, FI_TRANSMIT) & FI_COMPLETION, FI_COMPLETION);
	CHECK_EQ(get(t->ep, FI_RECV) & FI_COMPLETION, 0);
	check(t, self, t->ep, t->ep, true, false);
	/* The flags apply to all transmit operations, RMA included. */
	POST(fi_write(t->ep, "w", 1, NULL, self, target.base, target.key,
		      &context));
	rma_wait(t, &context, FI_RMA | FI_WRITE);
	POST(fi_read(t->ep, region + 4, 1, NULL, self, target.base, target.key,
		     &context));
	rma_wait(t, &context, FI_RMA | FI_READ);
	set(t->ep, FI_RECV | FI_COMPLETION);
	CHECK_EQ(get(t->ep, FI_RECV) & FI_COMPLETION, FI_COMPLETION);
	check(t, self, t->ep, t->ep, true, true);
	set(t->ep, FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE);
	CHECK(get(t->ep, FI_TRANSMIT) & FI_DELIVERY_COMPLETE);
	check(t, self, t->ep, t->ep, true, true);
	set(t->ep, FI_TRANSMIT);
	CHECK_EQ(get(t->ep, FI_TRANSMIT) &
			 (FI_COMPLETION | FI_DELIVERY_COMPLETE),
		 0);
	check(t, self, t->ep, t->ep, false, true);
	set(t->ep, FI_RECV);
	/* One direction at a time. */
	CHECK_EQ(fi_control(&t->ep->fid, FI_SETOPSFLAG, &both), -FI_EINVAL);
	CHECK_EQ(fi_control(&t->ep->fid, FI_SETOPSFLAG, &neither), -FI_EINVAL);
	CHECK_EQ(fi_control(&t->ep->fid, FI_GETOPSFLAG, &both), -FI_EINVAL);
	check(t, self, t->ep, t->ep, false, false);
	CHECK_OK(fi_close(&mr->fid));
}

/* Multi-receive by default. */
static void test_multi(struct weft_test *t, fi_addr_t self)
{
	static uint8_t buf[65536];
	struct weft_test_comp comp;

	set(t->ep, FI_RECV | FI_MULTI_RECV | FI_COMPLETION);
	POST(fi_recv(t->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf));
	for (int i = 0; i < 3; i++) {
		POST(fi_inject(t->ep, "part", 5, self));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK(comp.entry.op_context == buf);
		CHECK(!strcmp(comp.entry.buf, "part"));
	}
	CHECK_OK(fi_cancel(&t->ep->fid, buf));
	weft_test_wait(t->rxcq, &comp);
	set(t->ep, FI_RECV);
}

/* -- aliases --------------------------------------------------------------- */

static void test_aliases(struct weft_test *t, fi_addr_t self)
{
	struct fid_ep *tx, *rx, *same, *none;

	CHECK_OK(fi_ep_alias(t->ep, &tx, FI_TRANSMIT | FI_COMPLETION));
	CHECK_OK(fi_ep_alias(t->ep, &rx, FI_RECV | FI_COMPLETION));
	CHECK_OK(fi_ep_alias(t->ep, &same, FI_TRANSMIT));
	CHECK_EQ(fi_ep_alias(t->ep, &none,
			     FI_TRANSMIT | FI_RECV | FI_COMPLETION),
		 -FI_EINVAL);
	CHECK_EQ(get(tx, FI_TRANSMIT) & FI_COMPLETION, FI_COMPLETION);
	CHECK_EQ(get(tx, FI_RECV) & FI_COMPLETION, 0);
	CHECK_EQ(get(rx, FI_RECV) & FI_COMPLETION, FI_COMPLETION);
	CHECK_EQ(get(t->ep, FI_TRANSMIT) & FI_COMPLETION, 0);
	/* Both names refer to the same endpoint. */
	check(t, self, t->ep, t->ep, false, false);
	check(t, self, tx, t->ep, true, false);
	check(t, self, t->ep, rx, false, true);
	check(t, self, tx, rx, true, true);
	check(t, self, rx, tx, false, false);
	check(t, self, same, same, false, false);
	/* Changes one later; the others keep their flags. */
	set(same, FI_TRANSMIT | FI_COMPLETION);
	set(tx, FI_TRANSMIT);
	check(t, self, same, rx, true, true);
	check(t, self, tx, rx, false, true);
	CHECK_OK(fi_close(&same->fid));
	CHECK_OK(fi_close(&rx->fid));
	CHECK_OK(fi_close(&tx->fid));
	check(t, self, t->ep, t->ep, false, false);
}

int main(void)
{
	static const enum fi_threading models[] = { FI_THREAD_DOMAIN,
						    FI_THREAD_SAFE };

	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(models); i++) {
		struct weft_test_opts o = opts;
		struct weft_test t;
		fi_addr_t self;

		o.threading = models[i];
		weft_test_open(&t, &o);
		self = weft_test_know(&t, &t);
		test_flags(&t, self);
		test_aliases(&t, self);
		test_multi(&t, self);
		weft_test_close(&t);
	}
	return 0;
}
