/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues of 16 entries under load, read one entry at a time, late
 * and in bursts: no completion of a send or a receive is lost or duplicated,
 * and errors come in the right order.
 */
#include "common/fabric.h"

#define COUNT 200000
#define POSTED 512

static const struct weft_test_opts opts = { .cq_size = 16 };

/* The contexts: each must be seen once per round. */
struct ledger {
	struct fi_context context[POSTED];
	bool open[POSTED];
	uint64_t seen;
};

static int settle(struct ledger *ledger, const struct weft_test_comp *comp)
{
	struct fi_context *context = comp->entry.op_context;
	int i = (int)(context - ledger->context);

	CHECK(i >= 0 && i < POSTED && ledger->open[i]);
	ledger->open[i] = false;
	ledger->seen++;
	return i;
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	static uint64_t buf[POSTED];
	struct ledger *ledger = arg;
	struct weft_test_comp comp;
	uint64_t posted = 0;
	int next = 0;
	char done;

	while (ledger->seen < COUNT) {
		/* Posts as many as the queue accepts, then reads completions
		 * one by one. */
		while (posted < COUNT && !ledger->open[next]) {
			ssize_t ret;

			buf[next] = posted;
			ret = fi_tsend(t->ep, &buf[next], sizeof(posted), NULL,
				       peer, posted, &ledger->context[next]);

			if (ret == -FI_EAGAIN)
				break;
			CHECK_OK(ret);
			ledger->open[next] = true;
			next = (next + 1) % POSTED;
			posted++;
		}
		weft_test_wait(t->txcq, &comp);
		CHECK_EQ(comp.ret, 1);
		settle(ledger, &comp);
	}
	CHECK(!weft_test_poll(t->txcq, &comp));
	CHECK(weft_test_get_driving(line, &done, 1));
	CHECK(!weft_test_poll(t->txcq, &comp));
}

/* Too short for every 100th message: an error among the successes. */
static size_t room_for(uint64_t number)
{
	return number % 100 == 99 ? 4 : sizeof(uint64_t);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	static uint64_t buf[POSTED];
	struct ledger *ledger = arg;
	struct weft_test_comp comp;
	uint64_t posted = 0;
	char done = 'd';

	(void)peer;
	for (; posted < POSTED; posted++) {
		CHECK_OK(weft_test_trecv(t, &buf[posted], room_for(posted), 0,
					 ~0ull, &ledger->context[posted]));
		ledger->open[posted] = true;
	}
	while (ledger->seen < COUNT) {
		uint64_t number = ledger->seen;
		int i;

		if (number % 20000 == 0)
			weft_test_progress_for(20); /* completions pile up */
		weft_test_wait(t->rxcq, &comp);
		i = settle(ledger, &comp);
		CHECK_EQ(comp.ret, room_for(number) == 4 ? -FI_ETRUNC : 1);
		CHECK_EQ(comp.entry.tag, number);
		CHECK(comp.ret < 0 || buf[i] == number);
		if (posted == COUNT)
			continue;
		CHECK_OK(weft_test_trecv(t, &buf[i], room_for(posted), 0, ~0ull,
					 &ledger->context[i]));
		ledger->open[i] = true;
		posted++;
	}
	CHECK(!weft_test_poll(t->rxcq, &comp));
	weft_test_put(line, &done, 1);
}

int main(void)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	weft_test_begin(100);
	CHECK(ledger);
	weft_test_pair(&opts, sender, receiver, ledger);
	free(ledger);
	printf("%d completions each way through 16 entries\n", COUNT);
	return 0;
}
