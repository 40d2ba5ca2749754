/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core with two transports that do what the test says and write down what
 * they were asked: routes, progress, sleep, names, the end.
 */
#include "core/core.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

#define NAMES 200

struct fake {
	const char *letter; /* of this one, in the trace */
	int reaches;
	bool has_peers;
	bool dozes;
	bool has_work;
	uint64_t deadline; /* of the doze */
	uint64_t look_in;
	enum wf_polled found;
	int drains; /* calls until nothing is left */
	int polls, ticks, looks, submits, closed, wakes;
	uint64_t dst;
	struct wf_host *host;
	struct world *w;
};

struct world {
	struct wf_core core;
	struct fake first, second;
	_Atomic uint64_t changes;
	bool known[NAMES];
	char trace[64];
	bool quiet; /* nothing is traced */
};

static void say(struct fake *f, char what)
{
	size_t at = strlen(f->w->trace);

	if (f->w->quiet)
		return;
	assert_true(at + 3 < sizeof(f->w->trace));
	f->w->trace[at] = what;
	f->w->trace[at + 1] = f->letter[0];
}

static void expect(struct world *w, const char *trace)
{
	assert_string_equal(w->trace, trace);
	memset(w->trace, 0, sizeof(w->trace));
}

static void fake_close(void *self)
{
	((struct fake *)self)->closed++;
	say(self, 'c');
}

static void fake_forked(void *self)
{
	say(self, 'f');
}

static int fake_reaches(const void *self, const struct wf_addr *addr)
{
	(void)addr;
	return ((const struct fake *)self)->reaches;
}

static int fake_submit(void *self, uint64_t dst, const struct wf_tx *tx)
{
	struct fake *f = self;

	(void)tx;
	f->submits++;
	f->dst = dst;
	return 0;
}

static bool fake_has_peers(const void *self)
{
	return ((const struct fake *)self)->has_peers;
}

static enum wf_polled fake_poll(void *self)
{
	struct fake *f = self;

	f->polls++;
	return f->found;
}

static void fake_tick(void *self, uint64_t now)
{
	struct fake *f = self;

	assert_int_equal(now, f->host->now);
	f->ticks++;
}

static uint64_t fake_look(void *self, uint64_t now)
{
	struct fake *f = self;

	(void)now;
	f->looks++;
	return f->look_in;
}

static bool fake_drain(void *self)
{
	struct fake *f = self;

	say(f, 'd');
	return --f->drains > 0;
}

static bool fake_doze(void *self, uint64_t *deadline)
{
	struct fake *f = self;

	say(f, f->dozes ? 'z' : 'n');
	if (f->deadline < *deadline)
		*deadline = f->deadline;
	return f->dozes;
}

static bool fake_has_work(void *self, uint64_t *deadline)
{
	(void)deadline;
	say(self, 's');
	return ((struct fake *)self)->has_work;
}

static void fake_wake(void *self)
{
	((struct fake *)self)->wakes++;
	say(self, 'w');
}

static void fake_inserted(void *self, uint64_t name, const struct wf_addr *addr,
			  bool taken)
{
	(void)name;
	(void)addr;
	(void)taken;
	say(self, '+');
}

static void fake_removed(void *self, uint64_t name)
{
	(void)name;
	say(self, '-');
}

static void fake_renamed(void *self)
{
	say(self, 'r');
}

#define LINGER (300 * WF_NS_PER_MS)
#define PATIENCE (60 * WF_NS_PER_S) /* a busy machine may not run us */

static struct wf_transport fake_transport = {
	.name = "fake",
	.linger_ns = PATIENCE,
	.close = fake_close,
	.forked = fake_forked,
	.reaches = fake_reaches,
	.submit = fake_submit,
	.has_peers = fake_has_peers,
	.poll = fake_poll,
	.tick = fake_tick,
	.look = fake_look,
	.drain = fake_drain,
	.doze = fake_doze,
	.has_work = fake_has_work,
	.wake = fake_wake,
	.inserted = fake_inserted,
	.removed = fake_removed,
	.renamed = fake_renamed,
};

static int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct world *w = arg;

	memset(addr, 0, sizeof(*addr));
	return name < NAMES && w->known[name] ? 0 : -ENOENT;
}

