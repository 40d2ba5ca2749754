/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 64 processes, each of which sends to all others at the same time: small and
 * large messages, several rounds. Every process receives from every other
 * exactly the messages that were meant for it.
 */
#include "msg_util.h"

#define PROCESSES 64
#define ROUNDS 4
#define LARGE 30000

static size_t size_of(uint64_t round)
{
	static const size_t sizes[ROUNDS] = { 8, 1000, 5000, LARGE };

	return sizes[round];
}

static uint64_t seed_of(uint64_t from, uint64_t to, uint64_t round)
{
	return (from * PROCESSES + to) * ROUNDS + round;
}

struct member {
	struct weft_test t;
	uint64_t me;
	fi_addr_t to[PROCESSES];
	uint8_t *in[PROCESSES];
	uint8_t *out[PROCESSES];
};

/* The tag contains sender and round; rounds may arrive in any order. */
static void one_round(struct member *m, uint64_t round)
{
	uint64_t end = weft_test_ms() + 2 * WEFT_TEST_PATIENCE_MS;
	int sent = 0, received = 0;
	size_t len = size_of(round);

	for (uint64_t i = 0; i < PROCESSES; i++)
		CHECK_OK(weft_test_trecv(&m->t, m->in[i], len,
					 seed_of(i, m->me, round), 0,
					 m->in[i]));
	for (uint64_t k = 0; k < PROCESSES; k++) {
		/* Each process starts with a different peer. */
		uint64_t i = (m->me + k) % PROCESSES;

		weft_test_fill(m->out[i], len, seed_of(m->me, i, round));
		CHECK_OK(weft_test_tsend(&m->t, m->out[i], len, m->to[i],
					 seed_of(m->me, i, round), NULL));
	}
	while (sent < PROCESSES || received < PROCESSES) {
		struct weft_test_comp comp;
		uint64_t from;

		CHECK(weft_test_ms() < end);
		if (!weft_test_poll(m->t.txcq, &comp))
			continue;
		CHECK_EQ(comp.ret, 1);
		if (comp.entry.flags & FI_SEND) {
			sent++;
			continue;
		}
		from = comp.entry.tag / ROUNDS / PROCESSES;
		CHECK(from < PROCESSES);
		CHECK(comp.entry.op_context == m->in[from]);
		CHECK_EQ(comp.src, m->to[from]);
		CHECK(weft_test_holds(m->in[from], len,
				      seed_of(from, m->me, round)));
		received++;
	}
}

static void member(struct weft_test_line *line, void *arg)
{
	static uint8_t names[PROCESSES][WEFT_TEST_NAME_MAX];
	static struct member m;
	const struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
		.one_cq = true,
	};
	char mark;

	m.me = *(uint64_t *)arg;
	weft_test_open(&m.t, &opts);
	weft_test_put(line, m.t.name, sizeof(m.t.name));
	CHECK(weft_test_get(line, names, sizeof(names)));
	for (int i = 0; i < PROCESSES; i++) {
		m.to[i] = weft_test_insert(&m.t, names[i]);
		m.in[i] = msg_alloc(LARGE);
		m.out[i] = msg_alloc(LARGE);
	}
	for (uint64_t round = 0; round < ROUNDS; round++)
		one_round(&m, round);
	/* Everything is sent. Processes that still work need the processors. */
	weft_test_put(line, "d", 1);
	CHECK(weft_test_get(line, &mark, 1));
	weft_test_close(&m.t);
}

int main(void)
{
	static uint8_t names[PROCESSES][WEFT_TEST_NAME_MAX];
	static struct weft_test_line lines[PROCESSES];
	uint64_t begin;
	char mark;

	weft_test_begin(110);
	weft_test_load();
	for (uint64_t i = 0; i < PROCESSES; i++)
		weft_test_fork(&lines[i], member, &i);
	for (int i = 0; i < PROCESSES; i++)
		CHECK(weft_test_get(&lines[i], names[i], sizeof(names[i])));
	begin = weft_test_ms();
	for (int i = 0; i < PROCESSES; i++)
		weft_test_put(&lines[i], names, sizeof(names));
	/* All processes finish before any of them exits. */
	for (int i = 0; i < PROCESSES; i++)
		CHECK(weft_test_get(&lines[i], &mark, 1));
	printf("%d processes, all to all, in %llu ms\n", PROCESSES,
	       (unsigned long long)(weft_test_ms() - begin));
	for (int i = 0; i < PROCESSES; i++)
		weft_test_put(&lines[i], "s", 1);
	for (int i = 0; i < PROCESSES; i++)
		weft_test_join(&lines[i]);
	return 0;
}
