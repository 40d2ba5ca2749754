/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets that come and go: RMA to an address where nobody is yet, a target
 * that is killed while it is read and written, and one that restarts at the
 * same address. Every operation ends with success or with an error, closing
 * never hangs, and the restarted peer is reached under the same fi_addr.
 */
#include "rma_util.h"

#include <time.h>

#define KEY 0x1234
#define LEN 300000
#define LIVES 20
#define WINDOW 8

struct life {
	uint16_t port;
	unsigned int late_ms;
};

static void nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* The memory is registered before anyone can connect. The application chooses
 * the keys, so it need not send them. */
static void offer(struct weft_test *t, void *arg)
{
	static struct fid_mr *mr; /* freed when the process ends */
	uint8_t *region = arg;

	weft_test_fill(region, LEN, 1);
	CHECK_OK(fi_mr_reg(t->domain, region, LEN, RMA_ACCESS, 0, KEY, 0, &mr,
			   NULL));
}

/* One run of a target; it ends when it is killed. */
static void live(struct weft_test_line *line, void *arg)
{
	const struct life *life = arg;
	char service[8];
	struct weft_test_opts opts = {
		.caps = RMA_CAPS,
		.service = service,
		.prepare = offer,
		.prepare_arg = msg_alloc(LEN),
	};
	struct weft_test t;

	snprintf(service, sizeof(service), "%u", life->port);
	nap(life->late_ms);
	weft_test_open(&t, &opts);
	weft_test_put(line, "u", 1);
	for (;;)
		weft_test_progress();
}

static uint16_t free_port(void)
{
	struct weft_test t;
	uint16_t port;

	weft_test_open(&t, NULL);
	port = weft_test_port(&t);
	weft_test_close(&t);
	return port;
}

/* -- not up yet ------------------------------------------------------------ */

static void test_early(struct weft_test *t, struct life *life, bool reads)
{
	uint8_t name[WEFT_TEST_NAME_MAX], *buf = msg_alloc(LEN);
	struct weft_test_line line;
	struct fi_context contexts[3];
	fi_addr_t peer;

	life->port = free_port();
	life->late_ms = 150;
	weft_test_name_of_port(name, life->port);
	peer = weft_test_insert(t, name);
	weft_test_fork(&line, live, life);
	weft_test_fill(buf, LEN, 2);
	for (int i = 0; i < 3; i++) {
		size_t len = i == 1 ? 8 : LEN;

		if (reads)
			POST(fi_read(t->ep, buf, len, NULL, peer, 0, KEY,
				     &contexts[i]));
		else
			POST(fi_write(t->ep, buf, len, NULL, peer, 0, KEY,
				      &contexts[i]));
	}
	for (int i = 0; i < 3; i++)
		weft_test_wait_ok(t->txcq, NULL);
	if (reads)
		CHECK(weft_test_holds(buf, LEN, 1));
	weft_test_kill(&line);
	free(buf);
}

/* Nobody ever comes: errors, also for injected operations. */
static void test_nobody(struct weft_test *t)
{
	uint8_t name[WEFT_TEST_NAME_MAX], buf[100] = { 0 };
	struct fi_context context;
	fi_addr_t peer;
	ssize_t ret;

	weft_test_name_of_port(name, free_port());
	peer = weft_test_insert(t, name);
	POST(fi_write(t->ep, buf, 100, NULL, peer, 0, KEY, &context));
	rma_wait_refused(t, &context);
	POST(fi_read(t->ep, buf, 100, NULL, peer, 0, KEY, &context));
	rma_wait_refused(t, &context);
	/* The error comes at once, or by a completion. */
	while ((ret = fi_inject_write(t->ep, buf, 100, peer, 0, KEY)) ==
	       -FI_EAGAIN)
		weft_test_progress();
	if (!ret)
		rma_wait_refused(t, NULL);
}

/* -- killed ---------------------------------------------------------------- */

/* Reads and writes as fast as possible; the target dies meanwhile. */
struct traffic {
	struct weft_test *t;
	fi_addr_t peer;
	uint8_t *buf[WINDOW];
	struct fi_context contexts[WINDOW];
	bool busy[WINDOW];
	int good;
	int bad;
};

