/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop: who is called back, and whom the timer wakes.
 */
#include "transport/loop.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/list.h"

struct counted {
	struct wf_source source;
	struct wf_loop *loop;
	int writer;
	int ready;
	uint32_t events;
	uint64_t now;
	struct counted *drops; /* another one, when it is ready */
};

static void on_ready(struct wf_source *source, uint32_t events, uint64_t now)
{
	struct counted *c = wf_container_of(source, struct counted, source);

	c->ready++;
	c->events |= events;
	c->now = now;
	if (c->drops)
		wf_transport_loop_drop(c->loop, &c->drops->source);
}

static void open_pipe(struct wf_loop *loop, struct counted *c)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	*c = (struct counted){
		.source = { .fd = ends[0], .ready = on_ready },
		.loop = loop,
		.writer = ends[1],
	};
	assert_int_equal(wf_transport_loop_add(loop, &c->source), 0);
}

static bool is_readable(const struct wf_loop *loop, int ms)
{
	struct pollfd p = { .fd = loop->epoll_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void test_called_back(void **state)
{
	struct wf_loop loop;
	struct counted a, b;

	(void)state;
	assert_int_equal(wf_transport_loop_open(&loop), 0);
	open_pipe(&loop, &a);
	open_pipe(&loop, &b);
	wf_transport_loop_run(&loop, 1);
	assert_int_equal(a.ready + b.ready, 0);
	assert_int_equal(write(a.writer, "", 1), 1);
	assert_true(is_readable(&loop, 10000));
	wf_transport_loop_run(&loop, 42);
	assert_int_equal(a.ready, 1);
	assert_int_equal(a.now, 42);
	assert_int_equal(b.ready, 0);
	/* It is there until it is read. */
	wf_transport_loop_run(&loop, 43);
	assert_int_equal(a.ready, 2);
	assert_false(a.events & WF_LOOP_OVER);
	/* The end of the other side. */
	close(b.writer);
	wf_transport_loop_run(&loop, 44);
	assert_true(b.events & WF_LOOP_OVER);
	/* Not any more, and the descriptor is still open. */
	wf_transport_loop_remove(&loop, &a.source);
	a.ready = 0;
	wf_transport_loop_run(&loop, 45);
	assert_int_equal(a.ready, 0);
	close(a.source.fd);
	close(a.writer);
	wf_transport_loop_drop(&loop, &b.source);
	assert_int_equal(b.source.fd, -1);
	wf_transport_loop_drop(&loop, &b.source); /* does nothing */
	wf_transport_loop_close(&loop);
}

/* One that is ready drops another that is ready, too. */
static void test_dropped_meanwhile(void **state)
{
	struct wf_loop loop;
	struct counted a, b;

	(void)state;
	assert_int_equal(wf_transport_loop_open(&loop), 0);
	open_pipe(&loop, &a);
	open_pipe(&loop, &b);
	a.drops = &b;
	b.drops = &a;
	assert_int_equal(write(a.writer, "", 1), 1);
	assert_int_equal(write(b.writer, "", 1), 1);
	wf_transport_loop_run(&loop, 1);
	assert_in_range(a.ready + b.ready, 1, 2);
	wf_transport_loop_drop(&loop, &a.source);
	wf_transport_loop_drop(&loop, &b.source);
	close(a.writer);
	close(b.writer);
	wf_transport_loop_close(&loop);
}

/* The timer makes the set readable for every thread that waits, until it is set
 * again: running the loop does not read it. */
static void test_timer(void **state)
{
	struct wf_loop loop;

	(void)state;
	assert_int_equal(wf_transport_loop_open(&loop), 0);
	assert_false(is_readable(&loop, 0));
	assert_true(wf_transport_loop_set(&loop, 1));
	assert_true(is_readable(&loop, 10000));
	wf_transport_loop_run(&loop, 1);
	assert_true(is_readable(&loop, 0));
	assert_true(wf_transport_loop_set(&loop, 0));
	assert_false(is_readable(&loop, 0));
	wf_transport_loop_close(&loop);
	assert_int_equal(loop.epoll_fd, -1);
	wf_transport_loop_close(&loop); /* does nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_called_back),
		cmocka_unit_test(test_dropped_meanwhile),
		cmocka_unit_test(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
