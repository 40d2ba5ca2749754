/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This test checks which operations generate completions: selective completion,
 * and the levels from FI_INJECT_COMPLETE to FI_DELIVERY_COMPLETE. Over TCP also
 * what a peer that has stopped keeps from completing.
 */
#include "msg_util.h"

#include <signal.h>
#include <sys/wait.h>

static const size_t sizes[] = { 0, 8, 1000, 10000, 100000 };

static void post_send(struct weft_test *t, fi_addr_t to, void *buf, size_t len,
		      uint64_t flags, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = to,
		.tag = 1,
		.context = context,
	};

	POST(fi_tsendmsg(t->ep, &msg, flags));
}

static void post_recv(struct weft_test *t, void *buf, size_t len,
		      uint64_t flags, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.tag = 1,
		.context = context,
	};

	POST(fi_trecvmsg(t->ep, &msg, flags));
}

/* -- selective completion -------------------------------------------------- */

/* Drives both ends until the bytes of a message without a completion have
 * arrived: on a busy machine this may take longer than the time for which we
 * check that no completion comes. */
static void wait_for_bytes(const void *to, const void *from, size_t len)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	while (memcmp(to, from, len) && weft_test_ms() < end)
		weft_test_progress();
}

/* Each message without a completion is followed by one that has one. */
static void test_selective(size_t len)
{
	struct weft_test_opts opts = {
		.tx_bind = FI_SELECTIVE_COMPLETION,
		.rx_bind = FI_SELECTIVE_COMPLETION,
	};
	struct fi_context quiet, loud;
	uint8_t *from = msg_alloc(len), *to = msg_alloc(len);
	struct weft_test a, b;
	fi_addr_t peer;

	weft_test_open(&a, &opts);
	weft_test_open(&b, &opts);
	peer = weft_test_know(&a, &b);
	for (uint64_t i = 0; i < 6; i++) {
		weft_test_fill(from, len, i);
		CHECK_OK(weft_test_trecv(&b, to, len, 1, 0, &quiet));
		switch (i % 3) {
		case 0:
			CHECK_OK(weft_test_tsend(&a, from, len, peer, 1,
						 &quiet));
			break;
		case 1:
			post_send(&a, peer, from, len, 0, &quiet);
			break;
		default:
			post_send(&a, peer, from, len, FI_DELIVERY_COMPLETE,
				  &quiet);
		}
		msg_expect_quiet(b.rxcq, 3);
		msg_expect_quiet(a.txcq, 3);
		wait_for_bytes(to, from, len);
		CHECK(weft_test_holds(to, len, i));
		post_recv(&b, to, len, FI_COMPLETION, &loud);
		post_send(&a, peer, from, len, FI_COMPLETION, &loud);
		weft_test_wait_ok(a.txcq, &loud);
		weft_test_wait_ok(b.rxcq, &loud);
	}
	/* Failures are always reported. */
	if (len) {
		CHECK_OK(weft_test_trecv(&b, to, len - 1, 1, 0, &quiet));
		CHECK_OK(weft_test_tsend(&a, from, len, peer, 1, &quiet));
		weft_test_wait_err(b.rxcq, &quiet, FI_ETRUNC);
	}
	weft_test_close(&a);
	weft_test_close(&b);
	free(from);
	free(to);
}

/* The endpoint's default flags ask for completions. */
static void test_selective_default(void)
{
	struct weft_test_opts opts = {
		.tx_bind = FI_SELECTIVE_COMPLETION,
		.rx_bind = FI_SELECTIVE_COMPLETION,
		.tx_flags = FI_COMPLETION,
		.rx_flags = FI_COMPLETION,
	};
	struct fi_context tx, rx;
	struct weft_test a, b;
	uint64_t from = 1, to;
	fi_addr_t peer;

	weft_test_open(&a, &opts);
	weft_test_open(&b, &opts);
	peer = weft_test_know(&a, &b);
	CHECK_OK(weft_test_trecv(&b, &to, 8, 1, 0, &rx));
	CHECK_OK(weft_test_tsend(&a, &from, 8, peer, 1, &tx));
	weft_test_wait_ok(a.txcq, &tx);
	weft_test_wait_ok(b.rxcq, &rx);
	/* Calls with a flags argument override the default. */
	post_recv(&b, &to, 8, 0, &rx);
	post_send(&a, peer, &from, 8, 0, &tx);
	msg_expect_quiet(a.txcq, 5);
	msg_expect_quiet(b.rxcq, 5);
	weft_test_close(&a);
	weft_test_close(&b);
}

/* -- levels, between two processes ----------------------------------------- */

static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
				   FI_DELIVERY_COMPLETE };