static void traffic_turn(struct traffic *tr, bool post)
{
	static const size_t sizes[] = { 8, 3000, LEN, 70000 };
	struct weft_test *t = tr->t;
	struct weft_test_comp comp;

	for (int i = 0; post && i < WINDOW; i++) {
		size_t len = sizes[i % 4];
		ssize_t ret;

		if (tr->busy[i])
			continue;
		ret = i % 3 ? fi_read(t->ep, tr->buf[i], len, NULL, tr->peer, 0,
				      KEY, &tr->contexts[i]) :
			      fi_write(t->ep, tr->buf[i], len, NULL, tr->peer,
				       0, KEY, &tr->contexts[i]);
		if (ret != -FI_EAGAIN)
			CHECK_OK(ret);
		tr->busy[i] = !ret;
	}
	if (!weft_test_poll(t->txcq, &comp))
		return;
	for (int i = 0; i < WINDOW; i++)
		if (comp.entry.op_context == &tr->contexts[i]) {
			CHECK(tr->busy[i]);
			tr->busy[i] = false;
		}
	tr->good += comp.ret == 1;
	tr->bad += comp.ret < 0;
}

static bool traffic_busy(const struct traffic *tr)
{
	for (int i = 0; i < WINDOW; i++)
		if (tr->busy[i])
			return true;
	return false;
}

static void one_life(struct traffic *tr, struct life *life, uint64_t *random,
		     bool drain)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_line line;
	unsigned int turns;
	int good;
	char mark;

	weft_test_fork(&line, live, life);
	CHECK(weft_test_get_driving(&line, &mark, 1));
	/* Until this run of the peer answers; earlier operations may still
	 * fail. */
	for (good = tr->good; tr->good == good;) {
		CHECK(weft_test_ms() < end);
		traffic_turn(tr, true);
	}
	for (turns = weft_test_random(random) % 3000; turns; turns--)
		traffic_turn(tr, true);
	weft_test_kill(&line);
	for (turns = weft_test_random(random) % 20; turns; turns--)
		traffic_turn(tr, true);
	while (drain && traffic_busy(tr)) {
		CHECK(weft_test_ms() < end);
		traffic_turn(tr, false);
	}
}

static void test_lives(void)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS };
	struct life life = { .port = free_port() };
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_traces before;
	struct traffic tr = { 0 };
	uint64_t random = 5;
	struct weft_test t;

	for (int i = 0; i < WINDOW; i++)
		tr.buf[i] = msg_alloc(LEN);
	weft_test_look(&before);
	weft_test_open(&t, &opts);
	weft_test_name_of_port(name, life.port);
	tr.t = &t;
	tr.peer = weft_test_insert(&t, name);
	for (int i = 0; i < LIVES; i++)
		one_life(&tr, &life, &random, i % 2);
	/* Operations to the previous, dead peer are still in flight. */
	weft_test_close(&t);
	weft_test_check_clean(&before);
	for (int i = 0; i < WINDOW; i++)
		free(tr.buf[i]);
	printf("%d operations succeeded, %d failed\n", tr.good, tr.bad);
	CHECK(tr.good);
}

static void run(struct weft_test_line *line, void *arg)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS };
	struct life life = { 0 };
	struct weft_test t;

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_open(&t, &opts);
	test_early(&t, &life, true);
	test_early(&t, &life, false);
	weft_test_close(&t);
}

static void run_short(struct weft_test_line *line, void *arg)
{
	const struct weft_test_opts opts = { .caps = RMA_CAPS };
	struct weft_test t;

	(void)line;
	(void)arg;
	setenv("FI_WEFT_CONNECT_TIMEOUT", "50", 1);
	weft_test_open(&t, &opts);
	test_nobody(&t);
	weft_test_close(&t);
	test_lives();
}

int main(void)
{
	weft_test_begin(100);
	for (int cma = 1; cma >= 0; cma--) {
		setenv("FI_WEFT_CMA", cma ? "1" : "0", 1);
		msg_run_apart(run, NULL);
		msg_run_apart(run_short, NULL);
	}
	return 0;
}
