/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress with a transport that counts what it is asked: the thread
 * drives an endpoint that nobody else drives, is woken by a descriptor and by a
 * deadline, sleeps between, and lets go.
 */
#include "core/attend.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fork.h"

#define PATIENCE (60 * WF_NS_PER_S)

struct end {
	struct wf_core core;
	struct wf_attended attended;
	struct wf_source source; /* readable: something came */
	int writer;
	atomic_int got; /* bytes that poll() has taken */
	atomic_int polls;
	atomic_int sleeps;
	atomic_int turns;
	atomic_int slept_at; /* polls when it was told a deadline */
	uint64_t deadline;
	bool ready;		  /* the source was */
	atomic_bool busy;	  /* does not sleep */
	atomic_bool finds_always; /* something comes with each poll */
	bool watches; /* poll() looks after a fork, as transports do */
};

static void on_ready(struct wf_source *source, uint32_t events, uint64_t now)
{
	(void)events;
	(void)now;
	wf_container_of(source, struct end, source)->ready = true;
}

static void in_child(struct wf_fork_watch *watch)
{
	(void)watch;
}

static enum wf_polled poll_end(void *self)
{
	struct wf_fork_watch watch = { .in_child = in_child };
	struct end *e = self;
	char byte;

	if (e->watches) {
		wf_base_fork_watch(&watch);
		wf_base_fork_unwatch(&watch);
	}

	atomic_fetch_add(&e->polls, 1);
	if (e->ready && read(e->source.fd, &byte, 1) == 1)
		atomic_fetch_add(&e->got, 1);
	e->ready = false;
	return atomic_load(&e->finds_always) ? WF_POLLED_SOMETHING :
					       WF_POLLED_WAITING;
}

static void tick(void *self, uint64_t now)
{
	(void)self;
	(void)now;
}

static uint64_t look(void *self, uint64_t now)
{
	(void)self;
	(void)now;
	return UINT64_MAX;
}

static bool doze(void *self, uint64_t *deadline)
{
	struct end *e = self;

	if (e->deadline < *deadline) {
		*deadline = e->deadline;
		atomic_store(&e->slept_at, atomic_load(&e->polls));
	}
	e->deadline = UINT64_MAX;
	return !e->ready && !atomic_load(&e->busy);
}

static bool has_work(void *self, uint64_t *deadline)
{
	struct end *e = self;

	(void)deadline;
	atomic_fetch_add(&e->sleeps, 1);
	return false;
}

static void nothing(void *self)
{
	(void)self;
}

static bool drain(void *self)
{
	(void)self;
	return false;
}

static const struct wf_transport counting = {
	.name = "counting",
	.close = nothing,
	.forked = nothing,
	.poll = poll_end,
	.tick = tick,
	.look = look,
	.drain = drain,
	.doze = doze,
	.has_work = has_work,
	.wake = nothing,
};

static void turn(struct wf_attended *attended)
{
	atomic_fetch_add(
		&wf_container_of(attended, struct end, attended)->turns, 1);
}

static void open_end(struct end *e)
{
	const struct wf_host host = { .tx_size = 1 };
	int ends[2];

	memset(e, 0, sizeof(*e));
	assert_int_equal(pipe(ends), 0);
	e->source = (struct wf_source){ .fd = ends[0], .ready = on_ready };
	e->writer = ends[1];
	e->deadline = UINT64_MAX;
	wf_core_init(&e->core, true);
	assert_int_equal(wf_core_open(&e->core, &host), 0);
	wf_core_add(&e->core, &counting, e)->on = true;
	assert_int_equal(wf_transport_loop_add(&e->core.host.loop, &e->source),
			 0);
	e->attended = (struct wf_attended){
		.core = &e->core,
		.turn = turn,
	};
	assert_int_equal(wf_core_attend_add(&e->attended), 0);
}

static void close_end(struct end *e)
{
	wf_core_attend_remove(&e->attended);
	wf_transport_loop_drop(&e->core.host.loop, &e->source);
	wf_core_close(&e->core);
	close(e->writer);
}

#define AWAIT(condition)                                                       \
	do {                                                                   \
		uint64_t end_ = wf_base_clock_ns() + PATIENCE;                 \
		while (!(condition)) {                                         \
			assert_true(wf_base_clock_ns() < end_);                \
			usleep(100);                                           \
		}                                                              \
	} while (0)

