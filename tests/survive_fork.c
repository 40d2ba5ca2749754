/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application forks. The child may live on, exit, use the endpoint or close
 * it: its calls return errors or do nothing, and the parent's messages are not
 * affected. Peers notice the death of the parent although its child lives.
 */
#include "common/fabric.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LARGE 300000
#define UNTAKEN 5

/* Answers every message with the same bytes, until told to stop. */
static void echo(struct weft_test *t, fi_addr_t peer)
{
	static uint8_t buf[LARGE];
	struct weft_test_comp comp;
	struct fi_context context;

	for (;;) {
		CHECK_OK(weft_test_trecv(t, buf, LARGE, 0, 0xff, &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_OK(weft_test_tsend(t, buf, comp.entry.len, peer,
					 comp.entry.tag, &context));
		weft_test_wait_ok(t->txcq, &context);
		if (!comp.entry.len)
			return;
	}
}

static void ask(struct weft_test *t, fi_addr_t peer, size_t len, uint64_t seed)
{
	static uint8_t out[LARGE], in[LARGE];
	struct fi_context tx, rx;

	seed &= 0xff;
	weft_test_fill(out, len, seed);
	CHECK_OK(weft_test_trecv(t, in, LARGE, seed, 0, &rx));
	CHECK_OK(weft_test_tsend(t, out, len, peer, seed, &tx));
	weft_test_wait_ok(t->txcq, &tx);
	weft_test_wait_ok(t->rxcq, &rx);
	CHECK(weft_test_holds(in, len, seed));
}

static void ask_all(struct weft_test *t, fi_addr_t peer, uint64_t seed)
{
	ask(t, peer, 8, seed);
	ask(t, peer, 3000, seed + 1);
	ask(t, peer, LARGE, seed + 2);
}

/* -- what a child may do --------------------------------------------------- */

static void leave_at_once(struct weft_test *t, fi_addr_t peer)
{
	(void)t;
	(void)peer;
}

/* None of these calls may crash, hang or reach a peer. */
static void touch_everything(struct weft_test *t, fi_addr_t peer)
{
	static uint8_t buf[LARGE];
	struct fi_context context[8];
	struct fi_msg_tagged msg = {
		.msg_iov = &(struct iovec){ buf, sizeof(buf) },
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.ignore = ~0ull,
		.context = &context[0],
	};
	struct weft_test_comp comp;

	CHECK(fi_send(t->ep, buf, 8, NULL, peer, &context[1]) < 0);
	CHECK(fi_tsend(t->ep, buf, LARGE, NULL, peer, 1, &context[2]) < 0);
	CHECK(fi_inject(t->ep, buf, 8, peer) < 0);
	/* Unexpected messages wait in the parent: the child must not get
	 * them. */
	fi_tsendmsg(t->ep, &msg, FI_COMPLETION);
	fi_trecvmsg(t->ep, &msg, FI_PEEK | FI_DISCARD);
	fi_trecvmsg(t->ep, &msg, FI_PEEK);
	for (int i = 3; i < 8; i++)
		fi_trecv(t->ep, buf, LARGE, NULL, FI_ADDR_UNSPEC, 0, ~0ull,
			 &context[i]);
	fi_recv(t->ep, buf, 8, NULL, FI_ADDR_UNSPEC, &context[0]);
	for (int i = 0; i < 1000; i++) {
		while (weft_test_poll(t->txcq, &comp))
			;
		while (weft_test_poll(t->rxcq, &comp))
			;
	}
	fi_cancel(&t->ep->fid, &context[0]);
	weft_test_insert(t, t->name);
	fi_av_remove(t->av, &peer, 1, 0);
}

static void close_everything(struct weft_test *t, fi_addr_t peer)
{
	(void)peer;
	weft_test_close(t);
}

static void touch_and_close(struct weft_test *t, fi_addr_t peer)
{
	touch_everything(t, peer);
	weft_test_close(t);
}

/* A child may open an endpoint of its own, and even send to its parent's
 * peer. */
static void begin_anew(struct weft_test *t, fi_addr_t peer)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	size_t len = sizeof(name);
	struct weft_test own;
	fi_addr_t self;

	CHECK_OK(fi_av_lookup(t->av, peer, name, &len));
	weft_test_close(t);
	weft_test_open(&own, NULL);
	self = weft_test_know(&own, &own);
	weft_test_insert(&own, name);
	weft_test_exchange(&own, self, &own, 100, 1);
	weft_test_exchange(&own, self, &own, LARGE, 2);
	weft_test_close(&own);
}

static void (*const acts[])(struct weft_test *t, fi_addr_t peer) = {
	leave_at_once,	 touch_everything, close_everything,
	touch_and_close, begin_anew,
};

static pid_t fork_plainly(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK_SYS(pid);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
	}
	return pid;
}

static void check_exit(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		FAIL("child: %s %d", WIFEXITED(status) ? "exit" : "signal",
		     WIFEXITED(status) ? WEXITSTATUS(status) :
					 WTERMSIG(status));
}

/* Messages that wait without a receive during the fork: small, in records, to
 * be confirmed, and parked with the sender. */
static void leave_untaken(struct weft_test *t, fi_addr_t peer,
			  struct fi_context *context)
{
	static uint8_t buf[LARGE];

