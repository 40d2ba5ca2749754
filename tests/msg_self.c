/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that stay in the process: from an endpoint to itself, and between
 * two endpoints of one program, as every MPI does.
 */
#include "msg_util.h"

static const size_t sizes[] = { 0,    1,     40,    41,	   2048,    4096,
				4097, 16384, 16385, 65536, 1 << 20, 9 << 20 };

/* @late: the receive is posted after the message has arrived. */
static void exchange(struct weft_test *from, fi_addr_t addr,
		     struct weft_test *to, size_t len, bool tagged, bool late)
{
	uint8_t *out = msg_alloc(len), *in = msg_alloc(len);
	struct fi_context tx, rx;

	weft_test_fill(out, len, len + 1);
	for (int i = 0; i < 2; i++) {
		if (i == late && tagged)
			CHECK_OK(weft_test_trecv(to, in, len, 9, 0, &rx));
		else if (i == late)
			CHECK_OK(weft_test_recv(to, in, len, &rx));
		else if (tagged)
			CHECK_OK(weft_test_tsend(from, out, len, addr, 9, &tx));
		else
			CHECK_OK(weft_test_send(from, out, len, addr, &tx));
		weft_test_progress_for(1);
	}
	weft_test_wait_ok(from->txcq, &tx);
	weft_test_wait_ok(to->rxcq, &rx);
	CHECK(weft_test_holds(in, len, len + 1));
	CHECK_EQ(in[len], 0xee);
	free(out);
	free(in);
}

static void all_sizes(struct weft_test *from, fi_addr_t addr,
		      struct weft_test *to)
{
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (int how = 0; how < 4; how++)
			exchange(from, addr, to, sizes[i], how & 1, how & 2);
	}
}

/* A window of sends to itself before anything is received. */
static void test_window(struct weft_test *t, fi_addr_t self)
{
	enum { COUNT = 600 };
	static uint64_t in[COUNT], out[COUNT];

	for (uint64_t i = 0; i < COUNT; i++) {
		out[i] = i;
		CHECK_OK(weft_test_tsend(t, &out[i], 8, self, i, &out[i]));
	}
	for (uint64_t i = COUNT; i-- > 0;) {
		CHECK_OK(weft_test_trecv(t, &in[i], 8, i, 0, &in[i]));
		weft_test_wait_ok(t->rxcq, &in[i]);
		CHECK_EQ(in[i], i);
	}
	/* Each arrives once; through memory in order, by packets in any
	 * order. */
	for (uint64_t i = 0; i < COUNT; i++) {
		struct weft_test_comp comp;
		uint64_t *which;

		weft_test_wait(t->txcq, &comp);
		CHECK_EQ(comp.ret, 1);
		which = comp.entry.op_context;
		CHECK(which >= out && which < out + COUNT && *which < COUNT);
		CHECK(weft_test_by_packets() || which == &out[i]);
		*which = COUNT;
	}
}

static void test_all(enum fi_threading threading)
{
	/* Bug of libfabric's shm: a send to itself took its own lock twice. */
	struct weft_test_opts opts = {
		.threading = threading,
	};
	struct weft_test a, b;
	fi_addr_t self, other;

	weft_test_open(&a, &opts);
	self = weft_test_know(&a, &a);
	all_sizes(&a, self, &a);
	test_window(&a, self);
	weft_test_open(&b, &opts);
	other = weft_test_know(&a, &b);
	all_sizes(&a, other, &b);
	/* In the other direction, and to itself again. */
	all_sizes(&b, weft_test_know(&b, &a), &a);
	all_sizes(&a, self, &a);
	weft_test_close(&a);
	weft_test_close(&b);
}

int main(void)
{
	weft_test_begin(60);
	test_all(FI_THREAD_DOMAIN);
	test_all(FI_THREAD_SAFE);
	return 0;
}