static void test_drives(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a);
	open_end(&b);
	/* Both fall asleep, though nobody polls them. */
	AWAIT(atomic_load(&a.sleeps) && atomic_load(&b.sleeps));
	for (int i = 1; i <= 20; i++) {
		assert_int_equal(write(a.writer, "", 1), 1);
		AWAIT(atomic_load(&a.got) == i);
	}
	assert_int_equal(atomic_load(&b.got), 0);
	assert_true(atomic_load(&a.turns) >= 20);
	close_end(&a);
	/* The thread goes on with the other one. */
	assert_int_equal(write(b.writer, "", 1), 1);
	AWAIT(atomic_load(&b.got) == 1);
	close_end(&b);
}

static void test_deadline(void **state)
{
	struct end a;

	(void)state;
	open_end(&a);
	AWAIT(atomic_load(&a.sleeps));
	wf_core_enter(&a.core);
	a.deadline = wf_base_clock_ns() + 5 * WF_NS_PER_MS;
	wf_core_leave(&a.core);
	/* Has it sleep again, this time until then. */
	assert_int_equal(write(a.writer, "", 1), 1);
	AWAIT(atomic_load(&a.got));
	AWAIT(atomic_load(&a.slept_at));
	AWAIT(atomic_load(&a.polls) > atomic_load(&a.slept_at));
	close_end(&a);
}

static bool is_asleep(struct end *e)
{
	bool asleep;

	wf_core_enter(&e->core);
	asleep = e->core.host.asleep;
	wf_core_leave(&e->core);
	return asleep;
}

/* An endpoint to which nothing comes costs nothing: it was polled until it
 * slept, and not since. */
static void test_sleeps(void **state)
{
	struct end a;
	int polls;

	(void)state;
	open_end(&a);
	AWAIT(is_asleep(&a));
	polls = atomic_load(&a.polls);
	usleep(50000);
	assert_int_equal(atomic_load(&a.polls), polls);
	close_end(&a);
}

/* The owner polls and stops: messages that come then are not left. */
static atomic_int rests, begins;

void __wrap_wf_base_rest(struct wf_rest *rest);
void __wrap_wf_base_rest_begin(struct wf_rest *rest);

/* The linker has the thread's calls come here (src/meson.build). */
void __wrap_wf_base_rest(struct wf_rest *rest)
{
	(void)rest;
	rests++;
	usleep(10);
}

void __wrap_wf_base_rest_begin(struct wf_rest *rest)
{
	(void)rest;
	begins++;
}

static void await_rests(int count)
{
	count += rests;
	AWAIT(rests >= count);
}

/* Bug: the sleeps of a thread that could not let an endpoint sleep grew, also
 * while messages came. */
static void test_rests(void **state)
{
	struct end e;
	int before;

	(void)state;
	open_end(&e);
	e.busy = true;
	assert_int_equal(write(e.writer, "", 1), 1);
	/* Nothing comes: one row. */
	await_rests(100);
	before = begins;
	await_rests(100);
	assert_int_equal(begins, before);
	e.finds_always = true;
	await_rests(10);
	before = begins;
	await_rests(10);
	assert_true(begins > before);
	e.finds_always = false;
	e.busy = false;
	close_end(&e);
}

static void test_owner_stops(void **state)
{
	struct end a;

	(void)state;
	open_end(&a);
	for (int i = 1; i <= 10; i++) {
		for (int k = 0; k < 100; k++) {
			wf_core_enter(&a.core);
			wf_core_progress(&a.core);
			wf_core_leave(&a.core);
		}
		assert_int_equal(write(a.writer, "", 1), 1);
		AWAIT(atomic_load(&a.got) == i);
	}
	close_end(&a);
}

/* Bug that must not be: the thread touches an endpoint after it was let go. */
static void test_removed(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct end *a = malloc(sizeof(*a));

		assert_non_null(a);
		open_end(a);
		assert_int_equal(write(a->writer, "", 1), 1);
		if (i & 1)
			AWAIT(atomic_load(&a->polls));
		close_end(a);
		memset(a, 0xff, sizeof(*a));
		free(a);
	}
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Bug: the thread's two descriptors stayed in the process when the last
 * endpoint was closed. */
