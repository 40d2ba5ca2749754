/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIDs: an address and its port come back, and nothing else is one.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "efa/efa.h"

static void test_back_and_forth(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(40001) };
	static const uint8_t want[16] = { 0xfe, 0x80, 0, 0, 0,	  0,
					  0x9c, 0x41, 0, 0, 0xff, 0xfe,
					  10,	1,    2, 3 };
	struct wf_addr addr, back;
	union ibv_gid gid;

	(void)state;
	inet_pton(AF_INET, "10.1.2.3", &in.sin_addr);
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	wf_efa_gid_of(&addr, &gid);
	assert_memory_equal(gid.raw, want, sizeof(want));
	assert_int_equal(wf_efa_gid_addr(&gid, &back), 0);
	assert_true(wf_base_addr_equal(&addr, &back));
}

static void test_others(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(1),
				  .sin_addr = { htonl(0x0a000001) } };
	struct wf_addr addr, back;
	union ibv_gid good, bad;

	(void)state;
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	wf_efa_gid_of(&addr, &good);
	for (int i = 0; i < 12; i++) {
		bad = good;
		bad.raw[i] ^= 0x40;
		if (i == 6 || i == 7) /* another port */
			continue;
		assert_int_equal(wf_efa_gid_addr(&bad, &back), -EINVAL);
	}
	bad = good;
	memset(bad.raw + 6, 0, 2);
	assert_int_equal(wf_efa_gid_addr(&bad, &back), -EINVAL);
	bad = good;
	memset(bad.raw + 12, 0, 4);
	assert_int_equal(wf_efa_gid_addr(&bad, &back), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back_and_forth),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
