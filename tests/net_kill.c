/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer on another host is killed, or its host disappears, while operations of
 * every kind are in flight: messages of all protocols, writes, reads and
 * atomics to it, and a large message from it. Every operation completes once,
 * with an error if it cannot have been done; so does the receive that was being
 * filled. Receives from any source stay posted, other peers are served, and
 * closing does not hang. The log names each peer that is lost in one line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/net.h"
#include "rma_util.h"

#define EACH 24
#define KINDS 6
#define NAMED 4 /* lost peers, in the log */
#define LARGE ((size_t)1 << 20)
#define HUGE_LEN ((size_t)64 << 20)

static uint8_t *out, *in, *from_it;
static struct fi_context contexts[KINDS][EACH];
static bool done[KINDS][EACH];

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS | FI_ATOMIC,
};

/* -- who is killed ---------------------------------------------------------- */

static void victim(struct weft_test_line *line, void *arg)
{
	uint8_t *region = msg_alloc(LARGE), *huge = msg_alloc(HUGE_LEN);
	struct fi_context context;
	struct weft_test t;
	struct fid_mr *mr;
	fi_addr_t peer;

	(void)arg;
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	rma_offer(&t, line, region, LARGE, &mr);
	/* It is connected, and known to be. */
	CHECK_OK(weft_test_tsend(&t, huge, 1, peer, 2, &context));
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(line);
	CHECK_OK(weft_test_tsend(&t, huge, HUGE_LEN, peer, 1, &context));
	for (;;)
		weft_test_progress();
}

/* -- who stays -------------------------------------------------------------- */

static void post(struct weft_test *t, fi_addr_t peer,
		 const struct rma_target *target, int kind, int i)
{
	struct fi_context *context = &contexts[kind][i];

	switch (kind) {
	case 0: /* nobody receives them: these cannot complete with success */
		CHECK_OK(weft_test_tdeliver(t, out, 100, peer, 7, context));
		break;
	case 1:
		CHECK_OK(weft_test_tsend(t, out, LARGE, peer, 8, context));
		break;
	case 2: /* these may succeed */
		CHECK_OK(weft_test_send(t, out, 20000, peer, context));
		break;
	case 3:
		POST(fi_write(t->ep, out, LARGE, NULL, peer, target->base,
			      target->key, context));
		break;
	case 4:
		POST(fi_read(t->ep, in, LARGE, NULL, peer, target->base,
			     target->key, context));
		break;
	default:
		POST(fi_fetch_atomic(t->ep, out, 1, NULL, in, NULL, peer,
				     target->base, target->key, FI_UINT64,
				     FI_SUM, context));
	}
}

static int take_all(struct weft_test *t)
{
	int failed = 0;

	for (int i = 0; i < KINDS * EACH; i++) {
		struct weft_test_comp comp;
		ptrdiff_t which;
		int kind;

		weft_test_wait(t->txcq, &comp);
		which = (struct fi_context *)comp.entry.op_context -
			&contexts[0][0];
		CHECK(which >= 0 && which < KINDS * EACH);
		kind = (int)(which / EACH);
		CHECK(!done[kind][which % EACH]);
		done[kind][which % EACH] = true;
		failed += comp.ret < 0;
		if (kind < 2)
			CHECK(comp.ret < 0);
	}
	msg_expect_quiet(t->txcq, 20);
	return failed;
}

static void end_host(struct weft_test_line *line, bool host)
{
	if (host)
		net_ip(1, "link set link0 down");
	else
		weft_test_kill(line);
}

/* The receive completes, or fails after its message has begun; otherwise it is
 * still posted, and can be taken back. Whether it is cannot be seen from outside:
 * a message has begun before its first byte is here. */
static const char *end_receive(struct weft_test *t, struct fi_context *huge)
{
	struct weft_test_comp comp;
	ssize_t ret = -FI_ENOENT;

	if (!from_it[0])
		ret = fi_cancel(&t->ep->fid, huge);
	CHECK(!ret || ret == -FI_ENOENT);
	weft_test_wait(t->rxcq, &comp);
	CHECK(comp.entry.op_context == huge);
	CHECK_EQ(comp.ret == -FI_ECANCELED, !ret);
	return comp.ret == 1 ? "came" : !ret ? "did not begin" : "failed";
}

