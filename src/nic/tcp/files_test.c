/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of descriptors: with fewer than there are peers, connections that
 * are idle are closed for others, every message arrives, and one line says what
 * to do; without any, requests end with an error; those that were not used for
 * long are given back.
 */
#include "nic/pair_test.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/log.h"
#include "nic/tcp/dev.h"

#define PEERS 16u
/* Descriptors: four connections, both ends of which are ours. With one less, the
 * device that accepts finds none, and the other one has to give way. */
#define FREE 8u

static struct side hub, others[PEERS];
static uint16_t handles[PEERS];
static unsigned int lines; /* about descriptors, on all devices */

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	lines += level == WF_LOG_TELL && strstr(text, "cannot be opened");
}

static void progress_all(void)
{
	wf_nic_progress(hub.nic);
	for (unsigned int i = 0; i < PEERS; i++)
		wf_nic_progress(others[i].nic);
}

static struct wf_nic_wc wait_for(struct side *s)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_nic_wc wc;

	while (!wf_nic_cq_poll(s->cq, &wc, 1)) {
		progress_all();
		assert_true(wf_base_clock_ns() < end);
	}
	return wc;
}

static int open_all(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	(void)state;
	memset(&hub, 0, sizeof(hub));
	memset(others, 0, sizeof(others));
	side_open(&hub, &attr);
	for (unsigned int i = 0; i < PEERS; i++) {
		side_open(&others[i], &attr);
		assert_int_equal(wf_nic_ah_create_socket(
					 hub.nic, wf_nic_socket(others[i].nic),
					 &handles[i]),
				 0);
		assert_int_equal(wf_nic_ah_create_socket(others[i].nic,
							 wf_nic_socket(hub.nic),
							 &others[i].ah),
				 0);
	}
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	side_close(&hub);
	for (unsigned int i = 0; i < PEERS; i++)
		side_close(&others[i]);
	return 0;
}

static void talk_to(unsigned int i)
{
	struct wf_nic_wr wr;

	hub.ah = handles[i];
	wr = pair_wr(&hub, &others[i], i);
	pair_recv(&others[i], i, 0, 64);
	assert_int_equal(wf_nic_post_inline(hub.qp, &wr, &i, sizeof(i)), 0);
	assert_int_equal(wait_for(&others[i]).status, WF_NIC_OK);
	assert_int_equal(wait_for(&hub).status, WF_NIC_OK);
	assert_memory_equal(others[i].memory, &i, sizeof(i));
}

static unsigned int connections(struct side *s)
{
	const struct wf_list *head = &wf_tcp_dev_of(s->nic)->conns, *pos;
	unsigned int count = 0;

	for (pos = head->next; pos != head; pos = pos->next)
		count++;
	return count;
}

/* So many descriptors more than there are may be opened. Returns the limit. */
static struct rlimit limit_to(unsigned int spare)
{
	struct rlimit before, few;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)next + spare;
	lines = 0;
	wf_base_log_set_sink(take_line);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return before;
}

/* Bug: a device that had accepted with the last descriptor asked whether there
 * was more, took the answer for a shortage, and closed what it had accepted. */
static void run_with(unsigned int spare)
{
	struct rlimit before = limit_to(spare);

	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < PEERS; i++)
			talk_to(i);
	}
	assert_true(connections(&hub) <= FREE / 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* Each device is short of them again and again, and says so once. */
	assert_in_range(lines, 1, 1 + PEERS);
	/* Nobody was taken for dead, or for somebody else. */
	assert_int_equal(COUNTED(&hub, peer_deaths), 0);
	for (unsigned int i = 0; i < PEERS; i++)
		assert_int_equal(COUNTED(&others[i], peer_deaths), 0);
	/* Those were not for want of memory: with enough, all stay. */
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < PEERS; i++)
			talk_to(i);
	}
	assert_int_equal(connections(&hub), PEERS);
}

static void test_few(void **state)
{
	(void)state;
	run_with(FREE);
}

static void test_odd(void **state)
{
	(void)state;
	run_with(FREE - 1);
}

/* There is none, nor a connection that could be closed for one: the requests end
 * when the time for connecting is over, one line says why, and with descriptors
 * the peer is reached. */
static void test_none(void **state)
{
	struct rlimit before = limit_to(0);
	struct wf_nic_wr wr;

	(void)state;
	wf_tcp_dev_of(hub.nic)->connect_ns = 200 * WF_NS_PER_MS;
	hub.ah = handles[0];
	wr = pair_wr(&hub, &others[0], 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wf_nic_post_inline(hub.qp, &wr, "none", 4), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_for(&hub).status, WF_NIC_UNREACH);
	assert_int_equal(lines, 1);
	assert_int_equal(COUNTED(&hub, peer_deaths), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	wf_tcp_dev_of(hub.nic)->connect_ns = PAIR_LOST * WF_NS_PER_S;
	assert_int_equal(wf_nic_ah_renew(hub.nic, handles[0]), 0);
	talk_to(0);
	assert_int_equal(lines, 1);
}

static void test_idle(void **state)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	(void)state;
	wf_tcp_dev_of(hub.nic)->idle_ns = 20 * WF_NS_PER_MS;
	for (unsigned int i = 0; i < PEERS; i++)
		talk_to(i);
	while (connections(&hub)) {
		progress_all();
		assert_true(wf_base_clock_ns() < end);
	}
	for (unsigned int i = 0; i < PEERS; i++) {
		while (connections(&others[i])) {
			progress_all();
			assert_true(wf_base_clock_ns() < end);
		}
	}
	wf_tcp_dev_of(hub.nic)->idle_ns = 300 * WF_NS_PER_S;
	for (unsigned int i = 0; i < PEERS; i++)
		talk_to(i);
	assert_int_equal(COUNTED(&hub, peer_deaths), 0);
	assert_int_equal(connections(&hub), PEERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_few, open_all, close_all),
		cmocka_unit_test_setup_teardown(test_odd, open_all, close_all),
		cmocka_unit_test_setup_teardown(test_none, open_all, close_all),
		cmocka_unit_test_setup_teardown(test_idle, open_all, close_all),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
