/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of socket addresses as identities.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct wf_addr ipv4(const char *ip, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	struct wf_addr addr;

	assert_int_equal(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	return addr;
}

static struct wf_addr ipv6(const char *ip, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_flowinfo = 7,
				    .sin6_scope_id = scope };
	struct wf_addr addr;

	assert_int_equal(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
	assert_int_equal(wf_base_addr_set(&addr, &in6, sizeof(in6)), 0);
	return addr;
}

static void test_equal_and_hash(void **state)
{
	struct wf_addr a = ipv4("10.0.0.1", 5), b = ipv4("10.0.0.1", 5);
	struct wf_addr port = ipv4("10.0.0.1", 6), ip = ipv4("10.0.0.2", 5);
	struct wf_addr six = ipv6("fd00::1", 5, 0);

	(void)state;
	assert_true(wf_base_addr_equal(&a, &b));
	assert_true(wf_base_addr_hash(&a) == wf_base_addr_hash(&b));
	assert_false(wf_base_addr_equal(&a, &port));
	assert_false(wf_base_addr_equal(&a, &ip));
	assert_false(wf_base_addr_equal(&a, &six));
	assert_true(wf_base_addr_hash(&a) != wf_base_addr_hash(&port));
	assert_true(wf_base_addr_hash(&a) != wf_base_addr_hash(&ip));
}

/* One peer must never have two names. */
static void test_padding_does_not_count(void **state)
{
	struct sockaddr_in in;
	struct wf_addr clean = ipv4("10.0.0.1", 5), addr;

	(void)state;
	memset(&in, 0xff, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(5);
	in.sin_addr = clean.in.sin_addr;
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	assert_true(wf_base_addr_equal(&addr, &clean));
	assert_true(wf_base_addr_hash(&addr) == wf_base_addr_hash(&clean));
}

static void test_mapped_is_ipv4(void **state)
{
	struct wf_addr mapped = ipv6("::ffff:10.0.0.1", 5, 0);
	struct wf_addr plain = ipv4("10.0.0.1", 5);

	(void)state;
	assert_true(wf_base_addr_equal(&mapped, &plain));
	assert_true(wf_base_addr_hash(&mapped) == wf_base_addr_hash(&plain));
	assert_int_equal(wf_base_addr_len(&mapped), sizeof(struct sockaddr_in));
}

static void test_scope_counts_on_links_only(void **state)
{
	struct wf_addr a = ipv6("fe80::1", 5, 2), b = ipv6("fe80::1", 5, 3);
	struct wf_addr c = ipv6("fd00::1", 5, 2), d = ipv6("fd00::1", 5, 3);

	(void)state;
	assert_false(wf_base_addr_equal(&a, &b));
	assert_true(wf_base_addr_equal(&c, &d));
	assert_true(wf_base_addr_hash(&c) == wf_base_addr_hash(&d));
}

static void test_set_refuses(void **state)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr unix_sa = { .sa_family = AF_UNIX };
	struct wf_addr addr;

	(void)state;
	assert_int_equal(wf_base_addr_set(&addr, NULL, 16), -EINVAL);
	assert_int_equal(wf_base_addr_set(&addr, &in, 0), -EINVAL);
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in) - 1), -EINVAL);
	assert_int_equal(wf_base_addr_set(&addr, &in6, sizeof(in6) - 1),
			 -EINVAL);
	assert_int_equal(wf_base_addr_set(&addr, &unix_sa, sizeof(unix_sa)),
			 -EINVAL);
	memset(&in, 0, sizeof(in));
	assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), -EINVAL);
}

static void test_set_takes_unaligned(void **state)
{
	char buf[sizeof(struct sockaddr_in6) + 1];
	struct wf_addr six = ipv6("fd00::1", 5, 0), addr;

	(void)state;
	memcpy(buf + 1, &six.in6, sizeof(six.in6));
	assert_int_equal(wf_base_addr_set(&addr, buf + 1, sizeof(six.in6)), 0);
	assert_true(wf_base_addr_equal(&addr, &six));
}

static void test_port(void **state)
{
	struct wf_addr a = ipv4("10.0.0.1", 0), b = ipv6("fd00::1", 0, 0);

	(void)state;
	wf_base_addr_set_port(&a, 65535);
	wf_base_addr_set_port(&b, 513);
	assert_int_equal(wf_base_addr_port(&a), 65535);
	assert_int_equal(wf_base_addr_port(&b), 513);
}