static int open_world(void **state)
{
	struct world *w = test_calloc(1, sizeof(*w));
	const struct wf_host host = {
		.names = { .get = get_name, .arg = w },
	};

	wf_core_init(&w->core, false);
	assert_int_equal(wf_core_open(&w->core, &host), 0);
	w->first = (struct fake){
		.letter = "1",
		.dozes = true,
		.deadline = UINT64_MAX,
		.look_in = UINT64_MAX,
		.host = &w->core.host,
		.w = w,
	};
	w->second = w->first;
	w->second.letter = "2";
	w->second.reaches = true;
	memset(w->known, true, sizeof(w->known));
	wf_core_add(&w->core, &fake_transport, &w->first)->on = true;
	wf_core_add(&w->core, &fake_transport, &w->second)->on = true;
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	memset(w->trace, 0, sizeof(w->trace));
	wf_core_close(&w->core);
	assert_int_equal(w->first.closed, 1);
	assert_int_equal(w->second.closed, 1);
	test_free(w);
	return 0;
}

/* -- routes ----------------------------------------------------------------- */

static void test_route(void **state)
{
	struct world *w = *state;
	const struct wf_tx tx = { 0 };
	struct wf_addr addr = { 0 };

	/* The first does not reach it. */
	assert_int_equal(wf_core_submit(&w->core, 150, &tx), 0);
	assert_int_equal(w->second.submits, 1);
	assert_int_equal(w->second.dst, 150);
	/* It would now, but is not asked again ... */
	w->first.reaches = true;
	assert_int_equal(wf_core_submit(&w->core, 150, &tx), 0);
	assert_int_equal(w->second.submits, 2);
	/* ... before the name means something else. */
	wf_core_inserted(&w->core, 150, &addr);
	expect(w, "+1+2");
	assert_int_equal(wf_core_submit(&w->core, 150, &tx), 0);
	assert_int_equal(w->first.submits, 1);
	wf_core_removed(&w->core, 150);
	expect(w, "-1-2");
	w->known[150] = false;
	assert_int_equal(wf_core_submit(&w->core, 150, &tx), -ENOENT);
	/* Bug: a descriptor that was short for a moment made a peer of this node
	 * one that is reached by packets, for good. */
	w->first.reaches = -EMFILE;
	assert_int_equal(wf_core_submit(&w->core, 3, &tx), -EAGAIN);
	/* Nobody reaches it; a name that none can have. */
	w->first.reaches = false;
	w->second.reaches = false;
	assert_int_equal(wf_core_submit(&w->core, 3, &tx), -EHOSTUNREACH);
	assert_int_equal(wf_core_submit(&w->core, UINT64_MAX, &tx), -ENOENT);
	assert_int_equal(w->first.submits + w->second.submits, 3);
}

/* Others change the names: routes are asked for again, transports look. */
static void test_names_change(void **state)
{
	struct world *w = *state;
	const struct wf_tx tx = { 0 };

	w->core.host.names.changes = &w->changes;
	assert_int_equal(wf_core_submit(&w->core, 1, &tx), 0);
	expect(w, "");
	w->first.reaches = true;
	atomic_fetch_add(&w->changes, 1);
	assert_int_equal(wf_core_submit(&w->core, 1, &tx), 0);
	expect(w, "r1r2");
	assert_int_equal(w->first.submits, 1);
	atomic_fetch_add(&w->changes, 1);
	wf_core_progress(&w->core);
	expect(w, "r1r2");
	wf_core_progress(&w->core);
	expect(w, "");
}

/* -- progress --------------------------------------------------------------- */

static void progress(struct world *w, int times)
{
	while (times-- > 0)
		wf_core_progress(&w->core);
}

static void test_progress(void **state)
{
	struct world *w = *state;

	w->core.ways[1].on = false;
	progress(w, 3 * WF_HOST_POLLS_PER_CLOCK);
	assert_int_equal(w->first.polls, 3 * WF_HOST_POLLS_PER_CLOCK);
	assert_true(w->first.ticks >= 3);
	assert_int_equal(w->second.polls, 0);
	assert_int_equal(w->second.ticks + w->second.looks, 0);
	/* A short way past the other one would never poll it. */
	w->core.ways[1].on = true;
	w->core.host.only = (void *)w;
	progress(w, 1);
	assert_null(w->core.host.only);
	assert_int_equal(w->second.polls, 1);
}

