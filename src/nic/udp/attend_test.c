/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the attendant: an owner that computes is stepped in for as soon
 * as a packet comes, and one that calls is left alone.
 */
#include "nic/pair_test.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"

static _Atomic int watched = -1; /* a device's socket */
static _Atomic bool for_ever;	 /* only an event may wake who polls it */
static _Atomic unsigned polls;	 /* that have begun with it */
static _Atomic unsigned polled;	 /* and ended */
static _Atomic unsigned inside;	 /* threads in any poll */

/* In the place of the C library's. */
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	  const sigset_t *mask)
{
	/* The header says that poll only writes what it is given. */
	const volatile struct pollfd *look = fds;
	bool has = false;
	int ret;

	for (nfds_t i = 0; i < n; i++)
		has |= look[i].fd == watched;
	polls += has;
	/* Short ones have a reason: the owner called just now. */
	if (has && for_ever && timeout->tv_nsec > 10 * (long)WF_NS_PER_MS)
		timeout = NULL;
	inside++;
	ret = (int)syscall(SYS_ppoll, fds, n, timeout, mask, _NSIG / 8);
	inside--;
	polled += has;
	return ret;
}

static bool comes(const _Atomic unsigned *count, unsigned least)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	while (*count < least && wf_base_clock_ns() < end)
		usleep(1000);
	return *count >= least;
}

static void open_attended(struct pair *p)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;

	b.attend = true;
	pair_open_attr(p, &a, &b);
	hello(p);
	watched = wf_udp_dev_of(p->b.nic)->sock.fd;
}

static void close_attended(struct pair *p)
{
	watched = -1;
	for_ever = false;
	/* It may be in a poll without end. */
	wf_nic_progress(p->b.nic);
	pair_close(p);
}

/* Review: the attendant slept for up to 64 ms without a look at the socket, so
 * that a peer waited for 20 to 84 ms for an owner that computes. */
static void test_woken_by_socket(void **state)
{
	struct wf_nic_wr wr;
	struct wf_nic_wc wc;
	struct pair p;

	(void)state;
	open_attended(&p);
	for_ever = true;
	for (unsigned i = 0; i < 10; i++) {
		uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

		/* The owner is silent until the attendant is at the socket. */
		pair_recv(&p.b, i, 0, 64);
		assert_true(comes(&polls, polled + 1));
		wr = pair_wr(&p.a, &p.b, i);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		while (!wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			wf_nic_progress(p.a.nic);
			assert_true(wf_base_clock_ns() < end);
		}
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 1);
	}
	close_attended(&p);
}

/* A call of the owner sets timers that the attendant has to know of. */
static void test_woken_by_owner(void **state)
{
	unsigned before;
	struct pair p;

	(void)state;
	open_attended(&p);
	for_ever = true;
	for (int i = 0; i < 3; i++) {
		assert_true(comes(&polls, polled + 1));
		before = polled;
		wf_nic_progress(p.b.nic);
		assert_true(comes(&polled, before + 1));
	}
	close_attended(&p);
}

/* While the owner calls, the attendant does not wake up for every packet. An
 * owner that waits for a processor is away, so a few times are no mistake. */
static void test_owner_polls(void **state)
{
	enum { COUNT = 2000 };
	struct wf_nic_wr wr;
	unsigned before;
	struct pair p;

	(void)state;
	open_attended(&p);
	before = polls;
	for (uint64_t i = 0; i < COUNT; i++) {
		pair_recv(&p.b, i, 0, 64);
		wr = pair_wr(&p.a, &p.b, i);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		assert_int_equal(pair_wait(&p, &p.b).len, 1);
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	}
	print_message("%u polls beside %d messages\n", polls - before, COUNT);
	assert_true(polls - before < COUNT / 4);
	close_attended(&p);
}

/* Bug: the attendant slept at the socket while its owner closed it, and the
 * kernel kept the port until it woke up. */
static void test_port_is_free(void **state)
{
	const struct timespec moment = { .tv_nsec = 5000000 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct pair p;
		struct wf_addr addr;
		int fd;

		open_attended(&p);
		for_ever = true;
		assert_true(comes(&polls, polls + 1));
		nanosleep(&moment, NULL);
		addr = *wf_nic_socket(p.b.nic);
		watched = -1;
		for_ever = false;
		side_close(&p.b);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		assert_int_equal(bind(fd, &addr.sa, wf_base_addr_len(&addr)),
				 0);
		close(fd);
		side_close(&p.a);
	}
}

/* Bug: the thread was still there, for some milliseconds, when the last device
 * had been closed. */
static void test_ends_with_the_last(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct pair p;

		open_attended(&p);
		wf_nic_progress(p.b.nic);
		assert_true(comes(&inside, 1));
		close_attended(&p);
		assert_int_equal(inside, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_woken_by_socket),
		cmocka_unit_test(test_woken_by_owner),
		cmocka_unit_test(test_owner_polls),
		cmocka_unit_test(test_port_is_free),
		cmocka_unit_test(test_ends_with_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
