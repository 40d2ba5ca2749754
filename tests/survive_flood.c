/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flood of unexpected messages, small and large, at a receiver that receives
 * them late and slowly. Nothing is lost, the order is kept, the memory of a
 * buffered message is freed when it is received, and the sender can continue.
 */
#include "common/fabric.h"

#include <malloc.h>

#define COUNT 60000
#define LARGE_EVERY 500 /* their payload stays with the sender */
#define LARGE 100000
#define MEDIUM 6000
#define MEDIUM_EVERY 20
#define IN_FLIGHT 256

/* Memory that a heap may keep after everything was freed. */
#define SLACK ((size_t)256 << 10)

static size_t size_of(uint64_t number)
{
	if (number % LARGE_EVERY == 7)
		return LARGE;
	if (number % MEDIUM_EVERY == 3)
		return MEDIUM;
	return 8 + number % 100;
}

static void flood(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	static uint8_t buf[IN_FLIGHT][LARGE];
	static struct fi_context context[IN_FLIGHT];
	int free_list[IN_FLIGHT], free_count = IN_FLIGHT;
	char done;

	(void)arg;
	for (int i = 0; i < IN_FLIGHT; i++)
		free_list[i] = i;
	for (uint64_t number = 0; number < COUNT;) {
		struct weft_test_comp comp;
		int i;

		/* A large message completes only when it is received; others
		 * continue. */
		while (weft_test_poll(t->txcq, &comp)) {
			struct fi_context *c = comp.entry.op_context;

			CHECK_EQ(comp.ret, 1);
			free_list[free_count++] = (int)(c - context);
		}
		if (!free_count)
			continue;
		i = free_list[free_count - 1];
		weft_test_fill(buf[i], size_of(number), number);
		if (fi_tsend(t->ep, buf[i], size_of(number), NULL, peer, number,
			     &context[i]))
			continue;
		free_count--;
		number++;
	}
	while (free_count++ < IN_FLIGHT)
		weft_test_wait_ok(t->txcq, NULL);
	CHECK(weft_test_get_driving(line, &done, 1));
}

/* Receives the next message of any kind and checks that it is the right one. */
static void take(struct weft_test *t, uint8_t *buf, uint64_t number)
{
	struct weft_test_comp comp;
	struct fi_context context;

	CHECK_OK(weft_test_trecv(t, buf, LARGE, 0, ~0ull, &context));
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(comp.entry.tag, number);
	CHECK_EQ(comp.entry.len, size_of(number));
	CHECK(weft_test_holds(buf, comp.entry.len, number));
}

static void slow_receiver(struct weft_test *t, fi_addr_t peer,
			  struct weft_test_line *line, void *arg)
{
	uint8_t *buf = malloc(LARGE);
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	size_t before, kept, after;
	uint64_t number = 0;
	char done = 'd';

	(void)peer;
	(void)arg;
	CHECK(buf);
	take(t, buf, number++); /* allocates what a peer costs */
	before = mallinfo2().uordblks;
	usleep(200000); /* no progress: the ring fills up */
	do {
		weft_test_progress_for(100);
		kept = mallinfo2().uordblks;
		CHECK(weft_test_ms() < end);
	} while (kept <= before + SLACK); /* otherwise it was no flood */
	while (number < COUNT / 4) {
		take(t, buf, number++);
		if (number % 1000 == 0)
			weft_test_progress_for(10);
	}
	while (number < COUNT)
		take(t, buf, number++);
	after = mallinfo2().uordblks;
	if (after > before + SLACK)
		FAIL("%zu bytes before, %zu kept, %zu after", before, kept,
		     after);
	weft_test_put(line, &done, 1);
	printf("%d messages, up to %zu KiB of them kept, all freed\n", COUNT,
	       (kept - before) >> 10);
	free(buf);
}

int main(void)
{
	weft_test_begin(100);
	weft_test_pair(NULL, flood, slow_receiver, NULL);
	return 0;
}
