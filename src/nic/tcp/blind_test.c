/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attendant, or the device's thread, while the device's descriptor is readable
 * by what only the owner can take, or while the owner is at work: it sleeps, and
 * looks again now and then.
 */
#include "nic/pair_test.h"

#include <time.h>

#include "nic/tcp/dev.h"
#include "queue/wake.h"

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * WF_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void expect_sleep(bool thread)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;
	struct wf_tcp_dev *dev;
	struct pair p;
	uint64_t cpu;

	b.attend = !thread;
	b.thread = thread;
	b.locked = true;
	pair_open_attr(&p, &a, &b);
	hello(&p);
	dev = wf_tcp_dev_of(p.b.nic);
	assert_true(dev->soft.user_fd >= 0);
	wf_queue_wake_arm(&dev->soft.user_asleep);
	wf_nic_soft_wake(&dev->soft);
	wf_queue_wake_disarm(&dev->soft.user_asleep);
	cpu = cpu_ns();
	usleep(400000);
	assert_true(cpu_ns() - cpu < 150 * WF_NS_PER_MS);
	pair_close(&p);
}

/* Bug, found by the simulator (seed 1878): a wake-up that its owner had not seen
 * kept the attendant from sleeping. */
static void test_unseen_wakeup(void **state)
{
	(void)state;
	expect_sleep(false);
}

/* Bug, found by the simulator as well: the same with the thread of automatic
 * progress, which kept its owner from the lock, too. */
static void test_unseen_by_thread(void **state)
{
	(void)state;
	expect_sleep(true);
}

/* Bug: while an owner that had lost its processor had the lock, the attendant
 * asked for it 10,000 times a second. */
static void test_owner_has_lock(void **state)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;
	struct pair p;
	uint64_t end;

	(void)state;
	b.attend = true;
	pair_open_attr(&p, &a, &b);
	hello(&p);
	end = wf_base_clock_ns() + 50 * WF_NS_PER_MS;
	wf_base_lock_take(&p.b.nic->lock);
	while (wf_base_clock_ns() < end) {
		usleep(1000);
		assert_int_equal(p.b.nic->lock.waiters, 0);
	}
	wf_base_lock_drop(&p.b.nic->lock);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen_wakeup),
		cmocka_unit_test(test_unseen_by_thread),
		cmocka_unit_test(test_owner_has_lock),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
