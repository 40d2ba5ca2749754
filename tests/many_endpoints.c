/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 1024 endpoints in one AV, in a few processes, each of which has its own
 * endpoints in one domain with one CQ. One endpoint exchanges messages with all
 * of them, then some exchange messages with each other. Each message arrives
 * unchanged, with the right source.
 */
#include "msg_util.h"

#include <sys/resource.h>

#define PROCESSES 8
#define PER_PROCESS 128
#define ENDPOINTS (PROCESSES * PER_PROCESS)

#define LARGE 20000
/* KEPT_MAX of shm/regs.c */
#define KEPT 64

/* Endpoints need sockets. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	CHECK_SYS(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur < 8 * ENDPOINTS) {
		printf("only %llu descriptors are allowed here\n",
		       (unsigned long long)limit.rlim_cur);
		exit(77);
	}
}

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
	.one_cq = true,
	.rx_size = 64,
	.tx_size = 64,
};

static size_t size_of(uint64_t i)
{
	return i % 50 ? i % 400 : LARGE;
}

/* -- those that are many --------------------------------------------------- */

static struct weft_test eps[PER_PROCESS];

/* Each endpoint receives its message from the hub, and answers. @first: the
 * number of this process's first endpoint among all. */
static void answer_all(uint64_t first, fi_addr_t hub)
{
	static uint8_t bufs[PER_PROCESS][LARGE];
	uint64_t end = weft_test_ms() + 2 * WEFT_TEST_PATIENCE_MS;
	int sent = 0;

	for (uint64_t i = 0; i < PER_PROCESS; i++)
		CHECK_OK(weft_test_trecv(&eps[i], bufs[i], LARGE, first + i, 0,
					 bufs[i]));
	while (sent < PER_PROCESS) {
		struct weft_test_comp comp;
		uint64_t i;
		size_t len;

		CHECK(weft_test_ms() < end);
		if (!weft_test_poll(eps[0].txcq, &comp))
			continue;
		CHECK_EQ(comp.ret, 1);
		if (comp.entry.flags & FI_SEND) {
			sent++;
			continue;
		}
		i = comp.entry.tag - first;
		CHECK(i < PER_PROCESS && comp.entry.op_context == bufs[i]);
		len = size_of(first + i);
		CHECK_EQ(comp.entry.len, len);
		CHECK_EQ(comp.src, hub);
		CHECK(weft_test_holds(bufs[i], len, first + i));
		weft_test_fill(bufs[i], len, first + i + 5000);
		CHECK_OK(weft_test_tsend(&eps[i], bufs[i], len, hub, first + i,
					 bufs[i]));
	}
}

/* Neighbours exchange messages, so that some have several peers. */
static void talk_to_next(uint64_t i)
{
	struct weft_test *from = &eps[i], *to = &eps[(i + 1) % PER_PROCESS];
	fi_addr_t addr = weft_test_know(from, to);
	fi_addr_t back = weft_test_know(to, from);
	uint8_t in[64], out[64];
	struct weft_test_comp comp;

	weft_test_fill(out, 64, i);
	CHECK_OK(weft_test_trecv(to, in, 64, 7777, 0, in));
	CHECK_OK(weft_test_inject(from, out, 0, addr)); /* nobody receives it */
	POST(fi_tinject(from->ep, out, 64, addr, 7777));
	weft_test_wait(to->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == in);
	CHECK_EQ(comp.src, back);
	CHECK(weft_test_holds(in, 64, i));
}

static void host(struct weft_test_line *line, void *arg)
{
	const uint64_t first = *(uint64_t *)arg * PER_PROCESS;
	struct weft_test_opts mine = opts;
	uint8_t name[WEFT_TEST_NAME_MAX];
	fi_addr_t hub;
	char mark;

	for (int i = 0; i < PER_PROCESS; i++) {
		weft_test_open(&eps[i], &mine);
		weft_test_put(line, eps[i].name, sizeof(eps[i].name));
		mine.sibling = &eps[0];
		mine.same_cqs = true;
	}
	CHECK(weft_test_get(line, name, sizeof(name)));
	hub = weft_test_insert(&eps[0], name);
	answer_all(first, hub);
	for (uint64_t i = 0; i < PER_PROCESS; i++)
		talk_to_next(i);
	/* Everything is sent. Processes that still work need the processors. */
	weft_test_put(line, "d", 1);
	CHECK(weft_test_get(line, &mark, 1));
	for (int i = PER_PROCESS; i--;)
		weft_test_close(&eps[i]);
}