static void test_any_and_local(void **state)
{
	struct wf_addr any4 = ipv4("0.0.0.0", 5), any6 = ipv6("::", 5, 0);
	struct wf_addr lo = ipv4("127.0.0.1", 5);
	/* TEST-NET-3: documentation only, on no interface. */
	struct wf_addr far = ipv4("203.0.113.7", 5);

	(void)state;
	assert_true(wf_base_addr_is_any(&any4));
	assert_true(wf_base_addr_is_any(&any6));
	assert_false(wf_base_addr_is_any(&lo));
	assert_true(wf_base_addr_is_local(&any4));
	assert_true(wf_base_addr_is_local(&lo));
	assert_false(wf_base_addr_is_local(&far));
}

static void test_str(void **state)
{
	struct wf_addr a = ipv4("10.0.0.1", 5), b = ipv6("fd00::1", 6, 0);
	struct wf_addr c = ipv6("fe80::1", 65535, 3);
	char buf[WF_ADDR_STR_LEN];

	(void)state;
	assert_string_equal(wf_base_addr_str(&a, buf, sizeof(buf)),
			    "10.0.0.1:5");
	assert_string_equal(wf_base_addr_str(&b, buf, sizeof(buf)),
			    "[fd00::1]:6");
	assert_string_equal(wf_base_addr_str(&c, buf, sizeof(buf)),
			    "[fe80::1%3]:65535");
	assert_string_equal(wf_base_addr_str(&a, buf, 5), "10.0");
}

/* FI_ADDR_EFA as libfabric writes it, and what it is here. */
static void test_queue_pair(void **state)
{
	const uint8_t raw[WF_ADDR_EFA_RAW] = { 0xfe, 0x80, [15] = 1,
					       0x34, 0x12, [20] = 0x78,
					       0x56, 0x34, 0x12 };
	uint8_t other[WF_ADDR_EFA_RAW], back[WF_ADDR_EFA_RAW];
	struct wf_addr a, b, copy;
	char buf[WF_ADDR_STR_LEN];

	(void)state;
	assert_int_equal(wf_base_addr_set_raw(&a, raw, sizeof(raw)), 0);
	assert_true(wf_base_addr_is_efa(&a));
	assert_int_equal(a.efa.qpn, 0x1234);
	assert_int_equal(a.efa.qkey, 0x12345678);
	assert_string_equal(wf_base_addr_str(&a, buf, sizeof(buf)),
			    "efa-fe80::1-4660-12345678");
	wf_base_addr_get_raw(&a, back);
	assert_memory_equal(back, raw, sizeof(raw));
	/* As devices keep it. */
	assert_int_equal(wf_base_addr_set(&copy, &a, wf_base_addr_len(&a)), 0);
	assert_true(wf_base_addr_equal(&copy, &a));
	assert_int_equal(wf_base_addr_hash(&copy), wf_base_addr_hash(&a));
	/* Each part of it counts. */
	for (int at = 0; at < 24; at++) {
		if (at == 18 || at == 19)
			continue; /* unused */
		memcpy(other, raw, sizeof(raw));
		other[at] ^= 1;
		assert_int_equal(wf_base_addr_set_raw(&b, other, sizeof(raw)),
				 0);
		assert_false(wf_base_addr_equal(&a, &b));
	}
	assert_true(wf_base_addr_is_whole(&a));
	assert_false(wf_base_addr_is_any(&a));
	assert_false(wf_base_addr_is_local(&a));
	a.efa.qpn = 0;
	assert_true(wf_base_addr_is_whole(&a));
	assert_int_equal(wf_base_addr_set_raw(&a, raw, 31), -EINVAL);
	memset(other, 0, sizeof(other));
	assert_int_equal(wf_base_addr_set_raw(&a, other, 32), -EINVAL);
	assert_int_equal(wf_base_addr_set(&a, &b, sizeof(b.efa) - 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_and_hash),
		cmocka_unit_test(test_padding_does_not_count),
		cmocka_unit_test(test_mapped_is_ipv4),
		cmocka_unit_test(test_scope_counts_on_links_only),
		cmocka_unit_test(test_set_refuses),
		cmocka_unit_test(test_set_takes_unaligned),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_any_and_local),
		cmocka_unit_test(test_str),
		cmocka_unit_test(test_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