	CHECK_OK(weft_test_tsend(t, buf, 8, peer, 0x100, &context[0]));
	CHECK_OK(weft_test_tsend(t, buf, 9000, peer, 0x101, &context[1]));
	CHECK_OK(weft_test_tdeliver(t, buf, 8, peer, 0x102, &context[2]));
	CHECK_OK(weft_test_tdeliver(t, buf, 9000, peer, 0x103, &context[3]));
	CHECK_OK(weft_test_tsend(t, buf, LARGE, peer, 0x104, &context[4]));
}

static void take_untaken(struct weft_test *t)
{
	static uint8_t buf[LARGE];
	struct fi_context context;

	for (uint64_t tag = 0x100; tag < 0x100 + UNTAKEN; tag++) {
		CHECK_OK(weft_test_trecv(t, buf, LARGE, tag, 0, &context));
		weft_test_wait_ok(t->rxcq, &context);
	}
}

static void peer_side(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct fi_context context[UNTAKEN];

	(void)arg;
	leave_untaken(t, peer, context);
	weft_test_sync(line);
	for (int i = 0; i < UNTAKEN; i++)
		weft_test_wait_ok(t->txcq, NULL);
	weft_test_sync(line);
	echo(t, peer);
}

static void forking_side(struct weft_test *t, fi_addr_t peer,
			 struct weft_test_line *line, void *arg)
{
	pid_t sleeper;

	(void)arg;
	weft_test_sync(line);
	weft_test_progress_for(20);
	sleeper = fork_plainly();
	if (!sleeper) {
		for (;;)
			pause();
	}
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		pid_t pid = fork_plainly();

		if (!pid) {
			acts[i](t, peer);
			_exit(0);
		}
		check_exit(pid);
	}
	take_untaken(t);
	weft_test_sync(line);
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		struct fi_context tx, rx;
		static uint8_t out[LARGE], in[LARGE];
		pid_t pid;

		ask_all(t, peer, i * 16);
		/* Now with a message in flight. */
		CHECK_OK(weft_test_trecv(t, in, LARGE, 200, 0, &rx));
		CHECK_OK(weft_test_tsend(t, out, LARGE, peer, 200, &tx));
		pid = fork_plainly();
		if (!pid) {
			acts[i](t, peer);
			_exit(0);
		}
		weft_test_wait_ok(t->txcq, &tx);
		weft_test_wait_ok(t->rxcq, &rx);
		check_exit(pid);
	}
	ask_all(t, peer, 100);
	ask(t, peer, 0, 0); /* the echo process ends */
	CHECK_SYS(kill(sleeper, SIGKILL));
	waitpid(sleeper, NULL, 0);
}

/* -- the parent dies, its child lives -------------------------------------- */

static void parent_of_survivor(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	fi_addr_t peer;
	pid_t child;

	(void)arg;
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	ask_all(&t, peer, 0);
	child = fork();
	CHECK_SYS(child);
	if (!child) {
		/* Outlives its parent, but not a failed test. */
		signal(SIGALRM, SIG_DFL);
		alarm(100);
		for (;;)
			pause();
	}
	weft_test_put(line, &child, sizeof(child));
	for (;;)
		weft_test_progress();
}

static void echo_three(struct weft_test *t, fi_addr_t peer)
{
	static uint8_t buf[LARGE];
	struct weft_test_comp comp;
	struct fi_context context;

	for (int i = 0; i < 3; i++) {
		CHECK_OK(weft_test_trecv(t, buf, LARGE, 0, 0xff, &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_OK(weft_test_tsend(t, buf, comp.entry.len, peer,
					 comp.entry.tag, &context));
		weft_test_wait_ok(t->txcq, &context);
	}
}

static void death_is_seen(void)
{
	struct weft_test_traces before, now;
	struct weft_test_line line;
	struct weft_test_comp comp;
	struct fi_context context;
	struct weft_test t;
	uint64_t value = 0, end;
	pid_t grandchild;
	fi_addr_t peer;

	CHECK_SYS(prctl(PR_SET_CHILD_SUBREAPER, 1));
	weft_test_fork(&line, parent_of_survivor, NULL);
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, &line);
	weft_test_look(&before);
	echo_three(&t, peer);
	/* Descriptors that the first packet opens stay open until the endpoint
	 * is closed. */
	if (weft_test_by_packets())
		weft_test_look(&before);
	before.descriptors--; /* our end of the line is closed with the peer */
	CHECK(weft_test_get_driving(&line, &grandchild, sizeof(grandchild)));
	CHECK_OK(weft_test_tdeliver(&t, &value, sizeof(value), peer, 1,
				    &context));
	weft_test_kill(&line);
	weft_test_wait(t.txcq, &comp);
	CHECK_EQ(comp.ret, -FI_ECONNRESET);
	/* Both directions are given up, not only the one that was in use. */
	end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	do {
		weft_test_progress();
		weft_test_look(&now);
		CHECK(weft_test_ms() < end);
	} while (now.rings || now.descriptors > before.descriptors);
	CHECK_SYS(kill(grandchild, 0)); /* it is still alive */
	CHECK_SYS(kill(grandchild, SIGKILL));
	CHECK_EQ(waitpid(grandchild, NULL, 0), grandchild);
	weft_test_close(&t);
}

int main(void)
{
	setenv("FI_WEFT_CONNECT_TIMEOUT", "300", 1);
	weft_test_begin(100);
	weft_test_pair(NULL, peer_side, forking_side, NULL);
	death_is_seen();
	return 0;
}
