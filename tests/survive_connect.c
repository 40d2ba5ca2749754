/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both sides connect to each other at the same moment, many times; and many
 * endpoints in several processes connect at once to one endpoint, which answers
 * each of them.
 */
#include "common/fabric.h"

#define ROUNDS 150
#define BURST 10

#define PROCESSES 4
#define PER_PROCESS 8
#define EACH 50

static void burst(struct weft_test *t, fi_addr_t peer, size_t size)
{
	struct fi_context tx[BURST], rx[BURST];
	static uint8_t out[BURST][20000], in[BURST][20000];

	for (int i = 0; i < BURST; i++)
		CHECK_OK(weft_test_trecv(t, in[i], size, (uint64_t)i, 0,
					 &rx[i]));
	for (int i = 0; i < BURST; i++) {
		weft_test_fill(out[i], size, (uint64_t)i);
		CHECK_OK(weft_test_tsend(t, out[i], size, peer, (uint64_t)i,
					 &tx[i]));
	}
	/* In any order, because both sides copy large messages. */
	for (int i = 0; i < BURST; i++)
		weft_test_wait_ok(t->txcq, NULL);
	for (int i = 0; i < BURST; i++)
		weft_test_wait_ok(t->rxcq, NULL);
	for (int i = 0; i < BURST; i++)
		CHECK(weft_test_holds(in[i], size, (uint64_t)i));
}

static void at_once(struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		struct weft_test t;
		fi_addr_t peer;
		char mark = 'r';

		weft_test_open(&t, NULL);
		peer = weft_test_meet(&t, line);
		/* Both sides start here at the same time, before either has
		 * made progress. */
		weft_test_put(line, &mark, 1);
		CHECK(weft_test_get(line, &mark, 1));
		burst(&t, peer, round & 1 ? 16 : 20000);
		weft_test_sync(line);
		weft_test_close(&t);
	}
}

static void crowd(struct weft_test_line *line, void *arg)
{
	struct weft_test t[PER_PROCESS];
	struct fi_context tx[PER_PROCESS], rx[PER_PROCESS];
	uint64_t in[PER_PROCESS];
	fi_addr_t one[PER_PROCESS];

	(void)arg;
	for (int i = 0; i < PER_PROCESS; i++) {
		weft_test_open(&t[i], NULL);
		one[i] = weft_test_meet(&t[i], line);
	}
	weft_test_sync(line);
	for (uint64_t n = 0; n < EACH; n++) {
		for (int i = 0; i < PER_PROCESS; i++) {
			CHECK_OK(weft_test_recv(&t[i], &in[i], sizeof(in[i]),
						&rx[i]));
			CHECK_OK(weft_test_send(&t[i], &n, sizeof(n), one[i],
						&tx[i]));
		}
		for (int i = 0; i < PER_PROCESS; i++) {
			weft_test_wait_ok(t[i].txcq, &tx[i]);
			weft_test_wait_ok(t[i].rxcq, &rx[i]);
			CHECK_EQ(in[i], n);
		}
	}
	weft_test_sync(line);
	for (int i = 0; i < PER_PROCESS; i++)
		weft_test_close(&t[i]);
}

/* Returns every message to its sender. */
static void echo(struct weft_test *t, int count)
{
	struct weft_test_comp comp;
	struct fi_context context;
	uint64_t value;

	while (count--) {
		CHECK_OK(weft_test_recv(t, &value, sizeof(value), &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK(comp.src != FI_ADDR_NOTAVAIL);
		CHECK_OK(weft_test_inject(t, &value, sizeof(value), comp.src));
	}
}

static void many_to_one(void)
{
	struct weft_test_opts opts = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct weft_test_line lines[PROCESSES];
	struct weft_test t;

	for (int i = 0; i < PROCESSES; i++)
		weft_test_fork(&lines[i], crowd, NULL);
	weft_test_open(&t, &opts);
	for (int i = 0; i < PROCESSES; i++)
		for (int k = 0; k < PER_PROCESS; k++)
			weft_test_meet(&t, &lines[i]);
	for (int i = 0; i < PROCESSES; i++)
		weft_test_sync(&lines[i]);
	echo(&t, PROCESSES * PER_PROCESS * EACH);
	for (int i = 0; i < PROCESSES; i++)
		weft_test_sync(&lines[i]);
	for (int i = 0; i < PROCESSES; i++)
		weft_test_join(&lines[i]);
	weft_test_close(&t);
}

int main(void)
{
	struct weft_test_traces before;
	struct weft_test_line line;
	struct weft_test t;

	weft_test_begin(100);
	weft_test_open(&t, NULL);
	weft_test_close(&t);
	weft_test_look(&before);
	weft_test_fork(&line, at_once, NULL);
	at_once(&line, NULL);
	weft_test_join(&line);
	many_to_one();
	weft_test_check_clean(&before);
	printf("%d meetings at once, %d peers of one endpoint\n", ROUNDS,
	       PROCESSES * PER_PROCESS);
	return 0;
}
