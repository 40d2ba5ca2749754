/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process is killed and started again at its address, by packets. The first
 * messages of the new process arrive and complete without an error, also while
 * the other side still sends to the old one. (Bug: the new process refused the
 * connection to the old one; the other side then closed the new process's own
 * connection, and in 10 of 10 runs its first messages were lost.)
 */
#include <stdio.h>

#include "common/net.h"
#include "msg_util.h"

#define ROUNDS 6
#define MESSAGES 40
#define LARGE 100000

struct life {
	uint16_t port;
	uint64_t round;
};

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
};

static size_t size_of(int i)
{
	return i % 5 ? (size_t)(8 + i) : LARGE;
}

/* Sends at once, tells the parent, and computes until it is killed. */
static void live(struct weft_test_line *line, void *arg)
{
	const struct life *life = arg;
	static struct fi_context contexts[MESSAGES];
	uint8_t *out = msg_alloc(LARGE);
	struct weft_test_opts at = opts;
	struct weft_test t;
	fi_addr_t parent;
	char service[8];

	snprintf(service, sizeof(service), "%u", life->port);
	at.service = service;
	weft_test_open(&t, &at);
	parent = weft_test_meet(&t, line);
	weft_test_fill(out, LARGE, life->round);
	for (int i = 0; i < MESSAGES; i++)
		CHECK_OK(weft_test_tsend(&t, out, size_of(i), parent,
					 life->round << 32 | (uint64_t)i,
					 &contexts[i]));
	for (int i = 0; i < MESSAGES; i++)
		weft_test_wait_ok(t.txcq, NULL);
	weft_test_sync(line);
	for (;;)
		weft_test_progress();
}

static void one_life(struct weft_test *t, struct life *life, uint8_t *in)
{
	static struct fi_context rx, tx[8];
	struct weft_test_line line;
	struct weft_test_comp comp;
	uint64_t word = 0;
	fi_addr_t peer;

	weft_test_fork(&line, live, life);
	peer = weft_test_meet(t, &line);
	/* To the process that is there now, or to the old one if its end was
	 * not noticed yet. */
	for (int i = 0; i < 8 && life->round & 1; i++)
		CHECK_OK(weft_test_send(t, &word, sizeof(word), peer, &tx[i]));
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_OK(weft_test_trecv(
			t, in, LARGE, life->round << 32 | (uint64_t)i, 0, &rx));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.entry.len, size_of(i));
		CHECK(weft_test_holds(in, size_of(i), life->round));
	}
	for (int i = 0; i < 8 && life->round & 1; i++)
		weft_test_wait(t->txcq, &comp); /* or an error */
	weft_test_sync(&line);
	weft_test_kill(&line);
}

int main(void)
{
	uint8_t *in = msg_alloc(LARGE);
	struct weft_test t;
	struct life life;

	setenv("FI_WEFT_SHM", "0", 1);
	weft_test_begin(100);
	weft_test_open(&t, &opts); /* a free port */
	life.port = weft_test_port(&t);
	weft_test_close(&t);
	weft_test_open(&t, &opts);
	for (life.round = 0; life.round < ROUNDS; life.round++)
		one_life(&t, &life, in);
	weft_test_close(&t);
	free(in);
	printf("%d lives on one address\n", ROUNDS);
	return 0;
}
