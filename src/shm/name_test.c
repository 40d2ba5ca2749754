/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of which addresses shared memory reaches, where the address itself
 * does not say: a queue pair of an EFA device is of this node if an endpoint of
 * this node has its name.
 */
#include "shm/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct wf_addr queue_pair(uint16_t qpn, uint32_t qkey)
{
	struct wf_addr addr = { .efa = { .family = WF_ADDR_EFA,
					 .qpn = qpn,
					 .qkey = qkey,
					 .gid = { 0xfe, 0x80, [15] = 1 } } };

	return addr;
}

static void test_queue_pair(void **state)
{
	/* Of this process: tests may run beside each other. */
	uint32_t key = (uint32_t)getpid();
	struct wf_addr here = queue_pair(7, key);
	struct wf_addr other = queue_pair(7, key ^ 0x80000000u);
	struct wf_shm_home home = { 0 };
	int fd = wf_shm_name_bind(&here, false);

	(void)state;
	assert_true(fd >= 0);
	/* Nobody can connect yet: packets reach it, too. */
	assert_int_equal(wf_shm_name_reaches(&home, NULL, &here), 0);
	assert_int_equal(listen(fd, 1), 0);
	for (int i = 0; i < 4; i++) /* more than its backlog holds */
		assert_int_equal(wf_shm_name_reaches(&home, NULL, &here), 1);
	assert_int_equal(wf_shm_name_reaches(&home, NULL, &other), 0);
	close(fd);
	assert_int_equal(wf_shm_name_reaches(&home, NULL, &here), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
