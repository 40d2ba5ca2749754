/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer is killed at random points of sending and receiving. The survivor gets
 * every completion that it waits for, as a success or as an error; every
 * message that it received is complete; it continues to work; and nothing of
 * the dead peer is left: no descriptor, no mapping, no process, no file.
 */
#include "common/fabric.h"

#define ROUNDS 200
#define ROUNDS_WITHOUT_CMA 60
#define WINDOW 8
#define LARGEST ((size_t)2 << 20)

/* One size each: in the slot, in one record, in several, parked, shared. */
static const size_t sizes[] = { 8, 64, 1024, 4096, 16384, 200000, LARGEST };

enum { CHILD_SENDS = 1, PARENT_SENDS = 2 };

struct traffic {
	struct weft_test *t;
	fi_addr_t peer;
	uint64_t tag; /* number of the round; the low byte is the buffer */
	size_t size;
	int sends;
	bool stop;
	int sending; /* operations in flight */
	int receiving;
	int received;
	int failed;
	struct fi_context last; /* sent to the dead peer */
	int last_ret;
	struct fi_context tx[WINDOW];
	struct fi_context rx[WINDOW];
	uint8_t *out[WINDOW];
	uint8_t *in[WINDOW];
};

static void traffic_make(struct traffic *tr)
{
	for (int i = 0; i < WINDOW; i++) {
		tr->out[i] = malloc(LARGEST);
		tr->in[i] = malloc(LARGEST);
		CHECK(tr->out[i] && tr->in[i]);
		weft_test_fill(tr->out[i], LARGEST, (uint64_t)i);
	}
}

static void traffic_free(struct traffic *tr)
{
	for (int i = 0; i < WINDOW; i++) {
		free(tr->out[i]);
		free(tr->in[i]);
	}
}

static void post_send(struct traffic *tr, int i)
{
	ssize_t ret;

	if (tr->stop || !tr->sends)
		return;
	/* The peer must confirm every other message. */
	if (i & 1)
		ret = weft_test_tdeliver(tr->t, tr->out[i], tr->size, tr->peer,
					 tr->tag | (uint64_t)i, &tr->tx[i]);
	else
		ret = weft_test_tsend(tr->t, tr->out[i], tr->size, tr->peer,
				      tr->tag | (uint64_t)i, &tr->tx[i]);
	CHECK_OK(ret);
	tr->sending++;
}

static void post_recv(struct traffic *tr, int i)
{
	if (tr->stop)
		return;
	CHECK_OK(weft_test_trecv(tr->t, tr->in[i], LARGEST, tr->tag, 0xff,
				 &tr->rx[i]));
	tr->receiving++;
}

static void start(struct traffic *tr)
{
	for (int i = 0; i < WINDOW; i++) {
		post_recv(tr, i);
		post_send(tr, i);
	}
}

static void on_sent(struct traffic *tr, const struct weft_test_comp *comp)
{
	struct fi_context *context = comp->entry.op_context;

	tr->sending--;
	if (comp->ret < 0) {
		tr->failed++;
		tr->stop = true;
	}
	if (context == &tr->last)
		tr->last_ret = comp->ret;
	else
		post_send(tr, (int)(context - tr->tx));
}

static void on_received(struct traffic *tr, const struct weft_test_comp *comp)
{
	struct fi_context *context = comp->entry.op_context;
	int i = (int)(context - tr->rx);

	tr->receiving--;
	if (comp->ret > 0) {
		CHECK_EQ(comp->entry.len, tr->size);
		CHECK(weft_test_holds(tr->in[i], tr->size,
				      comp->entry.tag & 0xff));
		tr->received++;
	}
	post_recv(tr, i);
}

/* Bounded, because each completion may start the next operation. */
static void turn(struct traffic *tr)
{
	struct weft_test_comp comp;

	for (int i = 0; i < WINDOW && weft_test_poll(tr->t->txcq, &comp); i++)
		on_sent(tr, &comp);
	for (int i = 0; i < WINDOW && weft_test_poll(tr->t->rxcq, &comp); i++)
		on_received(tr, &comp);
}

