/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender is killed while the receiver computes, after it has sent more than
 * the receiver has room for: of some messages, some packets were delivered and
 * others were not. Every receive ends once: with the message, with an error if
 * the message had begun, or cancelled. The receiver continues to work.
 *
 * A message that was whole when its sender died may come as late as the machine
 * is busy: each round has its own tag and bytes.
 */
#include "msg_util.h"

#define COUNT 128
#define LEN 48000 /* several packets on every device */
#define ROUNDS 2
#define QUIET_MS 300

static uint8_t *bufs[COUNT];
static struct fi_context contexts[COUNT];

static uint64_t seed_of(ptrdiff_t i, uint64_t round)
{
	return (uint64_t)i + COUNT * round;
}

static void victim(struct weft_test_line *line, void *arg)
{
	uint64_t round = *(uint64_t *)arg;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	weft_test_sync(line);
	for (int i = 0; i < COUNT; i++) {
		weft_test_fill(bufs[i], LEN, seed_of(i, round));
		CHECK_OK(weft_test_tsend(&t, bufs[i], LEN, peer, round,
					 &contexts[i]));
	}
	/* As much as the receiver's side takes while nobody is there. */
	weft_test_progress_for(100);
	weft_test_put(line, "s", 1);
	for (;;)
		weft_test_progress();
}

static int end_of(const struct weft_test_comp *comp, uint64_t round, bool *done,
		  int *came)
{
	ptrdiff_t i = (struct fi_context *)comp->entry.op_context - contexts;

	CHECK(i >= 0 && i < COUNT && !done[i]);
	done[i] = true;
	if (comp->ret < 0)
		return comp->ret;
	/* In order, whole. Packets overtake each other, so that a message may be
	 * here before one that was sent earlier and still lacks a packet. */
	CHECK_EQ(comp->entry.len, LEN);
	CHECK(weft_test_holds(bufs[i], LEN, seed_of(i, round)));
	++*came;
	return 0;
}

static void lose_one(struct weft_test *t, uint64_t round)
{
	int came = 0, failed = 0, cancelled = 0, left = COUNT;
	bool done[COUNT] = { false };
	struct weft_test_line line;
	struct weft_test_comp comp;
	fi_addr_t peer;
	char mark;

	weft_test_fork(&line, victim, &round);
	peer = weft_test_meet(t, &line);
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(weft_test_trecv(t, bufs[i], LEN, round, 0,
					 &contexts[i]));
	weft_test_sync(&line);
	CHECK(weft_test_get(&line, &mark, 1));
	weft_test_kill(&line);
	while (left && weft_test_wait_for(t->rxcq, &comp, QUIET_MS)) {
		failed += !!end_of(&comp, round, done, &came);
		left--;
	}
	for (int i = 0; i < COUNT; i++) {
		/* It finds none that has begun. */
		if (!done[i])
			fi_cancel(&t->ep->fid, &contexts[i]);
	}
	for (; left; left--) {
		weft_test_wait(t->rxcq, &comp);
		if (end_of(&comp, round, done, &came) == -FI_ECANCELED)
			cancelled++;
		else
			failed++;
	}
	printf("%d came, %d failed, %d had not begun\n", came, failed,
	       cancelled);
	msg_expect_quiet(t->rxcq, 20);
	CHECK_OK(fi_av_remove(t->av, &peer, 1, 0));
}

int main(void)
{
	struct weft_test t;

	weft_test_begin(110);
	/* The software EFA device asks a peer that is gone for so long. */
	setenv("WEFT_EFA_TIMEOUT", "500ms", 1);
	weft_test_load();
	for (int i = 0; i < COUNT; i++)
		bufs[i] = msg_alloc(LEN);
	weft_test_open(&t, NULL);
	for (uint64_t i = 0; i < ROUNDS; i++)
		lose_one(&t, i);
	weft_test_close(&t);
	for (int i = 0; i < COUNT; i++)
		free(bufs[i]);
	return 0;
}
