/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 2500 iterations of a window of 2000 messages, or as many iterations as the
 * first argument says. Every message is checked: number, order, length and
 * contents. Memory does not grow: the resident memory after the last message is
 * the same as after the first windows, at both ends.
 *
 * Both sides wait for each other once in a window. If many processes compete
 * for the processors, this alone may take minutes: after one minute the current
 * window is the last, if there were enough windows to see growth.
 */
#include "common/fabric.h"

#define WINDOW 2000
#define WARM 200
#define ENOUGH 1000
#define ENOUGH_MS 60000
#define MAX_SIZE 64

/* Pages that libc or the kernel may allocate in the meantime. */
#define SLACK ((size_t)512 << 10)

static uint64_t iterations = 2500;
static uint64_t enough_ms = ENOUGH_MS;

struct batch {
	uint8_t buf[WINDOW][MAX_SIZE];
	struct fi_context context[WINDOW];
};

static size_t size_of(uint64_t number)
{
	return 8 + number * 7 % (MAX_SIZE - 8 + 1);
}

/* Cheaper than weft_test_fill(), but no two messages are the same. */
static void write_message(uint8_t *buf, size_t len, uint64_t number)
{
	uint64_t word = number * 0x9e3779b97f4a7c15u;

	for (size_t at = 8; at + 8 <= len; at += 8)
		memcpy(buf + at, &word, 8);
	for (size_t at = len & ~(size_t)7; at < len; at++)
		buf[at] = (uint8_t)(number + at);
	memcpy(buf, &number, 8);
}

static void check_message(const uint8_t *buf, size_t len, uint64_t number)
{
	uint8_t want[MAX_SIZE];

	write_message(want, len, number);
	if (memcmp(buf, want, len))
		FAIL("message %llu is not what was sent",
		     (unsigned long long)number);
}

/* Reads @count completions; each must be a success. */
static void collect(struct fid_cq *cq, int count, struct fi_cq_tagged_entry *to)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct fi_cq_tagged_entry bin[64];

	while (count) {
		struct fi_cq_tagged_entry *at = to ? to : bin;
		size_t room = count < 64 ? (size_t)count : 64;
		ssize_t got = fi_cq_read(cq, at, room);

		if (got == -FI_EAGAIN) {
			weft_test_progress(); /* yields at times */
			if (weft_test_ms() > end)
				FAIL("%d completions are missing", count);
			continue;
		}
		CHECK(got > 0);
		end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
		count -= (int)got;
		if (to)
			to += got;
	}
}

static void check_growth(const struct weft_test_traces *warm)
{
	struct weft_test_traces now;

	weft_test_look(&now);
	CHECK_EQ(now.descriptors, warm->descriptors);
	CHECK_EQ(now.rings, warm->rings);
	if (now.private > warm->private + SLACK)
		FAIL("grew from %zu to %zu bytes", warm->private, now.private);
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	struct batch *batch = arg;
	struct weft_test_traces warm = { 0 };
	uint64_t number = 0;
	char ready = 'r';

	for (uint64_t n = 0; ready == 'r'; n++) {
		/* The peer has posted the window: no message is unexpected. */
		CHECK(weft_test_get(line, &ready, 1));
		for (int i = 0; i < WINDOW; i++, number++) {
			size_t len = size_of(number);

			write_message(batch->buf[i], len, number);
			CHECK_OK(weft_test_tsend(t, batch->buf[i], len, peer,
						 number & 3,
						 &batch->context[i]));
		}
		collect(t->txcq, WINDOW, NULL);
		if (n == WARM)
			weft_test_look(&warm);
	}
	check_growth(&warm);
	CHECK(weft_test_get_driving(line, &ready, 1));
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	static struct fi_cq_tagged_entry entries[WINDOW];
	struct batch *batch = arg;
	struct weft_test_traces warm = { 0 };
	uint64_t number = 0, begin = weft_test_ms();
	char ready = 'r';

	(void)peer;
	for (uint64_t n = 0; ready == 'r'; n++) {
		for (int i = 0; i < WINDOW; i++)
			CHECK_OK(weft_test_trecv(t, batch->buf[i], MAX_SIZE,
						 (uint64_t)i & 3, 0,
						 &batch->context[i]));
		if (n == iterations - 1 ||
		    (n >= ENOUGH && weft_test_ms() - begin > enough_ms))
			ready = 'l'; /* the last window */
		weft_test_put(line, &ready, 1);
		collect(t->rxcq, WINDOW, entries);
		for (int i = 0; i < WINDOW; i++, number++) {
			CHECK(entries[i].op_context == &batch->context[i]);
			CHECK_EQ(entries[i].len, size_of(number));
			check_message(batch->buf[i], size_of(number), number);
		}
		if (n == WARM)
			weft_test_look(&warm);
	}
	check_growth(&warm);
	printf("%llu windows of %d messages, nothing grew\n",
	       (unsigned long long)number / WINDOW, WINDOW);
	weft_test_put(line, &ready, 1);
}

int main(int argc, char **argv)
{
	struct batch *batch = calloc(1, sizeof(*batch));

	if (argc > 1) {
		iterations = strtoull(argv[1], NULL, 10);
		enough_ms = UINT64_MAX;
		CHECK(iterations > WARM);
	}
	weft_test_begin(argc > 1 ? 3600 : 110);
	CHECK(batch);
	weft_test_pair(NULL, sender, receiver, batch);
	free(batch);
	return 0;
}