/* Bug of libfabric's shm: INJECT|DELIVERY_COMPLETE kept the user's buffer. */
static uint64_t with_inject(struct weft_test *t, size_t len, uint64_t level)
{
	return len <= t->info->tx_attr->inject_size ? level | FI_INJECT : level;
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(levels) * 2; i++) {
		uint64_t level = levels[i % COUNT_OF(levels)];
		size_t len = sizes[i / COUNT_OF(levels) % COUNT_OF(sizes)];
		bool inject = i >= COUNT_OF(sizes) * COUNT_OF(levels);
		uint8_t *buf = msg_alloc(len);
		struct fi_context context;

		if (inject)
			level = with_inject(t, len, level);
		weft_test_fill(buf, len, i);
		post_send(t, peer, buf, len, level | FI_COMPLETION, &context);
		if (level & FI_INJECT)
			memset(buf, 0, len);
		/* Delivered means matched: the receiver has not posted a
		 * receive yet. */
		if (level & FI_DELIVERY_COMPLETE)
			msg_expect_quiet(t->txcq, 10);
		weft_test_sync(line);
		weft_test_wait_ok(t->txcq, &context);
		free(buf);
	}
	/* Now the receives are posted. */
	weft_test_sync(line);
	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(levels); i++) {
		uint64_t level = levels[i % COUNT_OF(levels)];
		size_t len = sizes[i / COUNT_OF(levels)];
		uint8_t *buf = msg_alloc(len);

		weft_test_fill(buf, len, i);
		post_send(t, peer, buf, len, level | FI_COMPLETION, buf);
		weft_test_wait_ok(t->txcq, buf);
		free(buf);
	}
	weft_test_sync(line);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	uint8_t *bufs[COUNT_OF(sizes) * COUNT_OF(levels)];

	(void)peer;
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(levels) * 2; i++) {
		size_t len = sizes[i / COUNT_OF(levels) % COUNT_OF(sizes)];
		uint8_t *buf = msg_alloc(len);
		struct fi_context context;

		weft_test_sync(line);
		CHECK_OK(weft_test_trecv(t, buf, len, 1, 0, &context));
		weft_test_wait_ok(t->rxcq, &context);
		CHECK(weft_test_holds(buf, len, i));
		free(buf);
	}
	for (size_t i = 0; i < COUNT_OF(bufs); i++) {
		bufs[i] = msg_alloc(100000);
		CHECK_OK(weft_test_trecv(t, bufs[i], 100000, 1, 0, bufs[i]));
	}
	weft_test_sync(line);
	for (size_t i = 0; i < COUNT_OF(bufs); i++) {
		weft_test_wait_ok(t->rxcq, bufs[i]);
		CHECK(weft_test_holds(bufs[i], sizes[i / COUNT_OF(levels)], i));
		free(bufs[i]);
	}
	weft_test_sync(line);
}

/* -- a peer that has stopped ------------------------------------------------- */

static const size_t small[] = { 1, 1000, 5000, 16384 };

/* Each side has heard the other, and what was said is acknowledged. */
static void greet(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line)
{
	struct fi_context tx, rx;
	uint64_t from = 1, to;

	CHECK_OK(weft_test_trecv(t, &to, sizeof(to), 1, 0, &rx));
	post_send(t, peer, &from, sizeof(from),
		  FI_COMPLETION | FI_DELIVERY_COMPLETE, &tx);
	weft_test_wait_ok(t->rxcq, &rx);
	weft_test_wait_ok(t->txcq, &tx);
	weft_test_sync(line);
}

static void stops(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(small); i++) {
		uint8_t *buf = msg_alloc(small[i]);
		struct fi_context context;

		greet(t, peer, line);
		CHECK_OK(raise(SIGSTOP));
		for (size_t k = 0; k < 2; k++) {
			CHECK_OK(weft_test_trecv(t, buf, small[i], 1, 0,
						 &context));
			weft_test_wait_ok(t->rxcq, &context);
			CHECK(weft_test_holds(buf, small[i], 2 * i + k));
		}
		weft_test_sync(line);
		free(buf);
	}
}

/* Without a level, and with FI_INJECT_COMPLETE, a send completes when its buffer
 * may be written; with FI_TRANSMIT_COMPLETE not before the peer has the message.
 * The peer stops anew for each size: of eight requests that it has not
 * acknowledged, the last one waits, and packets of greet() may be among them. */
static void sends_to_stopped(struct weft_test *t, fi_addr_t peer,
			     struct weft_test_line *line, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT_OF(small); i++) {
		uint8_t *early = msg_alloc(small[i]);
		uint8_t *waits = msg_alloc(small[i]);
		int status;

		greet(t, peer, line);
		CHECK(waitpid(line->pid, &status, WUNTRACED) == line->pid);
		CHECK(WIFSTOPPED(status));
		weft_test_fill(early, small[i], 2 * i);
		post_send(t, peer, early, small[i],
			  FI_COMPLETION | (i % 2 ? FI_INJECT_COMPLETE : 0),
			  early);
		weft_test_wait_ok(t->txcq, early);
		memset(early, 0, small[i]);
		weft_test_fill(waits, small[i], 2 * i + 1);
		post_send(t, peer, waits, small[i],
			  FI_COMPLETION | FI_TRANSMIT_COMPLETE, waits);
		msg_expect_quiet(t->txcq, 10);
		CHECK_OK(kill(line->pid, SIGCONT));
		weft_test_wait_ok(t->txcq, waits);
		weft_test_sync(line);
		free(early);
		free(waits);
	}
}

int main(void)
{
	const char *nic = getenv("FI_WEFT_NIC");

	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		test_selective(sizes[i]);
	test_selective_default();
	weft_test_pair(NULL, sender, receiver, NULL);
	if (nic && !strcmp(nic, "tcp"))
		weft_test_pair(NULL, stops, sends_to_stopped, NULL);
	return 0;
}
