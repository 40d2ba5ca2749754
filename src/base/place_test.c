/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places in addresses: kept by copies, no part of the identity, and not taken
 * from what an application left in unused bytes.
 */
#include "base/place.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PLACE 0x123457abcdefu

static struct wf_addr addr_of(const char *ip)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(7) };
	struct wf_addr addr;

	if (inet_pton(AF_INET, ip, &in.sin_addr) == 1) {
		assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	} else {
		assert_int_equal(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
		in6.sin6_scope_id = 3;
		assert_int_equal(wf_base_addr_set(&addr, &in6, sizeof(in6)), 0);
	}
	return addr;
}

static void check_kept(const char *ip)
{
	struct wf_addr plain = addr_of(ip), placed = plain, copy;
	char a[WF_ADDR_STR_LEN], b[WF_ADDR_STR_LEN];

	assert_int_equal(wf_base_place_of(&plain), 0);
	wf_base_place_put(&placed, PLACE);
	assert_int_equal(wf_base_place_of(&placed), PLACE);
	assert_int_equal(
		wf_base_addr_set(&copy, &placed, wf_base_addr_len(&placed)), 0);
	assert_int_equal(wf_base_place_of(&copy), PLACE);
	assert_true(wf_base_addr_equal(&plain, &copy));
	assert_int_equal(wf_base_addr_hash(&plain), wf_base_addr_hash(&copy));
	assert_string_equal(wf_base_addr_str(&plain, a, sizeof(a)),
			    wf_base_addr_str(&copy, b, sizeof(b)));
	wf_base_place_put(&copy, 0);
	assert_memory_equal(&copy, &plain, sizeof(copy));
}

static void test_kept(void **state)
{
	(void)state;
	check_kept("10.1.2.3");
	check_kept("127.0.0.1");
	check_kept("fd00::1");
}

static void test_link_local(void **state)
{
	struct wf_addr addr = addr_of("fe80::1"), before = addr;

	(void)state;
	wf_base_place_put(&addr, PLACE);
	assert_int_equal(wf_base_place_of(&addr), 0);
	assert_memory_equal(&addr, &before, sizeof(addr));
}

static void test_mapped(void **state)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(7) };
	struct wf_addr addr, placed = addr_of("fd00::1");

	(void)state;
	wf_base_place_put(&placed, PLACE);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:1.2.3.4", &in6.sin6_addr),
			 1);
	in6.sin6_flowinfo = placed.in6.sin6_flowinfo;
	in6.sin6_scope_id = placed.in6.sin6_scope_id;
	assert_int_equal(wf_base_addr_set(&addr, &in6, sizeof(in6)), 0);
	assert_int_equal(addr.sa.sa_family, AF_INET);
	assert_int_equal(wf_base_place_of(&addr), PLACE);
}

/* sin_zero of an application that does not clear its addresses. */
static void test_garbage(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct wf_addr addr, clean;
	unsigned int taken = 0;
	uint64_t word = 1;

	(void)state;
	assert_int_equal(wf_base_addr_set(&clean, &in, sizeof(in)), 0);
	for (int i = 0; i < 2000; i++) {
		word = word * 6364136223846793005u + 1442695040888963407u;
		memcpy(in.sin_zero, &word, sizeof(word));
		assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
		taken += wf_base_place_of(&addr) != 0;
		if (!wf_base_place_of(&addr))
			assert_memory_equal(&addr, &clean, sizeof(addr));
	}
	assert_true(taken <= 1); /* one in 65536 passes the check */
}

static void test_own(void **state)
{
	uint64_t place = wf_base_place_own();

	(void)state;
	assert_true(place);
	assert_true(wf_base_place_host(place));
	assert_int_equal(place >> 48, 0);
	assert_int_equal(place, wf_base_place_own());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_link_local),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