static void test_gives_back(void **state)
{
	int before = descriptors();

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct end a, b;

		open_end(&a);
		open_end(&b);
		if (i & 1)
			AWAIT(is_asleep(&a));
		close_end(&a);
		close_end(&b);
		assert_int_equal(descriptors(), before);
	}
}

static void *come_and_go(void *arg)
{
	struct end *e = arg;
	intptr_t failed = 0;

	for (int i = 0; i < 500; i++) {
		failed += wf_core_attend_add(&e->attended) != 0;
		wf_core_attend_remove(&e->attended);
	}
	return (void *)failed;
}

/* One comes while the thread ends, because another one was the last. */
static void test_come_and_go(void **state)
{
	int before = descriptors();
	pthread_t thread[2];
	struct end e[2];
	void *failed;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_end(&e[i]);
		wf_core_attend_remove(&e[i].attended);
	}
	alarm(60);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, come_and_go, &e[i]),
			0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	/* There is a thread for whoever comes next. */
	assert_int_equal(wf_core_attend_add(&e[0].attended), 0);
	assert_int_equal(write(e[0].writer, "", 1), 1);
	AWAIT(atomic_load(&e[0].got) == 1);
	alarm(0);
	close_end(&e[0]);
	close_end(&e[1]);
	assert_int_equal(descriptors(), before);
}

/* A child has no such thread, and starts one of its own. */
static void test_fork(void **state)
{
	struct end a, b;
	int status;
	pid_t pid;

	(void)state;
	open_end(&a);
	AWAIT(atomic_load(&a.sleeps));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int before;

		alarm(60);
		wf_core_forked(&a.core);
		before = descriptors();
		open_end(&b);
		assert_int_equal(write(b.writer, "", 1), 1);
		AWAIT(atomic_load(&b.got) == 1);
		/* It ends, although the parent's endpoint is not closed. */
		close_end(&b);
		if (descriptors() != before)
			_exit(1);
		wf_core_attend_remove(&a.attended);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(write(a.writer, "", 1), 1);
	AWAIT(atomic_load(&a.got) == 1);
	close_end(&a);
}

/* Bug: opening an endpoint took the lock of forks and then that of the list, the
 * thread took them in the other order, when a transport looked after forks. */
static void test_opened_meanwhile(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a);
	wf_core_enter(&a.core);
	a.watches = true;
	wf_core_leave(&a.core);
	alarm(60); /* it hung for ever */
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(write(a.writer, "", 1), 1);
		open_end(&b);
		close_end(&b);
	}
	AWAIT(atomic_load(&a.got) == 2000);
	alarm(0);
	close_end(&a);
}

/* Bug: the thread waited for the lock of one endpoint, whose holder may linger
 * in fi_close(), and all others waited with it. */
static void test_held(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a);
	open_end(&b);
	AWAIT(is_asleep(&a) && is_asleep(&b));
	wf_core_enter(&a.core);
	assert_int_equal(write(a.writer, "", 1), 1);
	usleep(1000);
	assert_int_equal(write(b.writer, "", 1), 1);
	AWAIT(atomic_load(&b.got) == 1);
	wf_core_leave(&a.core);
	AWAIT(atomic_load(&a.got) == 1);
	close_end(&a);
	close_end(&b);
}

/* Bug: an endpoint without a descriptor for its timer could not sleep, and the
 * thread took a whole processor. */
static void test_no_timer(void **state)
{
	struct rlimit before, none;
	struct end a, b;

	(void)state;
	open_end(&a);
	open_end(&b);
	wf_core_attend_remove(&b.attended);
	wf_transport_loop_drop(&b.core.host.loop, &b.core.host.loop.timer);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(wf_core_attend_add(&b.attended), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* It is not in the list, and can be added later. */
	assert_int_equal(write(b.writer, "", 1), 1);
	assert_int_equal(write(a.writer, "", 1), 1);
	AWAIT(atomic_load(&a.got) == 1);
	assert_int_equal(atomic_load(&b.got), 0);
	assert_int_equal(wf_core_attend_add(&b.attended), 0);
	AWAIT(atomic_load(&b.got) == 1);
	close_end(&a);
	close_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_drives),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_sleeps),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_owner_stops),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_opened_meanwhile),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_no_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
