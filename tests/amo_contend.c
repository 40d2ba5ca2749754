/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several processes, one of them the owner, change the same words at the same
 * time: no update is lost, and no two fetches return the same value.
 */
#include "amo_util.h"

#include <complex.h>

#define PEERS 4
#define FETCHES 2000
#define SWAPS 300
#define SUMS 500

/* The memory that all processes change, one cache line for each word. */
struct shared {
	_Alignas(64) uint64_t ticket;  /* fetch-add */
	_Alignas(64) uint64_t swapped; /* by compare and swap */
	_Alignas(64) uint32_t halves[2];
	_Alignas(64) double real;
	_Alignas(64) unsigned __int128 wide;
	_Alignas(64) long double complex odd; /* larger than any CPU's atomic */
};

struct worker {
	struct weft_test *t;
	fi_addr_t owner;
	struct rma_target target;
	uint64_t *tickets; /* FETCHES of them */
};

#define AT(w, member) ((w)->target.base + offsetof(struct shared, member))

static void wait(struct worker *w, void *context, uint64_t flags)
{
	rma_wait(w->t, context, FI_ATOMIC | flags);
}

/* Eight at a time, so that operations of one peer can overtake each other,
 * too. */
static void fetch_tickets(struct worker *w)
{
	static const uint64_t one = 1;
	struct fi_context contexts[8];

	for (int i = 0; i < FETCHES; i += 8) {
		for (int k = 0; k < 8; k++)
			POST(fi_fetch_atomic(w->t->ep, &one, 1, NULL,
					     &w->tickets[i + k], NULL, w->owner,
					     AT(w, ticket), w->target.key,
					     FI_UINT64, FI_SUM, &contexts[k]));
		for (int k = 0; k < 8; k++)
			weft_test_wait_ok(w->t->txcq, NULL);
	}
}

/* Increments the word with compare and swap only. */
static void swap(struct worker *w)
{
	uint64_t expected = 0, next, seen;
	struct fi_context context;

	for (int done = 0; done < SWAPS;) {
		next = expected + 1;
		POST(fi_compare_atomic(w->t->ep, &next, 1, NULL, &expected,
				       NULL, &seen, NULL, w->owner,
				       AT(w, swapped), w->target.key, FI_UINT64,
				       FI_CSWAP, &context));
		wait(w, &context, FI_READ);
		done += seen == expected;
		expected = seen == expected ? next : seen;
	}
}

static void add(struct worker *w, enum fi_datatype type, size_t count,
		uint64_t addr, const void *operand, int times)
{
	struct fi_context context;

	for (int i = 0; i < times; i++) {
		if (i % 2) {
			POST(fi_inject_atomic(w->t->ep, operand, count,
					      w->owner, addr, w->target.key,
					      type, FI_SUM));
		} else {
			POST(fi_atomic(w->t->ep, operand, count, NULL, w->owner,
				       addr, w->target.key, type, FI_SUM,
				       &context));
			wait(w, &context, FI_WRITE);
		}
	}
}

static void work(struct worker *w)
{
	static const uint32_t halves[2] = { 1, 3 };
	static const unsigned __int128 wide = (unsigned __int128)1 << 63;
	static const double half = 0.5;
	long double complex odd;

	memset(&odd, 0, sizeof(odd));
	odd = 1.0L + 2.0L * I;
	fetch_tickets(w);
	swap(w);
	add(w, FI_UINT32, 2, AT(w, halves), halves, SUMS);
	add(w, FI_DOUBLE, 1, AT(w, real), &half, SUMS);
	add(w, FI_UINT128, 1, AT(w, wide), &wide, SUMS);
	add(w, FI_LONG_DOUBLE_COMPLEX, 1, AT(w, odd), &odd, SUMS);
}

/* -- processes ------------------------------------------------------------- */

static const struct weft_test_opts opts = { .caps = AMO_CAPS };

static void peer(struct weft_test_line *line, void *arg)
{
	uint64_t tickets[FETCHES];
	struct worker w = { .tickets = tickets };
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, &opts);
	w.t = &t;
	w.owner = weft_test_meet(&t, line);
	w.target = rma_learn(line);
	work(&w);
	weft_test_put(line, tickets, sizeof(tickets));
	weft_test_sync(line);
	weft_test_close(&t);
}

static void take_tickets(bool *seen, const uint64_t *tickets)
{
	for (int i = 0; i < FETCHES; i++) {
		CHECK(tickets[i] < (PEERS + 1) * FETCHES);
		if (seen[tickets[i]])
			FAIL("two got %llu", (unsigned long long)tickets[i]);
		seen[tickets[i]] = true;
	}
}

/* The last injected operation may still be on its way. The last operation of
 * each peer is a sum of this type, so wait for it. */
static void settle(const struct shared *shared)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	const volatile long double complex *odd = &shared->odd;

	while (creall(*odd) != (PEERS + 1) * SUMS && weft_test_ms() < end)
		weft_test_progress();
}

static void check_sums(const struct shared *shared)
{
	const uint64_t all = PEERS + 1;
	long double complex odd = shared->odd;

	CHECK_EQ(shared->ticket, all * FETCHES);
	CHECK_EQ(shared->swapped, all * SWAPS);
	CHECK_EQ(shared->halves[0], all * SUMS);
	CHECK_EQ(shared->halves[1], all * SUMS * 3);
	CHECK(shared->real == (double)(all * SUMS) / 2);
	CHECK(shared->wide == (unsigned __int128)(all * SUMS) << 63);
	CHECK(creall(odd) == (long double)(all * SUMS));
	CHECK(cimagl(odd) == (long double)(all * SUMS * 2));
}

static void run(struct weft_test_line *unused, void *arg)
{
	static struct shared shared;
	static bool seen[(PEERS + 1) * FETCHES];
	static uint64_t tickets[FETCHES];
	struct weft_test_line lines[PEERS];
	struct worker self = { .tickets = tickets };
	struct weft_test t;
	struct fid_mr *mr;

	(void)unused;
	(void)arg;
	weft_test_load();
	for (int i = 0; i < PEERS; i++)
		weft_test_fork(&lines[i], peer, NULL);
	weft_test_open(&t, &opts);
	self.t = &t;
	self.owner = weft_test_know(&t, &t);
	self.target =
		rma_expose(&t, &shared, sizeof(shared), RMA_ACCESS, 9, &mr);
	for (int i = 0; i < PEERS; i++)
		weft_test_meet(&t, &lines[i]);
	for (int i = 0; i < PEERS; i++)
		weft_test_put(&lines[i], &self.target, sizeof(self.target));
	work(&self);
	take_tickets(seen, tickets);
	for (int i = 0; i < PEERS; i++) {
		CHECK(weft_test_get_driving(&lines[i], tickets,
					    sizeof(tickets)));
		take_tickets(seen, tickets);
	}
	for (int i = 0; i < PEERS; i++)
		weft_test_sync(&lines[i]);
	settle(&shared);
	check_sums(&shared);
	for (int i = 0; i < PEERS; i++)
		weft_test_join(&lines[i]);
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t);
}

int main(void)
{
	weft_test_begin(100);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	return 0;
}