/* The descriptors are looked at when it is time, or at once when asked to. */
static void test_look(void **state)
{
	struct world *w = *state;
	int before;

	w->first.look_in = 3600 * WF_NS_PER_S; /* has no say: it is later */
	wf_core_look(&w->core, 1000);
	assert_int_equal(w->core.host.look_at, 1000 + 500 * WF_NS_PER_US);
	w->second.look_in = 7;
	wf_core_look(&w->core, 1000);
	assert_int_equal(w->core.host.look_at, 1007);
	w->core.host.look_at = UINT64_MAX;
	before = w->first.looks;
	progress(w, 2 * WF_HOST_POLLS_PER_CLOCK);
	assert_int_equal(w->first.looks, before);
	wf_transport_host_look(&w->core.host);
	progress(w, WF_HOST_POLLS_PER_CLOCK);
	assert_true(w->first.looks > before);
}

/* Bug: the clock and the descriptors were looked at once in 32 polls, by a
 * program that polls every 20 ms as well: its first message took a second. */
static void test_polls_rarely(void **state)
{
	struct world *w = *state;
	struct wf_host *host = &w->core.host;

	/* So it begins. */
	host->now -= WF_NS_PER_S;
	progress(w, 1);
	assert_int_equal(w->first.looks, 1);
	/* Polls without a pause: a look at the clock in 32 polls. */
	for (int i = 0; host->polls_per_clock < WF_HOST_POLLS_PER_CLOCK; i++) {
		assert_true(i < 100000000);
		progress(w, 1);
	}
	/* They become rare: that takes 32 of them, once. */
	for (int i = 0; i < WF_HOST_POLLS_PER_CLOCK; i++) {
		host->now -= WF_NS_PER_S;
		progress(w, 1);
	}
	for (int i = 0; i < 10; i++) {
		int looks = w->first.looks;

		host->now -= WF_NS_PER_S;
		host->look_at = host->now;
		progress(w, 1);
		assert_int_equal(w->first.looks, looks + 1);
	}
}

/* Nothing comes by one whose polls are system calls, and the other one has
 * peers: it is polled less often, until something comes or is sent. */
static void test_idle(void **state)
{
	struct world *w = *state;
	const struct wf_tx tx = { 0 };

	w->second.found = WF_POLLED_NOTHING;
	progress(w, 5000);
	assert_int_equal(w->second.polls, 5000); /* nobody else has peers */
	w->first.has_peers = true;
	w->second.polls = 0;
	progress(w, 3200);
	assert_in_range(w->second.polls, 90, 400);
	assert_int_equal(w->first.polls, 8200);
	assert_int_equal(wf_core_submit(&w->core, 1, &tx), 0);
	w->second.found = WF_POLLED_WAITING;
	w->second.polls = 0;
	progress(w, 3200);
	assert_int_equal(w->second.polls, 3200);
}

/* -- sleep ------------------------------------------------------------------ */

