/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that are longer than their receive: FI_ETRUNC with both lengths, the
 * beginning in the buffer, nothing behind the buffer touched, and success at
 * the sender. Between two processes, for every protocol.
 */
#include "msg_util.h"

static const struct {
	size_t sent, room;
} cases[] = {
	{ 1, 0 },	   { 40, 39 },
	{ 100, 0 },	   { 4096, 41 },
	{ 5000, 4999 },	   { 16384, 2048 },
	{ 100000, 0 },	   { 100000, 1000 },
	{ 100000, 99999 }, { 2 << 20, 1 << 20 },
};

/* Tagged and untagged, posted before and after the message arrives. */
#define ROUNDS 4

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(cases) * ROUNDS; i++) {
		size_t len = cases[i / ROUNDS].sent;
		uint8_t *buf = msg_alloc(len);
		struct fi_context context;

		weft_test_fill(buf, len, i);
		if (i % 4 < 2)
			weft_test_sync(line);
		if (i % 2)
			CHECK_OK(weft_test_tsend(t, buf, len, peer, i,
						 &context));
		else
			CHECK_OK(weft_test_send(t, buf, len, peer, &context));
		if (i % 4 >= 2)
			weft_test_sync(line);
		weft_test_wait_ok(t->txcq, &context);
		free(buf);
	}
	weft_test_sync(line);
}

static void check(struct weft_test *t, size_t i, const uint8_t *buf,
		  void *context, fi_addr_t peer)
{
	size_t sent = cases[i / ROUNDS].sent, room = cases[i / ROUNDS].room;
	struct weft_test_comp comp;

	(void)peer;
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, -FI_ETRUNC);
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.err.len, room);
	CHECK_EQ(comp.err.olen, sent - room);
	CHECK_EQ(comp.err.flags & (FI_RECV | FI_TAGGED | FI_MSG),
		 FI_RECV | (i % 2 ? FI_TAGGED : FI_MSG));
	if (i % 2)
		CHECK_EQ(comp.err.tag, i);
	CHECK(weft_test_holds(buf, room, i));
	for (size_t k = room; k < room + 64; k++)
		CHECK_EQ(buf[k], 0xee);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(cases) * ROUNDS; i++) {
		size_t room = cases[i / ROUNDS].room;
		uint8_t *buf = msg_alloc(room + 64);
		struct fi_context context;

		if (i % 4 >= 2) {
			weft_test_sync(line);
			weft_test_progress_for(2);
		}
		if (i % 2)
			CHECK_OK(weft_test_trecv(t, buf, room, i, 0, &context));
		else
			CHECK_OK(weft_test_recv(t, buf, room, &context));
		if (i % 4 < 2)
			weft_test_sync(line);
		check(t, i, buf, &context, peer);
		free(buf);
	}
	weft_test_sync(line);
}

/* Without CMA everything goes through the ring. */
static void without_cma(struct weft_test_line *line, void *arg)
{
	(void)line;
	(void)arg;
	setenv("FI_WEFT_CMA", "0", 1);
	weft_test_pair(NULL, sender, receiver, NULL);
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(without_cma, NULL);
	weft_test_pair(NULL, sender, receiver, NULL);
	return 0;
}