static void victim(struct weft_test_line *line, void *arg)
{
	struct traffic *tr = arg;
	struct weft_test t;

	weft_test_open(&t, NULL);
	tr->t = &t;
	tr->peer = weft_test_meet(&t, line);
	start(tr);
	for (;;)
		turn(tr);
}

/* Everything in flight ends, with success or with an error. */
static void drain(struct traffic *tr)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	tr->stop = true;
	while (tr->sending) {
		turn(tr);
		if (weft_test_ms() > end)
			FAIL("%d sends of %zu hang", tr->sending, tr->size);
	}
	/* A dead peer keeps no receive: each has failed or can be cancelled. */
	while (tr->receiving) {
		for (int i = 0; i < WINDOW; i++)
			fi_cancel(&tr->t->ep->fid, &tr->rx[i]);
		turn(tr);
		if (weft_test_ms() > end)
			FAIL("%d receives of %zu hang", tr->receiving,
			     tr->size);
	}
}

static void one_round(struct weft_test *t, struct traffic *tr, int round,
		      uint64_t *seed)
{
	struct weft_test_line line;
	int mode = 1 + round % 3;
	uint64_t end;

	tr->size = sizes[round % (int)(sizeof(sizes) / sizeof(sizes[0]))];
	tr->sends = mode & CHILD_SENDS;
	tr->tag = (uint64_t)round << 8;
	tr->stop = false;
	weft_test_fork(&line, victim, tr);
	tr->t = t;
	tr->sends = mode & PARENT_SENDS;
	tr->peer = weft_test_meet(t, &line);
	/* Half of the peers die while connecting or with the first messages. */
	end = weft_test_ms() + weft_test_random(seed) % (round & 1 ? 3 : 12);
	start(tr);
	do {
		turn(tr);
	} while (weft_test_ms() < end);
	weft_test_kill(&line);
	/* Operations that nobody will ever confirm fail. */
	CHECK_OK(weft_test_tdeliver(t, tr->out[0], tr->size, tr->peer, tr->tag,
				    &tr->last));
	tr->sending++;
	tr->last_ret = 0;
	drain(tr);
	CHECK(tr->last_ret < 0);
	CHECK_OK(fi_av_remove(t->av, &tr->peer, 1, 0));
}

static void wait_until_clean(const struct weft_test_traces *before)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_traces now;

	do {
		weft_test_progress();
		weft_test_look(&now);
	} while ((now.descriptors != before->descriptors ||
		  now.rings != before->rings) &&
		 weft_test_ms() < end);
	weft_test_check_clean(before);
}

/* In a process of its own, because the environment is read once. */
static void survive(struct weft_test_line *line, void *arg)
{
	const int *rounds = arg;
	struct weft_test_traces closed, opened;
	struct traffic tr = { 0 };
	uint64_t seed = 1;
	struct weft_test t;

	(void)line;
	traffic_make(&tr);
	weft_test_open(&t, NULL); /* loads what stays loaded */
	weft_test_close(&t);
	weft_test_look(&closed);
	weft_test_open(&t, NULL);
	weft_test_look(&opened);
	for (int round = 0; round < *rounds; round++) {
		one_round(&t, &tr, round, &seed);
		/* Descriptors that the first packet opens stay open until the
		 * endpoint is closed. */
		if (!round && weft_test_by_packets())
			weft_test_look(&opened);
		if (round % 20 == 19)
			wait_until_clean(&opened);
	}
	weft_test_close(&t);
	weft_test_check_clean(&closed);
	traffic_free(&tr);
	printf("%d peers killed: %d messages received whole, %d sends failed\n",
	       *rounds, tr.received, tr.failed);
	CHECK(tr.received && tr.failed);
}

int main(void)
{
	struct weft_test_line line;
	int rounds = ROUNDS;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "50", 0);
	weft_test_begin(110);
	weft_test_fork(&line, survive, &rounds);
	weft_test_join(&line);
	/* Once more with large messages through the ring. */
	setenv("FI_WEFT_CMA", "0", 1);
	rounds = ROUNDS_WITHOUT_CMA;
	weft_test_fork(&line, survive, &rounds);
	weft_test_join(&line);
	return 0;
}