/* -- the one --------------------------------------------------------------- */

static fi_addr_t to[ENDPOINTS];
static uint8_t *in[ENDPOINTS];
static struct fi_context contexts[ENDPOINTS];

static void meet_all(struct weft_test *t, struct weft_test_line *lines)
{
	uint8_t name[WEFT_TEST_NAME_MAX];

	for (int i = 0; i < ENDPOINTS; i++) {
		CHECK(weft_test_get(&lines[i / PER_PROCESS], name,
				    sizeof(name)));
		to[i] = weft_test_insert(t, name);
	}
	for (int i = 0; i < PROCESSES; i++)
		weft_test_put(&lines[i], t->name, sizeof(t->name));
}

static void talk_to_all(struct weft_test *t)
{
	uint64_t end = weft_test_ms() + 2 * WEFT_TEST_PATIENCE_MS;
	int sent = 0, received = 0;
	uint8_t *out[ENDPOINTS];

	for (uint64_t i = 0; i < ENDPOINTS; i++) {
		in[i] = msg_alloc(size_of(i));
		out[i] = msg_alloc(size_of(i));
		weft_test_fill(out[i], size_of(i), i);
		CHECK_OK(weft_test_trecv(t, in[i], size_of(i), i, 0,
					 &contexts[i]));
		CHECK_OK(
			weft_test_tsend(t, out[i], size_of(i), to[i], i, NULL));
	}
	while (sent < ENDPOINTS || received < ENDPOINTS) {
		struct weft_test_comp comp;
		uint64_t i;

		CHECK(weft_test_ms() < end);
		if (!weft_test_poll(t->txcq, &comp))
			continue;
		CHECK_EQ(comp.ret, 1);
		if (comp.entry.flags & FI_SEND) {
			sent++;
			continue;
		}
		i = comp.entry.tag;
		CHECK(i < ENDPOINTS && comp.entry.op_context == &contexts[i]);
		CHECK_EQ(comp.src, to[i]);
		CHECK(weft_test_holds(in[i], size_of(i), i + 5000));
		received++;
	}
	for (int i = 0; i < ENDPOINTS; i++) {
		free(in[i]);
		free(out[i]);
	}
}

/* One descriptor for each peer, although messages go in both directions, so
 * that 512 peers stay within the usual limit of 1024 descriptors. Bug: there
 * were two. A socket is closed when both sides have agreed on the other one. The
 * tables of registrations that were not used yet are open, too: KEPT at most. */
static void check_descriptors(const struct weft_test_traces *before)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_traces now;

	if (weft_test_by_packets())
		return;
	do {
		CHECK(weft_test_ms() < end);
		weft_test_progress_for(5);
		weft_test_look(&now);
	} while (now.descriptors > before->descriptors + ENDPOINTS + KEPT + 8);
}

int main(void)
{
	struct weft_test_traces before;
	struct weft_test_opts mine = opts;
	struct weft_test_line lines[PROCESSES];
	struct weft_test t;
	uint64_t begin;
	char mark;

	weft_test_begin(100);
	allow_descriptors();
	weft_test_load();
	for (uint64_t i = 0; i < PROCESSES; i++)
		weft_test_fork(&lines[i], host, &i);
	mine.rx_size = mine.tx_size = ENDPOINTS;
	weft_test_open(&t, &mine);
	meet_all(&t, lines);
	weft_test_look(&before);
	begin = weft_test_ms();
	talk_to_all(&t);
	printf("%d endpoints in %llu ms\n", ENDPOINTS,
	       (unsigned long long)(weft_test_ms() - begin));
	check_descriptors(&before);
	for (int i = 0; i < PROCESSES; i++)
		CHECK(weft_test_get(&lines[i], &mark, 1));
	for (int i = 0; i < PROCESSES; i++)
		weft_test_put(&lines[i], "g", 1);
	for (int i = 0; i < PROCESSES; i++)
		weft_test_join(&lines[i]);
	weft_test_close(&t);
	return 0;
}
