/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two links between the same hosts, both named by FI_WEFT_IFACE: a large
 * message uses both. When the second link fails in the middle, the data that
 * was on it arrives over the first.
 */
#include "common/net.h"
#include "msg_util.h"

#define BYTES ((size_t)16 << 20)

static const struct weft_test_opts opts = { .any_node = true };

/* Exchanges a message with the other host. */
static void exchange(struct weft_test *t, fi_addr_t peer, uint8_t *out,
		     uint8_t *in, uint64_t tag)
{
	struct fi_context tx, rx;

	memset(in, 0, BYTES);
	weft_test_fill(out, BYTES, (unsigned int)tag);
	CHECK_OK(weft_test_trecv(t, in, BYTES, tag, 0, &rx));
	CHECK_OK(weft_test_tsend(t, out, BYTES, peer, tag, &tx));
	weft_test_wait_ok(t->txcq, &tx);
	weft_test_wait_ok(t->rxcq, &rx);
	CHECK(weft_test_holds(in, BYTES, (unsigned int)tag));
}

static void side(struct weft_test_line *line, void *arg)
{
	uint8_t *out = msg_alloc(BYTES), *in = msg_alloc(BYTES);
	unsigned long long first, second;
	struct fi_context tx, rx;
	struct weft_test t;
	fi_addr_t peer;

	(void)arg;
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	/* Both connections are open. */
	exchange(&t, peer, out, in, 1);
	weft_test_sync(line);
	first = net_sent("link0");
	second = net_sent("link1");
	exchange(&t, peer, out, in, 2);
	weft_test_sync(line);
	CHECK(net_sent("link0") - first > BYTES / 4);
	CHECK(net_sent("link1") - second > BYTES / 4);

	weft_test_fill(out, BYTES, 3);
	CHECK_OK(weft_test_trecv(&t, in, BYTES, 3, 0, &rx));
	weft_test_sync(line);
	CHECK_OK(weft_test_tsend(&t, out, BYTES, peer, 3, &tx));
	if (net_here() == 0)
		net_ip(0, "link set link1 down");
	weft_test_wait_ok(t.txcq, &tx);
	weft_test_wait_ok(t.rxcq, &rx);
	CHECK(weft_test_holds(in, BYTES, 3));
	weft_test_sync(line);
	exchange(&t, peer, out, in, 4);
	weft_test_sync(line);
	weft_test_close(&t);
	free(out);
	free(in);
}

static void run(struct weft_test_line *unused, void *arg)
{
	struct weft_test_line line;

	(void)unused;
	weft_test_fork(&line, side, arg);
	side(&line, arg);
	weft_test_join(&line);
}

int main(void)
{
	weft_test_begin(60);
	net_begin(1500);
	setenv("FI_WEFT_NIC", "tcp", 1);
	setenv("FI_WEFT_IFACE", "link0,link1", 1);
	/* A link that is silent for a second has failed. */
	setenv("FI_WEFT_DEAD_TIMEOUT", "4", 1);
	msg_run_apart(run, NULL);
	return 0;
}