static bool wakes(const struct world *w, int ms)
{
	struct pollfd p = { w->core.host.loop.epoll_fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

/* A bug: endpoints with a lock never gave up the processor that their peer was
 * waiting for. Whoever drops the lock is told to; without a lock, it was done. */
static void test_rest(void **state)
{
	struct world *w = *state;
	uint32_t row = 0, other = 0;

	w->first.found = WF_POLLED_NOTHING;
	w->second.found = WF_POLLED_NOTHING;
	progress(w, 5000);
	assert_false(wf_core_take_rest(&w->core, &row));
	w->core.lock->real = true;
	progress(w, 5000);
	assert_true(wf_core_take_rest(&w->core, &row));
	assert_false(wf_core_take_rest(&w->core, &row));
	/* It does not rest twice in a row. */
	progress(w, 1);
	assert_false(wf_core_take_rest(&w->core, &row));
	progress(w, 2 * WF_HOST_POLLS_PER_CLOCK);
	assert_true(wf_core_take_rest(&w->core, &row));
	/* Something has come. Bug: it rested all the same, if nobody had been there
	 * to rest before. */
	progress(w, 5000);
	w->first.found = WF_POLLED_SOMETHING;
	progress(w, 1);
	assert_false(wf_core_take_rest(&w->core, &row));
	w->first.found = WF_POLLED_NOTHING;
	progress(w, 8);
	assert_false(wf_core_take_rest(&w->core, &row));
	/* Bug: the row of sleeps from before went on, with its long ones. */
	progress(w, 5000);
	assert_int_equal(wf_core_take_rest(&w->core, &row), WF_CORE_REST_ANEW);
	progress(w, 5000);
	assert_int_equal(wf_core_take_rest(&w->core, &row), WF_CORE_REST_ON);
	/* Bug: only one of several threads began anew. */
	progress(w, 5000);
	assert_int_equal(wf_core_take_rest(&w->core, &other),
			 WF_CORE_REST_ANEW);
	w->core.lock->real = false;
}

static void test_sleep(void **state)
{
	struct world *w = *state;

	assert_true(wf_core_sleep(&w->core));
	expect(w, "z2z1s1s2");
	assert_true(w->core.host.asleep);
	assert_false(wakes(w, 0));
	/* A send began something: the thread that waits is woken. */
	wf_transport_host_wake(&w->core.host);
	assert_true(wakes(w, 10000));
	progress(w, 1);
	expect(w, "w1w2");
	assert_false(w->core.host.asleep);
	assert_int_equal(w->first.looks, 1);
	wf_transport_host_wake(&w->core.host); /* nobody sleeps */
	assert_true(wf_core_sleep(&w->core));
	assert_false(wakes(w, 0));
}

/* One says no after the other has told its peers: they are told again. */
static void test_sleep_refused(void **state)
{
	struct world *w = *state;

	w->second.dozes = false;
	assert_false(wf_core_sleep(&w->core));
	expect(w, "n2"); /* nobody was told */
	assert_false(w->core.host.asleep);
	w->second.dozes = true;
	w->first.dozes = false;
	assert_false(wf_core_sleep(&w->core));
	expect(w, "z2n1w1w2");
	w->first.dozes = true;
	w->second.has_work = true;
	assert_false(wf_core_sleep(&w->core));
	expect(w, "z2z1s1s2w1w2");
	assert_false(w->core.host.asleep);
	/* One that is off has nothing to say. */
	w->core.ways[1].on = false;
	assert_true(wf_core_sleep(&w->core));
	expect(w, "z1s1");
}

/* The nearest of all deadlines wakes. */
static void test_sleep_deadline(void **state)
{
	struct world *w = *state;
	uint64_t now = wf_base_clock_ns();

	w->first.deadline = now + 3600 * WF_NS_PER_S;
	w->second.deadline = now + 30 * WF_NS_PER_MS;
	assert_true(wf_core_sleep(&w->core));
	assert_true(wakes(w, 10000));
	assert_true(wf_base_clock_ns() >= w->second.deadline);
}

/* -- the end ---------------------------------------------------------------- */

static void test_linger(void **state)
{
	struct world *w = *state;

	w->first.drains = 2;
	wf_core_linger(&w->core);
	expect(w, "d1d2d1d2");
	/* One that is off has nothing to drain. */
	w->core.ways[1].on = false;
	wf_core_linger(&w->core);
	expect(w, "d1");
}

/* An operation that never leaves holds up the end only for so long. */
static void test_linger_ends(void **state)
{
	struct world *w = *state;
	uint64_t begin = wf_base_clock_ns();

	w->quiet = true;
	w->second.drains = INT32_MAX;
	fake_transport.linger_ns = LINGER;
	wf_core_linger(&w->core);
	assert_true(wf_base_clock_ns() - begin >= LINGER);
	fake_transport.linger_ns = PATIENCE;
	w->quiet = false;
	w->second.drains = 0;
}

static void test_forked(void **state)
{
	struct world *w = *state;

	w->core.host.only = (void *)w;
	wf_core_forked(&w->core);
	expect(w, "f1f2");
	assert_null(w->core.host.only);
	assert_int_equal(w->core.host.loop.epoll_fd, -1);
	progress(w, 100);
	assert_int_equal(w->first.polls, 0);
	assert_true(wf_core_sleep(&w->core)); /* nothing will ever come */
	expect(w, "");
	wf_core_close(&w->core);
	expect(w, "c2c1"); /* nothing is drained */
	wf_core_add(&w->core, &fake_transport, &w->first);
	wf_core_add(&w->core, &fake_transport, &w->second);
	w->first.closed = 0;
	w->second.closed = 0;
}

#define WITH_WORLD(test)                                                       \
	cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_route),		WITH_WORLD(test_names_change),
		WITH_WORLD(test_progress),	WITH_WORLD(test_look),
		WITH_WORLD(test_polls_rarely),	WITH_WORLD(test_idle),
		WITH_WORLD(test_rest),		WITH_WORLD(test_sleep),
		WITH_WORLD(test_sleep_refused), WITH_WORLD(test_sleep_deadline),
		WITH_WORLD(test_linger),	WITH_WORLD(test_linger_ends),
		WITH_WORLD(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
