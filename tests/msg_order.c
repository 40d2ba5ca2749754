/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order: the n-th receive gets the n-th message, whatever its size and however
 * it was sent. Random sizes across all protocols, both directions at once; all
 * bytes are checked.
 */
#include "msg_util.h"

#define WINDOW 40
#define LONGEST 150000

/* A network that loses packets is slow. */
static uint64_t count(void)
{
	return getenv("FI_WEFT_FAULT") ? 1000 : 3000;
}

static size_t length(uint64_t i)
{
	uint64_t seed = i * 3 + 1;
	uint32_t dice = weft_test_random(&seed) % 100;
	uint32_t any = weft_test_random(&seed);

	if (dice < 50)
		return any % 48;
	if (dice < 75)
		return any % 4200;
	if (dice < 95)
		return any % 20000;
	return any % LONGEST;
}

struct flow {
	struct weft_test *t;
	fi_addr_t peer;
	uint8_t *out[WINDOW], *in[WINDOW];
	struct fi_context tx[WINDOW], rx[WINDOW];
	uint64_t sent, sent_done;
	uint64_t posted, received;
	bool tx_busy[WINDOW];
	bool rx_done[WINDOW];
};

static void *context_of(struct flow *f, uint64_t i)
{
	return &f->tx[i % WINDOW];
}

/* Sends by every kind of call in turn. False: there is no room now. */
static bool send_next(struct flow *f)
{
	uint64_t i = f->sent, at = i % WINDOW;
	size_t len = length(i);
	struct iovec iov[2] = { { f->out[at], len / 3 },
				{ f->out[at] + len / 3, len - len / 3 } };
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = 2,
		.addr = f->peer,
		.tag = 5,
		.context = context_of(f, i),
		.data = i,
	};
	ssize_t ret;

	if (i == count() || f->tx_busy[at])
		return false;
	weft_test_fill(f->out[at], len, i);
	switch (i % 4) {
	case 0:
		ret = fi_tsenddata(f->t->ep, f->out[at], len, NULL, i, f->peer,
				   5, msg.context);
		break;
	case 1:
		ret = fi_tsendmsg(f->t->ep, &msg,
				  FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
		break;
	case 2:
		ret = fi_tsendmsg(f->t->ep, &msg,
				  FI_REMOTE_CQ_DATA |
					  (len <= 4096 ? FI_INJECT : 0));
		break;
	default:
		ret = fi_tsendmsg(f->t->ep, &msg, FI_REMOTE_CQ_DATA);
	}
	if (ret == -FI_EAGAIN)
		return false;
	CHECK_OK(ret);
	f->tx_busy[at] = true;
	f->sent++;
	return true;
}

static bool post_next(struct flow *f)
{
	uint64_t at = f->posted % WINDOW;

	if (f->posted == count() || f->posted - f->received >= WINDOW)
		return false;
	f->rx_done[at] = false;
	CHECK_OK(weft_test_trecv(f->t, f->in[at], LONGEST, 5, 0, &f->rx[at]));
	f->posted++;
	return true;
}

static void take_sent(struct flow *f)
{
	struct weft_test_comp comp;

	while (weft_test_poll(f->t->txcq, &comp)) {
		size_t at =
			(size_t)((struct fi_context *)comp.entry.op_context -
				 f->tx);

		CHECK_EQ(comp.ret, 1);
		CHECK(at < WINDOW && f->tx_busy[at]);
		f->tx_busy[at] = false;
		f->sent_done++;
	}
}

/* Completions may arrive in any order (none is promised), messages may not: the
 * receive at @at must have got the expected message. */
static void take_received(struct flow *f)
{
	struct weft_test_comp comp;

	while (weft_test_poll(f->t->rxcq, &comp)) {
		size_t at =
			(size_t)((struct fi_context *)comp.entry.op_context -
				 f->rx);
		uint64_t i;

		CHECK_EQ(comp.ret, 1);
		CHECK(at < WINDOW && !f->rx_done[at]);
		i = f->received + (at + WINDOW - f->received % WINDOW) % WINDOW;
		CHECK_EQ(comp.entry.data, i);
		CHECK_EQ(comp.entry.len, length(i));
		CHECK(weft_test_holds(f->in[at], comp.entry.len, i));
		f->rx_done[at] = true;
	}
	while (f->received < f->posted && f->rx_done[f->received % WINDOW]) {
		f->rx_done[f->received % WINDOW] = false;
		f->received++;
	}
}

static void side(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, void *arg)
{
	struct flow *f = calloc(1, sizeof(*f));
	uint64_t dice = 1;

	(void)arg;
	CHECK(f);
	f->t = t;
	f->peer = peer;
	for (int i = 0; i < WINDOW; i++) {
		f->out[i] = msg_alloc(LONGEST);
		f->in[i] = msg_alloc(LONGEST);
	}
	while (f->sent_done < count() || f->received < count()) {
		/* Sometimes the receives come first, sometimes the messages. */
		if (weft_test_random(&dice) % 8)
			send_next(f);
		if (weft_test_random(&dice) % 3 == 0)
			post_next(f);
		take_sent(f);
		take_received(f);
	}
	weft_test_sync(line);
	for (int i = 0; i < WINDOW; i++) {
		free(f->out[i]);
		free(f->in[i]);
	}
	free(f);
}

/* Without CMA everything goes through the ring. */
static void without_cma(struct weft_test_line *line, void *arg)
{
	(void)line;
	(void)arg;
	setenv("FI_WEFT_CMA", "0", 1);
	weft_test_pair(NULL, side, side, NULL);
}

int main(void)
{
	weft_test_begin(60);
	if (!weft_test_by_packets())
		msg_run_apart(without_cma, NULL);
	weft_test_pair(NULL, side, side, NULL);
	return 0;
}
