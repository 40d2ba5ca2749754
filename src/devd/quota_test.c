/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs and bytes a second of a user: the account in simulated time, and a user
 * who has as many jobs done as his quota and the time allow, and no more, while
 * others are not held back. Needs root for the latter.
 */
#include "devd/rig_test.h"

#include "devd/quota.h"

#define NOBODY 65534

static const struct wf_devd_rates none;

static void test_account(void **state)
{
	struct wf_devd_rates rates = { .jobs = 10 };
	struct wf_devd_quota q = { 0 };
	bool first;

	(void)state;
	assert_true(wf_devd_quota_allows(&q, &first));
	wf_devd_quota_take(&q, 1000, 1000);
	wf_devd_quota_set(&q, &rates);
	/* A second's worth to begin with; a turn may take more. */
	assert_true(wf_devd_quota_allows(&q, &first));
	wf_devd_quota_take(&q, 9, 1u << 30);
	assert_true(wf_devd_quota_allows(&q, &first));
	wf_devd_quota_take(&q, 6, 1u << 30);
	assert_false(wf_devd_quota_allows(&q, &first));
	assert_true(first);
	assert_false(wf_devd_quota_allows(&q, &first));
	assert_false(first);
	/* 5 are owed. Parts of one add up. */
	for (int i = 0; i < 11; i++)
		assert_false(wf_devd_quota_refill(&q, WF_NS_PER_S / 20));
	assert_true(wf_devd_quota_refill(&q, WF_NS_PER_S / 20));
	assert_true(wf_devd_quota_allows(&q, &first));
	assert_false(wf_devd_quota_refill(&q, WF_NS_PER_S / 20));
	/* Nobody saves more than a second's worth. */
	wf_devd_quota_refill(&q, 1000 * WF_NS_PER_S);
	assert_int_equal(q.jobs, 10);
	/* Bytes as well; and both limits hold. */
	rates = (struct wf_devd_rates){ .jobs = 10, .bytes = 1000 };
	wf_devd_quota_set(&q, &rates);
	wf_devd_quota_take(&q, 1, 3000);
	assert_false(wf_devd_quota_allows(&q, &first));
	assert_true(first);
	assert_false(wf_devd_quota_refill(&q, 2 * WF_NS_PER_S - 1000));
	assert_true(wf_devd_quota_refill(&q, WF_NS_PER_S / 10));
	/* No limit any more: a client that waits is woken. */
	wf_devd_quota_take(&q, 100, 0);
	assert_false(wf_devd_quota_allows(&q, &first));
	wf_devd_quota_set(&q, &none);
	assert_true(wf_devd_quota_refill(&q, 1));
	assert_true(wf_devd_quota_allows(&q, &first));
}

#define JOBS 40u
#define RATE 30u

static void run_jobs(unsigned int n)
{
	struct wf_drv_device device;

	if (rig_open(&device, "share-0", 0))
		_exit(1);
	for (unsigned int i = 0; i < n; i++)
		rig_nop(&device);
	wf_drv_device_close(&device);
}

static void limited(uint64_t jobs)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1);
	run_jobs((unsigned int)jobs);
}

/* Two processes of one user share what it has. More jobs than a second's worth
 * take some time, at least, whatever else the machine does. */
static void test_rate(void **state)
{
	struct rig rig;
	uint64_t began;
	pid_t pids[2];

	(void)state;
	if (geteuid())
		skip();
	rig_init(&rig);
	rig.config.workers = 1;
	rig.config.allow_uid = "65534";
	rig.config.user_rates.jobs = RATE;
	rig_fork(&rig);
	began = wf_base_clock_ns();
	for (int i = 0; i < 2; i++)
		pids[i] = rig_spawn(limited, JOBS / 2);
	/* We are the owner, without a limit. */
	run_jobs(4 * RATE);
	for (int i = 0; i < 2; i++)
		rig_expect_exit(pids[i]);
	assert_true(wf_base_clock_ns() - began >=
		    (JOBS - RATE - 1) * WF_NS_PER_S / RATE);
	rig_kill(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