/* @witness is another peer, which stays alive. */
static void lose_one(struct weft_test *t, fi_addr_t witness,
		     struct weft_test_line *to_witness, unsigned int ms,
		     bool host)
{
	struct fi_context huge, stays, ping;
	uint64_t number = ms, word = 0;
	struct weft_test_line line;
	struct weft_test_comp comp;
	struct rma_target target;
	fi_addr_t peer;

	memset(done, 0, sizeof(done));
	from_it[0] = 0;
	weft_test_fork(&line, victim, NULL);
	peer = weft_test_meet(t, &line);
	target = rma_learn(&line);
	CHECK_OK(weft_test_trecv(t, from_it, HUGE_LEN, 1, 0, &huge));
	CHECK_OK(weft_test_recv(t, &word, sizeof(word), &stays));
	CHECK_OK(weft_test_trecv(t, in, 1, 2, 0, &ping));
	weft_test_wait_ok(t->rxcq, &ping);
	weft_test_sync(&line);
	for (int i = 0; i < EACH; i++)
		for (int kind = 0; kind < KINDS; kind++)
			post(t, peer, &target, kind, i);
	weft_test_progress_for(ms);
	end_host(&line, host);
	printf("%u ms: %d of %d failed", ms, take_all(t), KINDS * EACH);
	printf(", its message %s\n", end_receive(t, &huge));
	if (host) {
		net_ip(1, "link set link0 up");
		weft_test_kill(&line);
	}
	CHECK_OK(fi_av_remove(t->av, &peer, 1, 0));
	/* The other peer is served, by the receive that stayed posted. */
	CHECK_OK(weft_test_send(t, &number, sizeof(number), witness, &ping));
	weft_test_wait_ok(t->txcq, &ping);
	weft_test_put(to_witness, "p", 1);
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK(comp.entry.op_context == &stays);
	CHECK_EQ(word, number + 1);
}

/* If the other host is lost, the witness is on this one: it would be given up, too,
 * by one side sooner than by the other. */
static void witness_main(struct weft_test_line *line, void *arg)
{
	const bool host = *(bool *)arg;
	struct weft_test t;
	fi_addr_t peer;
	char mark;

	if (host)
		net_enter(0);
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	while (weft_test_get_driving(line, &mark, 1) && mark == 'p') {
		struct fi_context context;
		uint64_t word;

		CHECK_OK(weft_test_recv(&t, &word, sizeof(word), &context));
		weft_test_wait_ok(t.rxcq, &context);
		word++;
		CHECK_OK(weft_test_send(&t, &word, sizeof(word), peer,
					&context));
		weft_test_wait_ok(t.txcq, &context);
	}
	weft_test_close(&t);
}

/* Our lines: those of a peer whose link is down say that it has lost us. Each lost
 * peer has one, if there are no more than four. The witness has none. */
static void check_log(const char *log, size_t peers)
{
	FILE *from = fopen(log, "r");
	size_t named = 0, more = 0;
	char line[1024];

	CHECK(from);
	while (fgets(line, sizeof(line), from)) {
		if (strstr(line, "peer 10.99.0.2:") &&
		    strstr(line, " is lost: "))
			named++;
		else if (strstr(line, "more peers are lost"))
			more++;
		fputs(line, stderr);
	}
	fclose(from);
	CHECK_EQ(named, peers < NAMED ? peers : NAMED);
	CHECK_EQ(more, peers > NAMED);
}

static void run(struct weft_test_line *unused, void *arg)
{
	static const unsigned int delays[] = { 0, 3, 20, 90, 1 };
	char log[] = "/tmp/net_kill.XXXXXX";
	int fd = mkstemp(log), error = dup(2);
	const bool host = *(bool *)arg;
	struct weft_test_line to_witness;
	struct weft_test_traces before;
	struct weft_test t;
	fi_addr_t witness;

	(void)unused;
	CHECK(fd >= 0 && error >= 0);
	net_begin(1500);
	out = msg_alloc(LARGE);
	in = msg_alloc(LARGE);
	from_it = msg_alloc(HUGE_LEN);
	weft_test_load();
	weft_test_look(&before);
	weft_test_fork(&to_witness, witness_main, arg);
	weft_test_open(&t, &opts);
	witness = weft_test_meet(&t, &to_witness);
	CHECK_SYS(dup2(fd, 2));
	for (size_t i = 0; i < (host ? 1 : COUNT_OF(delays)); i++)
		lose_one(&t, witness, &to_witness, delays[i], host);
	CHECK_SYS(dup2(error, 2));
	check_log(log, host ? 1 : COUNT_OF(delays));
	unlink(log);
	weft_test_put(&to_witness, "e", 1);
	weft_test_close(&t);
	weft_test_join(&to_witness);
	weft_test_check_clean(&before);
	close(error);
	close(fd);
	free(out);
	free(in);
	free(from_it);
}

int main(void)
{
	bool host = false;

	weft_test_begin(250);
	net_require();
	/* By packets: hosts that both have /run/weft share memory, and then it is
	 * not packets that lose the peer. */
	CHECK_SYS(setenv("FI_WEFT_SHM", "0", 1));
	CHECK_SYS(setenv("FI_LOG_LEVEL", "warn", 1));
	CHECK_SYS(setenv("FI_LOG_PROV", "weft", 1));
	/* A closed socket is noticed at once, without a time-out. */
	setenv("FI_WEFT_DEAD_TIMEOUT", "900", 1);
	msg_run_apart(run, &host);
	host = true;
	setenv("FI_WEFT_DEAD_TIMEOUT", "2", 1);
	msg_run_apart(run, &host);
	return 0;
}
