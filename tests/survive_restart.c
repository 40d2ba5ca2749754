/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer ends, by itself or killed, and starts again on the same address.
 * Messages to it and from it work again under the same fi_addr; the new process
 * does not see messages that were sent to the old one.
 */
#include "common/fabric.h"

#include <stdio.h>

#define ROUNDS 12
#define OLD_ONES 20
#define LARGE 600000 /* more than is sent before the receiver asks */

struct life {
	uint16_t port;
	uint64_t round;
};

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
};

static struct weft_test_opts opts_at(char *service, size_t room, uint16_t port)
{
	struct weft_test_opts at = opts;

	snprintf(service, room, "%u", port);
	at.service = service;
	return at;
}

/* One run of the peer: receives a message of this round, answers it, and leaves
 * others unreceived. */
static void live(struct weft_test_line *line, void *arg)
{
	const struct life *life = arg;
	struct fi_context context;
	struct weft_test_opts at;
	struct weft_test_comp comp;
	struct weft_test t;
	uint64_t got = 0;
	fi_addr_t parent;
	char service[8];

	at = opts_at(service, sizeof(service), life->port);
	weft_test_open(&t, &at);
	CHECK_EQ(weft_test_port(&t), life->port);
	parent = weft_test_meet(&t, line);
	CHECK_OK(weft_test_trecv(&t, &got, sizeof(got), 0, ~0ull, &context));
	weft_test_wait(t.rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(got, life->round);
	CHECK_EQ(comp.entry.tag, life->round);
	CHECK_OK(weft_test_tsend(&t, &got, sizeof(got), parent, got, &context));
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(line); /* more messages arrive, it receives none */
	if (life->round & 1) {
		weft_test_close(&t);
		return;
	}
	for (;;)
		weft_test_progress();
}

/* A message injected to a run that has ended gets an error completion without a
 * context, unless it had arrived. */
static void wait_for(struct weft_test *t, struct weft_test_comp *comp,
		     const struct fi_context *context)
{
	do {
		weft_test_wait(t->txcq, comp);
	} while (!comp->entry.op_context && comp->ret < 0);
	CHECK(comp->entry.op_context == context);
}

/* Sends until a run of the peer confirms it. */
static void send_surely(struct weft_test *t, fi_addr_t peer, uint64_t round)
{
	struct weft_test_comp comp;
	struct fi_context context;

	do {
		CHECK_OK(weft_test_tdeliver(t, &round, sizeof(round), peer,
					    round, &context));
		wait_for(t, &comp, &context);
	} while (comp.ret < 0);
}

/* To this run, which does not receive them: small messages and a parked one. */
static void send_in_vain(struct weft_test *t, fi_addr_t peer,
			 const uint8_t *large, struct fi_context *context)
{
	static const uint64_t old = ~0ull;

	for (int i = 0; i < OLD_ONES; i++)
		CHECK_OK(weft_test_inject(t, &old, sizeof(old), peer));
	CHECK_OK(weft_test_tsend(t, large, LARGE, peer, old, context));
}

static void one_life(struct weft_test *t, fi_addr_t *peer, struct life *life,
		     const uint8_t *large)
{
	struct fi_context rx, parked;
	struct weft_test_line line;
	struct weft_test_comp comp;
	uint64_t got = 0;
	fi_addr_t addr;

	CHECK_OK(weft_test_trecv(t, &got, sizeof(got), life->round, 0, &rx));
	weft_test_fork(&line, live, life);
	addr = weft_test_meet(t, &line);
	if (*peer == FI_ADDR_NOTAVAIL)
		*peer = addr;
	send_surely(t, *peer, life->round);
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(got, life->round);
	CHECK_EQ(comp.src, *peer);
	send_in_vain(t, *peer, large, &parked);
	weft_test_sync(&line);
	if (life->round & 1)
		weft_test_join(&line);
	else
		weft_test_kill(&line);
	wait_for(t, &comp, &parked);
	CHECK(comp.ret < 0);
}

int main(void)
{
	fi_addr_t peer = FI_ADDR_NOTAVAIL;
	uint8_t *large = malloc(LARGE);
	struct weft_test_traces before;
	struct weft_test t;
	struct life life;

	weft_test_begin(100);
	CHECK(large);
	weft_test_fill(large, LARGE, 1);
	weft_test_open(&t, &opts); /* a free port */
	life.port = weft_test_port(&t);
	weft_test_close(&t);
	weft_test_look(&before);
	weft_test_open(&t, &opts);
	for (life.round = 0; life.round < ROUNDS; life.round++)
		one_life(&t, &peer, &life, large);
	weft_test_close(&t);
	weft_test_check_clean(&before);
	free(large);
	printf("%d lives on one address\n", ROUNDS);
	return 0;
}
