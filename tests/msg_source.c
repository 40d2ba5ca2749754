/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of messages: FI_SOURCE for known and unknown senders, and receives
 * that accept messages of one sender only.
 */
#include "msg_util.h"

static const struct weft_test_opts usual = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
};

static const size_t sizes[] = { 0, 100, 5000, 50000 };

static void expect_from(struct weft_test *t, fi_addr_t src, uint64_t tag)
{
	struct weft_test_comp comp;

	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(comp.src, src);
	CHECK_EQ(comp.entry.tag, tag);
}

/* -- a sender that is not in the AV ---------------------------------------- */

/* Sends each size three times. */
static void stranger(struct weft_test_line *line, void *arg)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test t;
	fi_addr_t to;
	void *buf = msg_alloc(50000);

	(void)arg;
	weft_test_open(&t, &usual);
	CHECK(weft_test_get(line, name, sizeof(name)));
	to = weft_test_insert(&t, name);
	for (uint64_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT_OF(sizes); i++)
			CHECK_OK(weft_test_tsend(&t, buf, sizes[i], to,
						 round * 10 + i, NULL));
		if (!round)
			weft_test_put(line, t.name, sizeof(t.name));
		weft_test_sync(line);
	}
	for (size_t i = 0; i < 3 * COUNT_OF(sizes); i++)
		weft_test_wait_ok(t.txcq, NULL);
	weft_test_sync(line);
	weft_test_close(&t);
	free(buf);
}

static void test_stranger(void)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	struct weft_test t, other;
	void *buf = msg_alloc(50000);
	fi_addr_t peer;

	weft_test_open(&t, &usual);
	weft_test_open(
		&other,
		&usual); /* inserts a name: a result other than 0 is correct */
	weft_test_know(&t, &other);
	weft_test_fork(&line, stranger, NULL);
	weft_test_put(&line, t.name, sizeof(t.name));
	/* Bug of libfabric's shm: a peer not in the AV was a segfault. */
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		CHECK_OK(weft_test_trecv(&t, buf, 50000, i, 0, NULL));
		expect_from(&t, FI_ADDR_NOTAVAIL, i);
	}
	CHECK(weft_test_get(&line, name, sizeof(name)));
	weft_test_sync(&line);
	weft_test_sync(&line);
	/* The second round has arrived, and nobody has received it yet. */
	weft_test_progress_for(20);
	peer = weft_test_insert(&t, name);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		POST(fi_trecv(t.ep, buf, 50000, NULL, peer, 10 + i, 0, NULL));
		expect_from(&t, peer, 10 + i);
	}
	weft_test_sync(&line);
	/* The sender is unknown again, as before. */
	CHECK_OK(fi_av_remove(t.av, &peer, 1, 0));
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		CHECK_OK(weft_test_trecv(&t, buf, 50000, 20 + i, 0, NULL));
		expect_from(&t, FI_ADDR_NOTAVAIL, 20 + i);
	}
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
	weft_test_close(&other);
	free(buf);
}

/* -- directed receives ----------------------------------------------------- */

struct three {
	struct weft_test a, b, c;
	fi_addr_t to_c_from_a, to_c_from_b;
	fi_addr_t a_at_c, b_at_c;
};

static void open_three(struct three *s)
{
	weft_test_open(&s->a, &usual);
	weft_test_open(&s->b, &usual);
	weft_test_open(&s->c, &usual);
	s->to_c_from_a = weft_test_know(&s->a, &s->c);
	s->to_c_from_b = weft_test_know(&s->b, &s->c);
	s->a_at_c = weft_test_know(&s->c, &s->a);
	s->b_at_c = weft_test_know(&s->c, &s->b);
}

static void close_three(struct three *s)
{
	weft_test_close(&s->a);
	weft_test_close(&s->b);
	weft_test_close(&s->c);
}

static void expect_at(struct weft_test *t, void *context, fi_addr_t src)
{
	struct weft_test_comp comp;

	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == context);
	CHECK_EQ(comp.src, src);
}

/* Receives from a, from b and from any sender; @tagged with exact tags. */
static void post_one(struct three *s, bool tagged, fi_addr_t src, void *buf,
		     void *context)
{
	if (tagged)
		POST(fi_trecv(s->c.ep, buf, 60000, NULL, src, 5, 0, context));
	else
		POST(fi_recv(s->c.ep, buf, 60000, NULL, src, context));
}

static void send_one(struct weft_test *t, bool tagged, fi_addr_t to, void *buf,
		     size_t len)
{
	if (tagged)
		CHECK_OK(weft_test_tsend(t, buf, len, to, 5, NULL));
	else
		CHECK_OK(weft_test_send(t, buf, len, to, NULL));
}

static void test_directed(bool tagged, size_t len)
{
	struct fi_context from_a, from_b, any;
	void *buf = msg_alloc(60000);
	struct three s;

	open_three(&s);
	/* Receives posted first: b's message passes over the receive for a. */
	post_one(&s, tagged, s.a_at_c, buf, &from_a);
	post_one(&s, tagged, s.b_at_c, buf, &from_b);
	post_one(&s, tagged, FI_ADDR_UNSPEC, buf, &any);
	send_one(&s.b, tagged, s.to_c_from_b, buf, len);
	expect_at(&s.c, &from_b, s.b_at_c);
	send_one(&s.b, tagged, s.to_c_from_b, buf, len);
	expect_at(&s.c, &any, s.b_at_c);
	send_one(&s.b, tagged, s.to_c_from_b, buf, len);
	weft_test_progress_for(5);
	msg_expect_quiet(s.c.rxcq, 5);
	send_one(&s.a, tagged, s.to_c_from_a, buf, len);
	expect_at(&s.c, &from_a, s.a_at_c);
	/* A message of b waits, then one of a: each receive finds its own. */
	send_one(&s.a, tagged, s.to_c_from_a, buf, len);
	weft_test_progress_for(5);
	post_one(&s, tagged, s.a_at_c, buf, &from_a);
	expect_at(&s.c, &from_a, s.a_at_c);
	post_one(&s, tagged, s.a_at_c, buf, &from_a);
	msg_expect_quiet(s.c.rxcq, 5);
	post_one(&s, tagged, s.b_at_c, buf, &from_b);
	expect_at(&s.c, &from_b, s.b_at_c);
	close_three(&s);
	free(buf);
}

int main(void)
{
	weft_test_begin(60);
	test_stranger();
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		test_directed(false, sizes[i]);
		test_directed(true, sizes[i]);
	}
	return 0;
}
